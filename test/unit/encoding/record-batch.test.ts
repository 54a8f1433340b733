import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BATCH_HEADER_BYTES, compressRecords, sealBatch } from '../../../src/encoding/record-batch.ts';
import { recordBound, writeRecord } from '../../../src/encoding/record.ts';
import type { Compression } from '../../../src/model/settings.ts';
import { crc32C, decodeBatch } from './kafkajs-protocol.ts';
import { type Stated, stated, toRow, valueOf } from './rows.ts';

const BASE_MS = 1_796_040_000_123;
const producer = { id: 2n ** 62n + 5n, epoch: 3 };

describe.for(['none', 'gzip', 'zstd'] as const)('compression %s', (compression) => {
  test('any batch is what kafkajs decodes, and its CRC is right', async () => {
    const rows = fc.array(stated, { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(rows, fc.nat(2 ** 31 - 1), async (list, baseSequence) => {
        const batch = await seal(list, compression, baseSequence);
        const decoded = await decodeBatch(batch);
        expect(decoded).toMatchObject({
          firstOffset: '0',
          partitionLeaderEpoch: -1,
          firstTimestamp: String(BASE_MS),
          maxTimestamp: String(BASE_MS + 60_000),
          lastOffsetDelta: list.length - 1,
          producerId: String(producer.id),
          producerEpoch: 3,
          firstSequence: baseSequence,
          inTransaction: false,
          isControlBatch: false,
        });
        expect(decoded.records.map(({ key }) => key)).toEqual(list.map(({ key }) => key));
        expect(decoded.records.map(({ value }) => value)).toEqual(list.map(valueOf));
        expect(decoded.records.map(({ offset }) => Number(offset))).toEqual(list.map((_, i) => i));
        expect(batch.readInt32BE(8)).toBe(batch.length - 12);
        expect(batch[16]).toBe(2);
        expect(batch.readUInt32BE(17)).toBe(crc32C(batch.subarray(21)) >>> 0);
        expect(batch.readInt32BE(57)).toBe(list.length);
      }),
      { numRuns: compression === 'none' ? 150 : 40 },
    );
  });
});

test('compression leaves the buffer alone and its result has room for the header', async () => {
  const buffer = Buffer.alloc(5000, 'abc');
  const before = Buffer.from(buffer);
  const compressed = await compressRecords(buffer, 4000, 'zstd');
  expect(buffer).toEqual(before);
  expect(compressed.length).toBeLessThan(4000);
  expect(compressed.length).toBeGreaterThan(BATCH_HEADER_BYTES);
});

async function seal(list: Stated[], compression: Compression, baseSequence: number): Promise<Buffer> {
  const rows = list.map(toRow);
  const buffer = Buffer.alloc(BATCH_HEADER_BYTES + rows.reduce((sum, row) => sum + recordBound(row), 0));
  let end = BATCH_HEADER_BYTES;
  rows.forEach((row, i) => (end = writeRecord(buffer, end, row, i, list[i].timestampDeltaMs)));
  const batch = compression === 'none' ? buffer.subarray(0, end) : await compressRecords(buffer, end, compression);
  sealBatch(batch, batch.length, {
    records: list.length,
    baseTimestampMs: BASE_MS,
    maxTimestampMs: BASE_MS + 60_000,
    producer,
    baseSequence,
    compression,
  });
  return batch;
}
