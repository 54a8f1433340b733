import type { Kafka } from 'kafkajs';
import type { Pool } from 'mysql2/promise';
import { type ExpectedRow, expectedRows, type RowSource } from './expected-rows.ts';
import { type ReadRecord, readRecords } from './read-records.ts';

/** What the relay promises, counted. */
export interface Figures {
  /** Rows that should be out. */
  readonly committed: number;
  /** Of them, those that are out. */
  readonly delivered: number;
  readonly lost: number;
  /** First deliveries that come after the first delivery of a later event of their topic and aggregate. */
  readonly reordered: number;
  /** Records whose key, value, headers, timestamp or topic are not the row's, and records that belong to no row. */
  readonly altered: number;
  /** Deliveries beyond the first. */
  readonly duplicates: number;
}

export interface Audit {
  readonly figures: Figures;
  /** The first offenders in words. */
  readonly offences: readonly string[];
}

/** Looks at the first deliveries of one topic and aggregate, one after the other. */
export interface LaneOrder {
  /** A row that is out already and should have come after this one; null: none. */
  passed(row: ExpectedRow): ExpectedRow | null;
}

export interface AuditOptions {
  /** Header ids of the committed rows in commit order; default: the order of `rows`. */
  readonly commitOrder?: readonly string[];
  /** Instead: another order, made for each aggregate. */
  readonly laneOrder?: () => LaneOrder;
  /** Duplicates are allowed then. */
  readonly faultInjected?: boolean;
}

const SHOWN = 5;

/**
 * Throws unless each committed row of the table is out, unaltered and in order, and nothing else is; duplicates count
 * as a fault too unless one was injected. Reads the table and the topics as they are at the call: wait for the relay
 * first.
 */
export async function expectDelivered(
  bed: { readonly pool: Pool; readonly kafka: Kafka },
  options: AuditOptions & {
    readonly topics: readonly string[];
    /** The table, or rows read with `expectedRows` before the relay deleted them. */
    readonly rows: RowSource | readonly ExpectedRow[];
  },
): Promise<Figures> {
  const rows = 'table' in options.rows ? await expectedRows(bed.pool, options.rows) : options.rows;
  const records = await readRecords(bed.kafka, options.topics);
  const { figures, offences } = audit(rows, records, options);
  if (offences.length > 0) throw new Error(`${JSON.stringify(figures)}\n  ${offences.join('\n  ')}`);
  return figures;
}

/** Compares the rows with the records read. Rows come in id order. */
export function audit(rows: readonly ExpectedRow[], records: readonly ReadRecord[], options: AuditOptions = {}): Audit {
  const offences = new Offences();
  const expected = new Map(rows.map((row) => [row.eventId, row]));
  const position = new Map((options.commitOrder ?? [...expected.keys()]).map((eventId, at) => [eventId, at]));
  const newOrder = options.laneOrder ?? (() => new CommitOrder(position));
  const seen = new Set<string>();
  const lanes = new Map<string, { readonly partition: number; readonly order: LaneOrder }>();
  for (const record of records) {
    const eventId = String(record.headers['id']);
    const row = expected.get(eventId);
    if (row === undefined) {
      offences.add('altered', () => `${place(record)}: id ${eventId} belongs to no committed row`);
      continue;
    }
    const difference = differs(row, record);
    if (difference !== null) offences.add('altered', () => `${place(record)}, row ${row.id}: ${difference}`);
    if (seen.has(eventId)) {
      offences.add('duplicates', () => `${place(record)}: row ${row.id} again`, options.faultInjected === true);
      continue;
    }
    seen.add(eventId);
    const name = `${record.topic}\0${row.key.toString('latin1')}`;
    const lane = lanes.get(name) ?? { partition: record.partition, order: newOrder() };
    lanes.set(name, lane);
    if (lane.partition !== record.partition) {
      offences.add(
        'reordered',
        () => `${place(record)}: aggregate ${String(row.key)} is in partition ${lane.partition} too`,
      );
      continue;
    }
    const passedBy = lane.order.passed(row);
    if (passedBy !== null) {
      offences.add('reordered', () => `${place(record)}: row ${row.id} after row ${passedBy.id} of ${String(row.key)}`);
    }
  }
  for (const row of rows) {
    if (!seen.has(row.eventId))
      offences.add('lost', () => `row ${row.id} (${row.topic}, ${String(row.key)}) is not out`);
  }
  const figures = { committed: rows.length, delivered: seen.size, ...offences.counts };
  return { figures, offences: offences.texts };
}

/** That of the commits. */
class CommitOrder implements LaneOrder {
  readonly #position: ReadonlyMap<string, number>;
  #last: { readonly row: ExpectedRow; readonly at: number } | null = null;

  constructor(position: ReadonlyMap<string, number>) {
    this.#position = position;
  }

  passed(row: ExpectedRow): ExpectedRow | null {
    const at = this.#position.get(row.eventId);
    if (at === undefined) throw new Error(`the commit order does not know row ${row.id} (${row.eventId})`);
    if (this.#last !== null && at < this.#last.at) return this.#last.row;
    this.#last = { row, at };
    return null;
  }
}

/** What is not the row's in the record; null when everything is. Never the content itself: it may be large. */
function differs(row: ExpectedRow, record: ReadRecord): string | null {
  if (row.topic !== record.topic) return `topic is ${record.topic}, not ${row.topic}`;
  if (!same(row.key, record.key)) return `key ${inWords(record.key)}, not ${inWords(row.key)}`;
  if (!same(row.value, record.value)) return `value ${inWords(record.value)}, not ${inWords(row.value)}`;
  if (row.timestampMs !== null && row.timestampMs !== record.timestampMs) {
    return `timestamp ${record.timestampMs}, not ${row.timestampMs}`;
  }
  const names = Object.keys(record.headers);
  if (names.join() !== row.headers.map(([name]) => name).join()) return `headers are ${names.join()}`;
  for (const [name, value] of row.headers) {
    const sent = record.headers[name] as Buffer | Buffer[] | null;
    if (Array.isArray(sent)) return `header ${name} comes ${sent.length} times`;
    if (!same(value, sent)) return `header ${name} ${inWords(sent)}, not ${inWords(value)}`;
  }
  return null;
}

function same(a: Buffer | null, b: Buffer | null): boolean {
  return a === null || b === null ? a === b : a.equals(b);
}

function inWords(bytes: Buffer | null): string {
  if (bytes === null) return 'is null';
  return bytes.length > 100
    ? `has ${bytes.length} bytes ${bytes.subarray(0, 60).toString()}...`
    : `is ${bytes.toString()}`;
}

function place(record: ReadRecord): string {
  return `${record.topic}/${record.partition}@${record.offset}`;
}

class Offences {
  readonly counts = { lost: 0, reordered: 0, altered: 0, duplicates: 0 };
  readonly texts: string[] = [];

  add(kind: keyof typeof this.counts, text: () => string, allowed = false): void {
    if (++this.counts[kind] <= SHOWN && !allowed) this.texts.push(`${kind}: ${text()}`);
  }
}
