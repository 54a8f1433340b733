import { partitionOf } from '../encoding/murmur2.ts';
import { RelayError } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { Scope } from '../model/parked.ts';
import type { Settings } from '../model/settings.ts';
import type { Row, Session } from './session.ts';
import { type PendingRow, SweepSelect } from './sweep-select.ts';
import { WaitingTable } from './waiting-table.ts';

/** What is parked, as people see it. Ages and times until by the server's clock. */
export interface ParkedFacts {
  /** The wide ones first, then those that have waited longest. */
  readonly parked: readonly ParkedScope[];
  /** Of all of them, shown or not. */
  readonly total: number;
  /** Since the oldest pending row that is under none of them became due; 0: there is none. Null: not known. */
  readonly oldestFreeMs: number | null;
}

export interface ParkedScope {
  readonly kind: Scope['kind'];
  /** Null: all topics. Empty: rows that name none. */
  readonly topic: string | null;
  readonly partition: number | null;
  /** Of a pair: the aggregate id as text, or `(no aggregate)` and the row's idempotency key. */
  readonly key: string | null;
  readonly reason: string;
  readonly attempts: number;
  /** For how long it has been waiting. */
  readonly sinceMs: number;
  /** Until its next try; null: until somebody acts on `row`. */
  readonly dueInMs: number | null;
  /** The row that it began with, where it is one row's fault: `schema.table`, and its primary key. */
  readonly row: { readonly outbox: string; readonly id: string } | null;
  /** Pending rows under it; null where so many wait that it would be costly to say. */
  readonly rowsWaiting: number | null;
}

/** Where more rows wait in an outbox nobody counts how many are whose: no index leads to that. */
export const COUNTED_WAITING_ROWS = 10_000;
/** What leads the key of a row without an aggregate id. */
const NO_AGGREGATE = 0xff;
/** Of the topics that can be parked by their names. */
const LONGEST_TOPIC = 249;

/** Plain reads. Throws a `RelayError`. */
export async function readParked(session: Session, settings: Settings, limit: number): Promise<ParkedFacts> {
  const table = quoteTable(settings.mysql.database, 'cdc_relay_parked');
  const doing = 'looking at what is parked';
  const { name } = settings.relay;
  const [counted] = await session.rows(doing, `SELECT COUNT(*) AS total FROM ${table} WHERE relay = ?`, [name]);
  const total = Number(counted['total']);
  if (total === 0) return { parked: [], total, oldestFreeMs: null };
  const rows = await session.rows(
    doing,
    `SELECT kind, topic, \`partition\`, key_bytes, partitions, attempts, reason, outbox, row_id,
       TIMESTAMPDIFF(MICROSECOND, since, UTC_TIMESTAMP(6)) DIV 1000 AS since_ms,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), not_before) DIV 1000 AS due_in_ms
     FROM ${table} WHERE relay = ?
     ORDER BY FIELD(kind, 'everything', 'topic', 'topic-partition', 'pair'), since LIMIT ${limit}`,
    [name],
  );
  const scopes = rows.map((row) => ({ row, covers: coverOf(row) }));
  const waiting = await waitingRows(session, settings);
  return {
    parked: scopes.map(({ row, covers }) => ({
      ...scopeOf(row),
      rowsWaiting: waiting === null || covers === null ? null : waiting.filter(covers).length,
    })),
    total,
    oldestFreeMs: total > rows.length || waiting === null ? null : oldestFreeMs(waiting, scopes),
  };
}

/** Null, too, where a scope does not say which rows are under it. */
function oldestFreeMs(waiting: readonly PendingRow[], scopes: readonly { readonly covers: Covers | null }[]) {
  const covers = scopes.map((scope) => scope.covers);
  if (!covers.every((each) => each !== null)) return null;
  const free = waiting.filter((row) => !covers.some((isUnder) => isUnder(row)));
  return Math.max(0, ...free.map(({ dueForMs }) => dueForMs ?? 0));
}

function scopeOf(row: Row): Omit<ParkedScope, 'rowsWaiting'> {
  const kind = row['kind'] as Scope['kind'];
  const partition = Number(row['partition']);
  const key = row['key_bytes'] as Buffer;
  const { outbox, row_id: id } = row;
  return {
    kind,
    topic: kind === 'everything' ? null : String(row['topic']),
    partition: partition < 0 ? null : partition,
    key: kind === 'pair' ? keyText(key) : null,
    reason: String(row['reason']),
    attempts: Number(row['attempts']),
    sinceMs: Math.max(0, Number(row['since_ms'])),
    dueInMs: row['due_in_ms'] === null ? null : Math.max(0, Number(row['due_in_ms'])),
    row: typeof outbox === 'string' && typeof id === 'string' ? { outbox, id } : null,
  };
}

function keyText(key: Buffer): string {
  return key[0] === NO_AGGREGATE ? `(no aggregate) ${key.toString('utf8', 1)}` : key.toString();
}

type Covers = (row: PendingRow) => boolean;

/** Which rows are under a scope; null where the partition of a key cannot be told. */
function coverOf(row: Row): Covers | null {
  const { kind, topic } = row;
  if (kind === 'everything') return () => true;
  const isInTopic: Covers = (waiting) => parkableTopic(waiting.topic) === topic;
  if (kind === 'topic') return isInTopic;
  if (kind === 'pair') return (waiting) => isInTopic(waiting) && waiting.key.equals(row['key_bytes'] as Buffer);
  const partitions = Number(row['partitions']);
  if (partitions === 0) return null;
  return (waiting) => {
    const { key } = waiting;
    const start = key[0] === NO_AGGREGATE ? 1 : 0;
    return isInTopic(waiting) && partitionOf(key, start, key.length, partitions) === row['partition'];
  };
}

function parkableTopic(topic: string | null): string {
  return topic === null || topic.length > LONGEST_TOPIC ? '' : topic;
}

/** What is pending in all outboxes; null where it is too much, or an index is missing. */
async function waitingRows(session: Session, settings: Settings): Promise<readonly PendingRow[] | null> {
  const all: PendingRow[] = [];
  for (const [index, outbox] of settings.outboxes.entries()) {
    const { status } = outbox.columns;
    if (outbox.retire === 'keep' || status === null) continue;
    const select = new SweepSelect(index, outbox, status, new WaitingTable(outbox));
    try {
      const rows = await select.pendingRows(session, COUNTED_WAITING_ROWS + 1);
      if (rows.length > COUNTED_WAITING_ROWS) return null;
      all.push(...rows);
    } catch (error) {
      if (error instanceof RelayError && error.fault.code === 'MYSQL_SCHEMA') return null;
      throw error;
    }
  }
  return all;
}
