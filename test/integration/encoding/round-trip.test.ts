import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BATCH_HEADER_BYTES, compressRecords, sealBatch } from '../../../src/encoding/record-batch.ts';
import { recordBound, writeRecord } from '../../../src/encoding/record.ts';
import type { ProducerIdentity } from '../../../src/model/publisher.ts';
import type { Compression } from '../../../src/model/settings.ts';
import { connected, newProducer, told } from '../../stack/publishing.ts';
import { readRecords } from '../../stack/read-records.ts';
import { testBed, type TestBed } from '../../stack/test-bed.ts';
import { headersOf, type Stated, stated, toRow, valueOf } from '../../unit/encoding/rows.ts';

/** Random batches, taken by a real broker (which checks every record of them) and read back by a plain consumer. */
const BATCHES = 12;
const RECORDS_PER_BATCH = 100;
const BASE_MS = Date.now();

let bed: TestBed;

beforeAll(async () => {
  bed = await testBed();
});
afterAll(async () => {
  await bed[Symbol.asyncDispose]();
});

test.for(['none', 'gzip', 'zstd'] as const)(
  'compression %s: random batches come back as they were',
  async (compression) => {
    const seed = randomInt(2 ** 31);
    const rows = fc.sample(stated, { numRuns: BATCHES * RECORDS_PER_BATCH, seed }).map((row) => ({
      ...row,
      // Brokers refuse what lies in the future.
      timestampDeltaMs: -Math.abs(row.timestampDeltaMs % 1e9),
    }));
    const topic = bed.topic(`random-${compression}`);
    await bed.createTopics({ [`random-${compression}`]: 1 });
    await using publisher = await connected(bed.brokers, { compression });
    const producer = await newProducer(publisher);
    for (let i = 0; i < rows.length; i += RECORDS_PER_BATCH) {
      const bytes = await seal(rows.slice(i, i + RECORDS_PER_BATCH), compression, producer, i);
      expect(told(await publisher.send({ topic, partition: 0, bytes, records: RECORDS_PER_BATCH }))).toBe('acked');
    }
    const records = await readRecords(bed.kafka, [topic]);
    expect(records).toHaveLength(rows.length);
    for (const [i, { key, value, headers, timestampMs }] of records.entries()) {
      const sent = rows[i];
      expect({ key, value, headers, timestampMs }, `seed ${seed}, record ${i}`).toEqual({
        key: sent.key,
        value: valueOf(sent),
        headers: headersOf(sent),
        timestampMs: BASE_MS + sent.timestampDeltaMs,
      });
    }
  },
);

async function seal(
  list: Stated[],
  compression: Compression,
  producer: ProducerIdentity,
  baseSequence: number,
): Promise<Buffer> {
  const rows = list.map(toRow);
  const buffer = Buffer.alloc(BATCH_HEADER_BYTES + rows.reduce((sum, row) => sum + recordBound(row), 0));
  let end = BATCH_HEADER_BYTES;
  for (const [i, row] of rows.entries()) end = writeRecord(buffer, end, row, i, list[i].timestampDeltaMs);
  const batch = compression === 'none' ? buffer.subarray(0, end) : await compressRecords(buffer, end, compression);
  sealBatch(batch, batch.length, {
    records: list.length,
    baseTimestampMs: BASE_MS,
    maxTimestampMs: BASE_MS + Math.max(...list.map(({ timestampDeltaMs }) => timestampDeltaMs)),
    producer,
    baseSequence,
    compression,
  });
  return batch;
}
