import type { Clock } from '../model/clock.ts';
import { RelayError } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
import type { Position } from '../model/position.ts';
import { COUNTED_ROWS, type OutboxProgress, type Progress, type ProgressReader } from '../model/progress.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import type { ServerFacts } from '../model/store.ts';
import { readLogEnd, readServerFacts } from './server.ts';
import type { Session } from './session.ts';
import { SessionSlot } from './session-slot.ts';

/** Reads by the index (status, available_at, …) alone, over a connection of its own, without a lock. */
export function createProgressReader(settings: Settings, clock: Clock, log: Log): ProgressReader {
  const slot = new SessionSlot({ mysql: settings.mysql, takeOverMs: settings.relay.takeOverMs, clock, log });
  const outboxes = settings.outboxes.map(outboxReader);
  let known: { readonly session: Session; readonly facts: ServerFacts } | null = null;
  return {
    read: (withOutboxes) =>
      slot.use(async (session): Promise<Progress> => {
        // Behind one address there may be another server after each connect.
        if (known?.session !== session) known = { session, facts: await readServerFacts(session) };
        const [now] = await session.rows('asking for the time', 'SELECT UNIX_TIMESTAMP(NOW(6)) AS now_s');
        const head = await logEnd(session, known.facts);
        const serverMs = Number(now['now_s']) * 1000;
        if (!withOutboxes) return { serverMs, head, outboxes: null, outboxesTookMs: 0 };
        const beganMs = clock.nowMs();
        const waiting: (OutboxProgress | null)[] = [];
        for (const read of outboxes) waiting.push(read === null ? null : await read(session));
        return { serverMs, head, outboxes: waiting, outboxesTookMs: clock.nowMs() - beganMs };
      }),
    close: () => slot.close(),
  };
}

async function logEnd(session: Session, facts: ServerFacts): Promise<Position | null> {
  try {
    return await readLogEnd(session, facts);
  } catch (error) {
    if (error instanceof RelayError && error.fault.code === 'MYSQL_ACCESS_DENIED') return null;
    throw error;
  }
}

function outboxReader({ schema, table, columns, retire }: OutboxSettings) {
  if (retire === 'keep') return null;
  const name = quoteTable(schema, table);
  const status = quoteIdentifier(columns.status!);
  const due = quoteIdentifier(columns.availableAt!);
  const counted = (where: string): string =>
    `(SELECT COUNT(*) FROM (SELECT 1 FROM ${name} WHERE ${where} LIMIT ${COUNTED_ROWS}) AS counted)`;
  const isDue = `${status} = 'pending' AND ${due} <= UTC_TIMESTAMP(6)`;
  const sql = `SELECT ${counted(isDue)} AS pending,
    ${counted(`${status} = 'pending' AND ${due} > UTC_TIMESTAMP(6)`)} AS delayed_rows,
    ${counted(`${status} = 'failed'`)} AS failed,
    (SELECT TIMESTAMPDIFF(MICROSECOND, ${due}, UTC_TIMESTAMP(6)) DIV 1000 FROM ${name}
     WHERE ${isDue} ORDER BY ${due} LIMIT 1) AS oldest_ms`;
  return async (session: Session): Promise<OutboxProgress> => {
    const [row] = await session.rows(`looking at what waits in ${name}`, sql);
    return {
      pendingRows: Number(row['pending']),
      oldestPendingMs: row['oldest_ms'] === null ? null : Number(row['oldest_ms']),
      delayedRows: Number(row['delayed_rows']),
      failedRows: Number(row['failed']),
    };
  };
}
