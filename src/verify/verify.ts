import type { TopicReader } from '../kafka/topic-reader.ts';
import { RelayError } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { RowId } from '../model/row-ids.ts';
import type { Settings } from '../model/settings.ts';
import { idText } from '../store/people-ids.ts';
import type { Session } from '../store/session.ts';
import { Buckets, SpillFile } from './buckets.ts';
import { compare, type Counts, type Finding } from './compare.ts';
import { BUCKETS, digest, RECORD_BYTES, ROW_BYTES } from './entries.ts';
import { gatherRecords } from './gather-records.ts';
import { gatherRows, idOfRow } from './gather-rows.ts';
import { contentOfRow } from './row-content.ts';
import { type RowRange, TableRows } from './table-rows.ts';
import { TopicList } from './topic-list.ts';

/** A kept row so much older than the last commit that the relay has passed was committed before it. */
const COMMIT_MARGIN_MS = 60_000;

export interface VerifyOptions {
  readonly settings: Settings;
  readonly session: Session;
  readonly reader: TopicReader;
  /** Index of the outbox, and which of its rows; `until` null: of now. */
  readonly outboxes: readonly { readonly index: number; readonly range: AskedRange }[];
  readonly onlyTopic: string | null;
  /** Findings of each kind that are kept. */
  readonly limit: number;
  readonly onRows: (outbox: number, rows: number, done: number | null) => void;
  readonly onRecords: (records: number, done: number) => void;
}

export type AskedRange = Omit<RowRange, 'until'> & { readonly until: string | null };

/** A finding with the names of the row. */
export interface NamedFinding extends Omit<Finding, 'outbox' | 'topic' | 'order' | 'identity'> {
  readonly outbox: number;
  readonly topic: string;
  /** Null: the row is gone meanwhile. */
  readonly row: { readonly id: string; readonly headerId: string; readonly key: Buffer | null } | null;
}

export interface Verified {
  readonly counts: Counts;
  readonly findings: readonly NamedFinding[];
  /** By index of the outbox. */
  readonly outboxes: readonly {
    readonly index: number;
    readonly rows: number;
    readonly since: string | null;
    readonly until: string;
    /** Primary keys of rows that cannot become a record. */
    readonly unencodable: readonly string[];
  }[];
  readonly topics: readonly {
    readonly name: string;
    readonly rows: number;
    readonly compacted: boolean;
    readonly exists: boolean;
  }[];
  readonly records: number;
  readonly spilledBytes: number;
}

/**
 * Compares what the tables say is published with what the topics hold. First the tables, then the ends of the topics:
 * on a live system too, whatever a table called published when it was read is in its topic before that end.
 */
export async function verify(options: VerifyOptions): Promise<Verified> {
  const { settings, session, reader, onlyTopic, limit } = options;
  const spill = new SpillFile();
  try {
    const now = await serverNow(session);
    const rows = new Buckets(spill, ROW_BYTES, BUCKETS);
    const topics = new TopicList(reader);
    const youngFromMs = settings.outboxes.map(() => Infinity);
    const outboxes: Verified['outboxes'][number][] = [];
    for (const { index, range } of options.outboxes) {
      const outbox = settings.outboxes[index];
      if (outbox.retire === 'keep') youngFromMs[index] = await passedMs(session, settings);
      const table = await TableRows.open(session, index, outbox);
      const ends = await table.idRange();
      const until = range.until ?? now;
      const { rows: count, unencodable } = await gatherRows({
        ...{ outbox: index, table, topics, onlyTopic, into: rows },
        range: { ...range, until },
        retried: await retriedRows(session, settings, index),
        progress: (done, at) => options.onRows(index, done, shareOf(ends, range, at)),
      });
      outboxes.push({ index, rows: count, since: range.since, until, unencodable });
    }
    const records = new Buckets(spill, RECORD_BYTES, BUCKETS);
    const gathered = await gatherRecords({
      ...{ reader, topics: topics.all, into: records },
      progress: (done, count) => options.onRecords(count, done),
    });
    const facts = topics.all.map(({ compacted, index }) => {
      return { compacted, expiredBeforeMs: gathered.expiredBeforeMs[index] };
    });
    const { counts, findings } = compare({ rows, records, spill, topics: facts, youngFromMs, limit });
    const names = await namesOf(options, now, findings, topics);
    return {
      counts,
      outboxes,
      findings: findings.map(({ kind, outbox, topic, identity, places, parts }) => {
        return { kind, outbox, topic: topics.all[topic].name, places, parts, row: names.get(identity) ?? null };
      }),
      topics: topics.all.map(({ name, rows, compacted, partitions }) => {
        return { name, rows, compacted, exists: partitions > 0 };
      }),
      records: gathered.records,
      spilledBytes: spill.bytes,
    };
  } finally {
    spill.close();
  }
}

