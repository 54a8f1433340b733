import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import type { Session } from '../store/session.ts';
import { TopicColumns } from '../store/topic-columns.ts';
import { type Asked, asked } from './asked.ts';
import type { OutboxShape } from './table-facts.ts';

/** Pending rows are counted so far, and looked at so far. */
export const MOST_COUNTED = 100_000;
const MOST_LOOKED_AT = 1_000;
const MOST_TOPICS = 50;
/** A clock may be off by so much; what is further ahead was meant, or is a time zone (S34). */
const FUTURE_SECONDS = 60;

export interface RowFacts {
  /** Null: it has no status column, or no index to count by. */
  readonly pending: number | null;
  /** What is there in all, as the server thinks. */
  readonly rowsEstimate: number;
  readonly isEmpty: boolean;
  /** Pending rows that are due in the future, the farthest first, a thousand at most. */
  readonly future: readonly FutureRow[];
  /** Topics of pending rows, the first few. */
  readonly topics: readonly string[];
}

export interface FutureRow {
  readonly aheadSeconds: number;
  /** From `created_at` to `available_at`; null: the table has no `created_at`. */
  readonly delaySeconds: number | null;
  /** How far `created_at` itself is ahead; null: no such column. */
  readonly createdAheadSeconds: number | null;
}

export async function readRows(session: Session, outbox: OutboxSettings, shape: OutboxShape): Promise<Asked<RowFacts>> {
  return asked(async () => {
    const name = quoteTable(outbox.schema, outbox.table);
    const doing = `looking at rows of ${outbox.schema}.${outbox.table}`;
    const any = await session.rows(doing, `SELECT 1 FROM ${name} LIMIT 1`);
    const { status } = outbox.columns;
    const facts = { rowsEstimate: shape.rowsEstimate, isEmpty: any.length === 0 };
    if (status === null || shape.waitingIndex === null) return { ...facts, pending: null, future: [], topics: [] };
    const index = quoteIdentifier(shape.waitingIndex);
    const from = `FROM ${name} FORCE INDEX (${index}) WHERE ${quoteIdentifier(status)} = 'pending'`;
    const counted = `SELECT COUNT(*) AS pending FROM (SELECT 1 ${from} LIMIT ${MOST_COUNTED}) AS counted`;
    const [{ pending }] = await session.rows(doing, counted);
    const future = await readFuture(session, outbox, from, doing);
    return { ...facts, pending: Number(pending), future, topics: await readTopics(session, outbox, from) };
  });
}

async function readFuture(session: Session, outbox: OutboxSettings, from: string, doing: string): Promise<FutureRow[]> {
  const { availableAt, createdAt } = outbox.columns;
  if (availableAt === null) return [];
  const due = quoteIdentifier(availableAt);
  const made = createdAt === null ? 'NULL' : quoteIdentifier(createdAt);
  const rows = await session.rows(
    doing,
    `SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), ${due}) AS ahead, TIMESTAMPDIFF(SECOND, ${made}, ${due}) AS delay,
       TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), ${made}) AS created_ahead
     ${from} AND ${due} > UTC_TIMESTAMP(6) + INTERVAL ${FUTURE_SECONDS} SECOND
     ORDER BY ${due} DESC LIMIT ${MOST_LOOKED_AT}`,
  );
  const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));
  return rows.map((row) => ({
    aheadSeconds: Number(row['ahead']),
    delaySeconds: numberOrNull(row['delay']),
    createdAheadSeconds: numberOrNull(row['created_ahead']),
  }));
}

async function readTopics(session: Session, { schema, table, topic }: OutboxSettings, from: string): Promise<string[]> {
  const topics = new TopicColumns(topic);
  if (topics.names.length === 0) return [];
  const list = topics.names.map(quoteIdentifier).join(', ');
  const { rows } = await session.raw(
    `looking for topics of ${schema}.${table}`,
    `SELECT DISTINCT ${list} FROM (SELECT ${list} ${from} LIMIT ${MOST_LOOKED_AT}) AS pending LIMIT ${MOST_TOPICS}`,
  );
  const named = rows.map((values) => topics.of(values, 0)?.toString() ?? '');
  return [...new Set(named.filter((name) => name !== ''))];
}

/** Whether the relay has saved a position already; then `start` means nothing any more. */
export async function readHasPosition(session: Session, settings: Settings): Promise<boolean> {
  const table = quoteTable(settings.mysql.database, 'cdc_relay_offsets');
  const sql = `SELECT 1 FROM ${table} WHERE name = ? AND file IS NOT NULL`;
  const answer = await asked(() => session.rows('looking for a saved position', sql, [settings.relay.name]));
  return answer.known && answer.value.length > 0;
}
