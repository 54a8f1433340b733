import { createRequire } from 'node:module';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/** kafkajs's own protocol code: what its consumers decode with, and what its producers would have sent. */
const require = createRequire(import.meta.url);

interface KafkaJsEncoder {
  readonly buffer: Buffer;
  writeVarInt(n: number): KafkaJsEncoder;
  writeVarLong(n: string): KafkaJsEncoder;
}

export interface DecodedRecord {
  readonly timestamp: string;
  readonly offset: string;
  readonly attributes: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, Buffer | null | (Buffer | null)[]>>;
}

export interface DecodedBatch {
  readonly firstOffset: string;
  readonly firstTimestamp: string;
  readonly maxTimestamp: string;
  readonly lastOffsetDelta: number;
  readonly partitionLeaderEpoch: number;
  readonly producerId: string;
  readonly producerEpoch: number;
  readonly firstSequence: number;
  readonly inTransaction: boolean;
  readonly isControlBatch: boolean;
  readonly records: readonly DecodedRecord[];
}

const Encoder = require('kafkajs/src/protocol/encoder') as new () => KafkaJsEncoder;
const Decoder = require('kafkajs/src/protocol/decoder') as new (buffer: Buffer) => object;
const decode = require('kafkajs/src/protocol/recordBatch/v0/decoder') as (decoder: object) => Promise<DecodedBatch>;
const compression = require('kafkajs/src/protocol/message/compression') as { Codecs: Record<number, () => object> };

export const crc32C = require('kafkajs/src/protocol/recordBatch/crc32C') as (buffer: Buffer) => number;
export const murmur2 = require('kafkajs/src/producer/partitioners/default/murmur2') as (key: Buffer) => number;

const ZSTD = 4;
compression.Codecs[ZSTD] = () => ({
  compress: (encoder: KafkaJsEncoder) => Promise.resolve(zstdCompressSync(encoder.buffer)),
  decompress: (buffer: Buffer) => Promise.resolve(zstdDecompressSync(buffer)),
});

export function decodeBatch(bytes: Buffer): Promise<DecodedBatch> {
  return decode(new Decoder(bytes));
}

export function varint(n: number): Buffer {
  return new Encoder().writeVarInt(n).buffer;
}

export function varlong(n: number): Buffer {
  return new Encoder().writeVarLong(String(n)).buffer;
}
