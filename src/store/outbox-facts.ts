import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { COUNTED_ROWS, type OutboxProgress } from '../model/progress.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { Session } from './session.ts';

/** A code, and nothing that an application may have put there. */
const CODE = /^[A-Z][A-Z0-9_]{1,63}$/;

/** Counts what waits in an outbox, by the index (status, available_at, …) alone; null where rows have no state. */
export function outboxFacts({
  schema,
  table,
  columns,
  retire,
}: OutboxSettings): ((session: Session) => Promise<OutboxProgress>) | null {
  if (retire === 'keep') return null;
  const name = quoteTable(schema, table);
  const status = quoteIdentifier(columns.status!);
  const due = quoteIdentifier(columns.availableAt!);
  const error = columns.lastError === null ? 'NULL' : quoteIdentifier(columns.lastError);
  const counted = (where: string): string =>
    `(SELECT COUNT(*) FROM (SELECT 1 FROM ${name} WHERE ${where} LIMIT ${COUNTED_ROWS}) AS counted)`;
  const first = (what: string, where: string, order: string): string =>
    `(SELECT ${what} FROM ${name} WHERE ${where} ORDER BY ${order} LIMIT 1)`;
  const isDue = `${status} = 'pending' AND ${due} <= UTC_TIMESTAMP(6)`;
  const isDelayed = `${status} = 'pending' AND ${due} > UTC_TIMESTAMP(6)`;
  const hasFailed = `${status} = 'failed'`;
  const sinceDueMs = `TIMESTAMPDIFF(MICROSECOND, ${due}, UTC_TIMESTAMP(6)) DIV 1000`;
  const sql = `SELECT ${counted(isDue)} AS pending, ${counted(isDelayed)} AS delayed_rows,
    ${counted(`${status} = 'processing'`)} AS processing, ${counted(hasFailed)} AS failed,
    ${first(sinceDueMs, isDue, due)} AS oldest_ms,
    ${first(`-(${sinceDueMs})`, isDelayed, due)} AS next_ms,
    ${first(sinceDueMs, hasFailed, `${due} DESC`)} AS failed_ms,
    ${first(`SUBSTRING_INDEX(SUBSTRING_INDEX(${error}, ':', 1), ' ', 1)`, hasFailed, `${due} DESC`)} AS failed_code`;
  return async (session) => {
    const [row] = await session.rows(`looking at what waits in ${name}`, sql);
    const ms = (key: string): number | null => (row[key] === null ? null : Math.max(0, Number(row[key])));
    const code = row['failed_code'];
    return {
      pendingRows: Number(row['pending']),
      oldestPendingMs: ms('oldest_ms'),
      delayedRows: Number(row['delayed_rows']),
      nextDelayedInMs: ms('next_ms'),
      processingRows: Number(row['processing']),
      failedRows: Number(row['failed']),
      newestFailedMs: ms('failed_ms'),
      newestFailedCode: typeof code === 'string' && CODE.test(code) ? code : null,
    };
  };
}