async function serverNow(session: Session): Promise<string> {
  const [row] = await session.rows('asking for the time', 'SELECT CAST(UTC_TIMESTAMP(6) AS CHAR) AS now_there');
  return String(row['now_there']);
}

/**
 * Kept rows created from there on may be on their way. Nothing tells of one of them whether it was sent, but a commit
 * that the checkpoint has passed.
 */
async function passedMs(session: Session, { mysql, relay }: Settings): Promise<number> {
  const table = quoteTable(mysql.database, 'cdc_relay_offsets');
  const rows = await session.rows(
    'looking how far the checkpoint is',
    `SELECT last_commit_us FROM ${table} WHERE name = ? AND last_commit_us IS NOT NULL`,
    [relay.name],
  );
  return rows.length === 0 ? -Infinity : Number(rows[0]['last_commit_us']) / 1000 - COMMIT_MARGIN_MS;
}

/** Rows that people have had delivered again after they had failed: later than their place. */
async function retriedRows(session: Session, { mysql, outboxes }: Settings, index: number): Promise<Set<string>> {
  const { schema, table } = outboxes[index];
  const actions = quoteTable(mysql.database, 'cdc_relay_actions');
  try {
    const rows = await session.rows(
      'looking for rows that were retried',
      `SELECT DISTINCT row_id FROM ${actions} WHERE action = 'retry' AND outbox = ?`,
      [`${schema}.${table}`],
    );
    return new Set(rows.map((row) => String(row['row_id'])));
  } catch (error) {
    // A relay that nobody had to retry anything for may have no such table yet.
    if (error instanceof RelayError && error.fault.code === 'MYSQL_SCHEMA') return new Set();
    throw error;
  }
}

function shareOf(
  ends: { readonly from: bigint; readonly to: bigint } | null,
  range: AskedRange,
  at: RowId,
): number | null {
  if (ends === null || typeof at !== 'bigint') return null;
  const from = typeof range.fromId === 'bigint' && range.fromId > ends.from ? range.fromId : ends.from;
  const to = typeof range.toId === 'bigint' && range.toId < ends.to ? range.toId : ends.to;
  return to <= from ? 1 : Math.min(1, Number(at - from) / Number(to - from));
}

type Names = NonNullable<NamedFinding['row']>;

/** Who the rows of the findings are, by identity. Where ids are no integers the table is read once more. */
async function namesOf(
  { settings, session, outboxes }: VerifyOptions,
  now: string,
  findings: readonly Finding[],
  topics: TopicList,
): Promise<ReadonlyMap<string, Names>> {
  const names = new Map<string, Names>();
  const wanted = new Set(findings.map(({ identity }) => identity));
  for (const { index, range } of outboxes) {
    const own = findings.filter(({ outbox }) => outbox === index);
    if (own.length === 0) continue;
    const table = await TableRows.open(session, index, settings.outboxes[index]);
    const cursors =
      table.kind === 'integer'
        ? eachRow(table, [...new Set(own.map(({ order }) => order))])
        : allRows(table, { ...range, until: range.until ?? now });
    for await (const rows of cursors) {
      while (rows.next()) {
        const { row } = rows;
        const topic = topics.known(row.topic.buffer.toString('utf8', row.topic.start, row.topic.end));
        const content = topic === undefined ? null : contentOfRow(row, topic.index);
        if (content === null) continue;
        const identity = Buffer.concat([digest(content.id).subarray(0, 14), Buffer.alloc(2)]);
        identity.writeUInt16BE(content.topic, 14);
        const found = identity.toString('hex');
        if (!wanted.has(found)) continue;
        const key = content.key === null ? null : Buffer.from(content.key);
        names.set(found, { id: idText(table.kind, idOfRow(row)), headerId: String(content.id), key });
      }
    }
  }
  return names;
}

/** One by one: payloads may be large. */
async function* eachRow(table: TableRows, ids: readonly bigint[]) {
  for (const id of ids) yield await table.byIds([id]);
}

async function* allRows(table: TableRows, range: RowRange) {
  for await (const { rows } of table.read(range)) yield rows;
}
