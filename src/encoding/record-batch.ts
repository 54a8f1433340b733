import { promisify } from 'node:util';
import { gzip, zstdCompress } from 'node:zlib';
import type { ProducerIdentity } from '../model/publisher.ts';
import type { Compression } from '../model/settings.ts';
import { crc32c } from './crc32c.ts';

/** Room in front of the records for the batch's header. */
export const BATCH_HEADER_BYTES = 61;

/** Compression codecs in the lowest three bits of the attributes. */
const CODECS: Readonly<Record<Compression, number>> = { none: 0, gzip: 1, zstd: 4 };
const MAGIC = 2;
/** Set by brokers; outside the CRC. */
const NO_LEADER_EPOCH = -1;
/** `batchLength` counts what follows it. */
const BYTES_BEFORE_LENGTH_COUNTS = 12;
/** The CRC is over everything behind itself. */
const CRC_OFFSET = 17;
const CRC_FROM = 21;

export interface BatchFields {
  readonly records: number;
  /** Of the first record; the others' are differences from it. */
  readonly baseTimestampMs: number;
  readonly maxTimestampMs: number;
  /** Id and epoch -1: a producer that is not idempotent. */
  readonly producer: ProducerIdentity;
  readonly baseSequence: number;
  readonly compression: Compression;
}

/**
 * Fills in the header of the record batch `buffer[0, end)`, whose records stand behind the first 61 bytes, CRC
 * included. https://kafka.apache.org/documentation/#recordbatch
 */
export function sealBatch(buffer: Buffer, end: number, fields: BatchFields): void {
  buffer.writeBigInt64BE(0n, 0);
  buffer.writeInt32BE(end - BYTES_BEFORE_LENGTH_COUNTS, 8);
  buffer.writeInt32BE(NO_LEADER_EPOCH, 12);
  buffer.writeInt8(MAGIC, 16);
  buffer.writeInt16BE(CODECS[fields.compression], 21);
  buffer.writeInt32BE(fields.records - 1, 23);
  buffer.writeBigInt64BE(BigInt(fields.baseTimestampMs), 27);
  buffer.writeBigInt64BE(BigInt(fields.maxTimestampMs), 35);
  buffer.writeBigInt64BE(fields.producer.id, 43);
  buffer.writeInt16BE(fields.producer.epoch, 51);
  buffer.writeInt32BE(fields.baseSequence, 53);
  buffer.writeInt32BE(fields.records, 57);
  buffer.writeUInt32BE(crc32c(buffer, CRC_FROM, end), CRC_OFFSET);
}

const compressors = { gzip: promisify(gzip), zstd: promisify(zstdCompress) };

/**
 * Compresses the records `buffer[61, end)` in the thread pool; resolves to a buffer of its own that has room for the
 * header in front of them and ends with them. `buffer` must not change until then.
 */
export async function compressRecords(
  buffer: Buffer,
  end: number,
  compression: Exclude<Compression, 'none'>,
): Promise<Buffer> {
  const compressed = await compressors[compression](buffer.subarray(BATCH_HEADER_BYTES, end));
  const batch = Buffer.allocUnsafe(BATCH_HEADER_BYTES + compressed.length);
  compressed.copy(batch, BATCH_HEADER_BYTES);
  return batch;
}
