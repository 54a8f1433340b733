import { hash } from 'node:crypto';

/**
 * What is remembered of a row and of a record: fixed-size digests (SHA-256, cut), so that memory and spill file do not
 * depend on how large payloads are. Rows and records of one identity (topic and header `id`) meet in one bucket; then
 * what was found meets by pair (topic and key), for the order.
 */
export const BUCKETS = 256;

/** Where things stand in an entry of a row, a record, or a place of a pair. */
export const AT = {
  /** 14 bytes of the digest of header `id`, two of the topic: nothing of another topic is taken for it. */
  identity: 0,
  /** 6 bytes of the digest of the key, two of the topic. */
  pair: 16,
  value: 24,
  headers: 32,
  topic: 40,
  outbox: 42,
  flags: 43,
  partition: 44,
  /** Records: their offset. Rows: created at, milliseconds; NaN: not known. */
  place: 48,
  /** Rows only: their order, unsigned 64 bits. */
  order: 56,
} as const;

export const ROW_BYTES = 64;
export const RECORD_BYTES = 56;
/** As a row; `place` is the offset of the first delivery. */
export const PLACE_BYTES = 64;

export const Flag = {
  Delayed: 1,
  Retried: 2,
  /** Its order is not known, or it has none: a row without an aggregate. */
  Unordered: 4,
  /** The value is NULL: a tombstone. */
  Tombstone: 8,
  /** Of a record: sent on purpose once more. */
  Replayed: 16,
  /** Of a place: the row was not found. */
  Missing: 32,
  /** Of a place: a record that is no row's. */
  Stray: 64,
} as const;

const NULL_DIGEST = Buffer.alloc(32);

export function digest(bytes: Buffer | null): Buffer {
  return bytes === null ? NULL_DIGEST : hash('sha256', bytes, 'buffer');
}

/** What row and record have in common. */
export interface Content {
  readonly topic: number;
  /** Header `id`. */
  readonly id: Buffer;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  /** As they stand in the record. */
  readonly headers: Buffer;
}

export function writeContent(entry: Buffer, { topic, id, key, value, headers }: Content): void {
  digest(id).copy(entry, AT.identity, 0, 14);
  entry.writeUInt16BE(topic, AT.identity + 14);
  digest(key).copy(entry, AT.pair, 0, 6);
  entry.writeUInt16BE(topic, AT.pair + 6);
  digest(value).copy(entry, AT.value, 0, 8);
  digest(headers).copy(entry, AT.headers, 0, 8);
  entry.writeUInt16BE(topic, AT.topic);
}

/** Indexes of the entries, ascending by `compare`; equal ones in the order in which they came. */
export function sortedEntries(count: number, compare: (a: number, b: number) => number): Uint32Array {
  return Uint32Array.from({ length: count }, (_, i) => i).sort((a, b) => compare(a, b) || a - b);
}
