import { crc32c } from '../../../src/encoding/crc32c.ts';

/** One record, as a consumer gets it. */
export interface SentRecord {
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: ReadonlyMap<string, string>;
}

/** What a broker sees of a record batch (magic 2, not compressed). */
export interface SentBatch {
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly firstSequence: number;
  readonly records: readonly SentRecord[];
}

/** Reads the bytes that a relay has sent; throws on what a broker would call corrupt. */
export function decodeBatch(bytes: Buffer): SentBatch {
  if (bytes.readInt32BE(8) !== bytes.length - 12) throw new Error('batch length');
  if (bytes.readInt8(16) !== 2) throw new Error('magic');
  if (bytes.readUInt32BE(17) !== crc32c(bytes, 21, bytes.length)) throw new Error('checksum');
  const count = bytes.readInt32BE(57);
  if (bytes.readInt32BE(23) !== count - 1) throw new Error('last offset');
  const reader = new Reader(bytes, 61);
  const records = Array.from({ length: count }, (_, offset) => reader.record(offset));
  if (reader.at !== bytes.length) throw new Error('bytes behind the last record');
  return {
    producerId: bytes.readBigInt64BE(43),
    producerEpoch: bytes.readInt16BE(51),
    firstSequence: bytes.readInt32BE(53),
    records,
  };
}

class Reader {
  at: number;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  record(offset: number): SentRecord {
    const end = this.#varint() + this.at;
    this.at++;
    this.#varint();
    if (this.#varint() !== offset) throw new Error('offset of a record');
    const key = this.#text();
    const value = this.#text();
    const headers = new Map<string, string>();
    for (let left = this.#varint(); left > 0; left--) headers.set(this.#text()!, this.#text() ?? '');
    if (this.at !== end) throw new Error('length of a record');
    return { key, value, headers };
  }

  #text(): string | null {
    const length = this.#varint();
    if (length < 0) return null;
    return this.#bytes.toString('utf8', this.at, (this.at += length));
  }

  /** Zigzag; small enough for a number here. */
  #varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#bytes[this.at++];
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
  }
}
