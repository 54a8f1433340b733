import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { fault } from '../model/fault.ts';
import { BATCH_HEADER_BYTES } from './record-batch.ts';

/** One record as it stands in a topic. Filled again by each step: valid only until then. */
export interface ReadRecord {
  offset: number;
  timestampMs: number;
  key: Buffer | null;
  value: Buffer | null;
  headers: number;
  /** The headers one behind the other, as they stand in the record. */
  headerBytes: Buffer;
}

/** Records of this producer, from there to the end of its transaction, were taken back. */
export interface AbortedTransaction {
  readonly producerId: bigint;
  readonly firstOffset: number;
}

const CODEC_BITS = 7;
const LOG_APPEND_TIME = 8;
const TRANSACTIONAL = 16;
const CONTROL = 32;
/** In front of a batch's own length. */
const LENGTH_AT = 8;
const MAGIC_AT = 16;
const BYTES_BEFORE_LENGTH_COUNTS = 12;
const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'];

/**
 * Shows each record of a record set as a broker hands it out: whole batches (magic 2), of which the last may be cut
 * short. Returns the offset behind the last whole batch, control batches counted; `from` when there is none. Records
 * before `from`, which are in the batch that holds it, are left out, and those of the transactions `aborted`. Throws a
 * `RelayError` for a batch that this reader cannot read. https://kafka.apache.org/documentation/#recordbatch
 */
export function readRecordSet(
  set: Buffer,
  from: number,
  show: (record: ReadRecord) => void,
  aborted: readonly AbortedTransaction[] = [],
): number {
  let next = from;
  const left = new LeftOut(aborted);
  for (let at = 0; at + BATCH_HEADER_BYTES <= set.length;) {
    const end = at + BYTES_BEFORE_LENGTH_COUNTS + set.readInt32BE(at + LENGTH_AT);
    if (end > set.length) break;
    const batch = set.subarray(at, end);
    if (batch[MAGIC_AT] !== 2) throw unreadable(`a batch of format ${batch[MAGIC_AT]}`);
    const baseOffset = Number(batch.readBigInt64BE(0));
    next = baseOffset + batch.readInt32BE(23) + 1;
    if (!left.has(batch, next)) readBatch(batch, baseOffset, from, show);
    at = end;
  }
  return next;
}

/** Which batches of a set belong to transactions that were aborted; asked in the order of the set. */
class LeftOut {
  readonly #coming: AbortedTransaction[];
  readonly #producers = new Set<bigint>();

  constructor(aborted: readonly AbortedTransaction[]) {
    this.#coming = aborted.toSorted((a, b) => a.firstOffset - b.firstOffset);
  }

  has(batch: Buffer, end: number): boolean {
    while (this.#coming.length > 0 && this.#coming[0].firstOffset < end) {
      this.#producers.add(this.#coming.shift()!.producerId);
    }
    if (this.#producers.size === 0) return false;
    const attributes = batch.readInt16BE(21);
    const producerId = batch.readBigInt64BE(43);
    const isOut = (attributes & TRANSACTIONAL) !== 0 && this.#producers.has(producerId);
    // The mark at the end of its transaction: what follows of this producer is another one.
    if ((attributes & CONTROL) !== 0) this.#producers.delete(producerId);
    return isOut;
  }
}

function readBatch(batch: Buffer, baseOffset: number, from: number, show: (record: ReadRecord) => void): void {
  const attributes = batch.readInt16BE(21);
  if ((attributes & CONTROL) !== 0) return;
  const baseMs = Number(batch.readBigInt64BE(27));
  const appendedMs = (attributes & LOG_APPEND_TIME) === 0 ? null : Number(batch.readBigInt64BE(35));
  const reader = new Reader(inflated(batch.subarray(BATCH_HEADER_BYTES), attributes & CODEC_BITS));
  const record = emptyRecord();
  for (let left = batch.readInt32BE(57); left > 0; left--) {
    readRecord(reader, record);
    record.timestampMs = appendedMs ?? baseMs + record.timestampMs;
    record.offset += baseOffset;
    if (record.offset >= from) show(record);
  }
}

/** One record, its length in front; time and offset as differences. Slices: nothing is copied. */
export function readRecordBytes(bytes: Buffer): ReadRecord {
  const record = emptyRecord();
  readRecord(new Reader(bytes), record);
  return record;
}

function readRecord(reader: Reader, record: ReadRecord): void {
  const end = reader.varint() + reader.at;
  reader.at++; // attributes
  record.timestampMs = reader.varlong();
  record.offset = reader.varint();
  record.key = reader.bytes();
  record.value = reader.bytes();
  record.headers = reader.varint();
  record.headerBytes = reader.upTo(end);
}

function emptyRecord(): ReadRecord {
  return { offset: 0, timestampMs: 0, key: null, value: null, headers: 0, headerBytes: NOTHING };
}

const NOTHING = Buffer.alloc(0);

/** A header of a record: name and value. */
export interface Header {
  readonly name: string;
  readonly value: Buffer | null;
  /** In the header bytes. */
  readonly start: number;
  readonly end: number;
}

export function headersOf({ headers, headerBytes }: Pick<ReadRecord, 'headers' | 'headerBytes'>): Header[] {
  const reader = new Reader(headerBytes);
  return Array.from({ length: headers }, () => {
    const start = reader.at;
    const name = String(reader.bytes());
    const value = reader.bytes();
    return { name, value, start, end: reader.at };
  });
}

function inflated(records: Buffer, codec: number): Buffer {
  switch (CODECS[codec]) {
    case 'none':
      return records;
    case 'gzip':
      return gunzipSync(records);
    case 'zstd':
      return zstdDecompressSync(records);
    default:
      // The relay writes neither: the topic's compression.type makes its broker do so.
      throw unreadable(`batches compressed with ${CODECS[codec] ?? `codec ${codec}`}`);
  }
}

function unreadable(what: string) {
  return fault('KAFKA_UNREADABLE_BATCH', 'halt', `the topic holds ${what}, which cannot be read here`);
}

class Reader {
  at = 0;
  readonly #buffer: Buffer;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  varint(): number {
    let zigzag = 0;
    let shift = 0;
    let byte: number;
    do {
      byte = this.#buffer[this.at++];
      zigzag |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte >= 0x80);
    return (zigzag >>> 1) ^ -(zigzag & 1);
  }

  /** A difference of times: a safe integer. */
  varlong(): number {
    let byte = this.#buffer[this.at++];
    const negative = (byte & 1) === 1;
    let magnitude = (byte & 0x7f) >>> 1;
    for (let scale = 64; byte >= 0x80; scale *= 128) {
      byte = this.#buffer[this.at++];
      magnitude += (byte & 0x7f) * scale;
    }
    return negative ? -magnitude - 1 : magnitude;
  }

  bytes(): Buffer | null {
    const length = this.varint();
    return length < 0 ? null : this.upTo(this.at + length);
  }

  upTo(end: number): Buffer {
    if (!(end >= this.at && end <= this.#buffer.length)) throw unreadable('a record that reaches beyond its batch');
    return this.#buffer.subarray(this.at, (this.at = end));
  }
}
