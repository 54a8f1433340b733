import type { IHeaders } from 'kafkajs';
import type { Delivery } from '../stack/plain-consumer.ts';
import type { Ledger } from './ledger.ts';

/** An outbox row as SELECT shows it, as the record that it must become. */
export interface CommittedRow {
  readonly id: string;
  readonly topic: string;
  readonly key: Buffer;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly timestampMs: number;
  readonly isPublished: boolean;
}

export interface Audit {
  readonly committed: number;
  /** Distinct rows that arrived. */
  readonly delivered: number;
  readonly lost: number;
  /** First deliveries that came after a later event of the same order in the same topic. */
  readonly reordered: number;
  /** Records that are not their row byte for byte, and records that no committed row stands behind. */
  readonly altered: number;
  readonly duplicates: readonly Delivery[];
  /** Rows that the relay has not marked as published. */
  readonly unmarked: number;
}

/** Compares what MySQL committed with what Kafka delivered. `deliveries` are in offset order within each partition. */
export function auditOf(
  rows: ReadonlyMap<string, CommittedRow>,
  ledger: Ledger,
  deliveries: readonly Delivery[],
): Audit {
  const known = ledger.committedIds();
  if (known.length !== rows.size || !known.every((id) => rows.has(id))) {
    throw new Error(`the order service committed ${known.length} events, MySQL has ${rows.size}: the demo is wrong`);
  }
  const arrived = new Set<string>();
  const duplicates: Delivery[] = [];
  const last = new Map<string, { sequence: number; partition: number }>();
  let reordered = 0;
  let altered = 0;
  for (const delivery of deliveries) {
    const id = text(delivery.headers['id']);
    const row = rows.get(id);
    if (row === undefined || !isSame(row, delivery)) altered++;
    if (row === undefined) continue;
    if (arrived.has(id)) {
      duplicates.push(delivery);
      continue;
    }
    arrived.add(id);
    const { topic, key, sequence } = ledger.entry(id)!;
    const before = last.get(`${topic}/${key}`) ?? { sequence: 0, partition: delivery.partition };
    // Two partitions have no order between them.
    if (sequence < before.sequence || delivery.partition !== before.partition) reordered++;
    else last.set(`${topic}/${key}`, { sequence, partition: delivery.partition });
  }
  return {
    ...{ committed: rows.size, delivered: arrived.size, lost: rows.size - arrived.size },
    ...{ reordered, altered, duplicates },
    unmarked: [...rows.values()].filter((row) => !row.isPublished).length,
  };
}

function isSame(row: CommittedRow, delivery: Delivery): boolean {
  const { topic, key, value, headers, timestampMs } = delivery;
  const names = Object.keys(headers);
  return (
    topic === row.topic &&
    timestampMs === row.timestampMs &&
    sameBytes(key, row.key) &&
    sameBytes(value, row.value) &&
    names.length === Object.keys(row.headers).length &&
    names.every((name) => text(headers[name]) === row.headers[name])
  );
}

function sameBytes(a: Buffer | null, b: Buffer | null): boolean {
  return a === null || b === null ? a === b : a.equals(b);
}

/** Of a header that stands once; anything else is nobody's text. */
function text(header: IHeaders[string]): string {
  return Buffer.isBuffer(header) ? header.toString('utf8') : '';
}

export function isGood({ lost, reordered, altered }: Audit): boolean {
  return lost === 0 && reordered === 0 && altered === 0;
}

/** The last line of the demo; scripts read it. */
export function auditLine(audit: Audit): string {
  const { committed, delivered, lost, reordered, altered, duplicates } = audit;
  return (
    `audit: committed=${committed} delivered=${delivered} lost=${lost} reordered=${reordered} ` +
    `altered=${altered} duplicates=${duplicates.length}`
  );
}
