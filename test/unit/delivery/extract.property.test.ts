import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Batch } from '../../../src/delivery/batch.ts';
import type { RecordView } from '../../../src/delivery/batch-records.ts';
import type { BatchRow, TransactionRun } from '../../../src/delivery/batch-rows.ts';
import { recordKeyText, scopeKeyText } from '../../../src/delivery/row-key.ts';
import { sealBatch } from '../../../src/encoding/record-batch.ts';
import { recordBound } from '../../../src/encoding/record.ts';
import { Form, type OutboxRow } from '../../../src/model/row.ts';
import type { RowId } from '../../../src/model/row-ids.ts';
import { crc32C, decodeBatch, type DecodedRecord } from '../encoding/kafkajs-protocol.ts';
import { fill, headersOf, stated, type Stated, toRow, valueOf } from '../encoding/rows.ts';
import { madeRow } from './rows.ts';

const BUFFER_BYTES = 256 * 1024;
const BASE_MS = 1_796_040_000_123;

/** A row as the naive model has it. */
interface Laid {
  readonly stated: Stated;
  readonly outbox: number;
  readonly transaction: number;
  readonly id: RowId;
  readonly timestampMs: number;
}

const laid: fc.Arbitrary<Laid> = fc.record({
  stated,
  outbox: fc.nat(2),
  transaction: fc.nat(5),
  id: fc.oneof(
    fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('hex')),
  ),
  timestampMs: fc.oneof(
    fc.integer({ min: -70_000, max: 70_000 }).map((plus) => BASE_MS + plus),
    fc.constantFrom(0, 1, BASE_MS * 2),
  ),
});
/** Some rows, over and over: offsets reach the lengths at which a varint grows. */
const many = fc
  .tuple(fc.array(laid, { minLength: 1, maxLength: 8 }), fc.array(fc.nat(7), { minLength: 1, maxLength: 120 }))
  .map(([rows, order]) => order.map((i) => rows[i % rows.length]));
/** Says of the record at a place whether it is taken. */
const pattern = fc.array(fc.boolean(), { minLength: 1, maxLength: 40 });

describe('records taken out of a batch', () => {
  test('are known, and what is left is the batch that they never were in', async () => {
    await fc.assert(
      fc.asyncProperty(many, pattern, fc.nat(), many, async (list, takes, cut, later) => {
        const batch = new Batch();
        batch.begin(Buffer.alloc(BUFFER_BYTES));
        let model = list.filter((row) => append(batch, row));
        const seen: boolean[] = [];
        const out = batch.extract((record) => {
          expectRecord(record, seen.length, model[seen.length]);
          seen.push(takes[seen.length % takes.length]);
          return seen.at(-1)!;
        });
        expect(seen).toHaveLength(model.length);
        expectTaken(
          out,
          model.filter((_, i) => seen[i]),
        );
        model = model.filter((_, i) => !seen[i]);
        await expectBatch(batch, model, model.length);

        if (model.length > 0) {
          const front = 1 + (cut % model.length);
          await expectBatch(batch, model, front);
          expectTaken(batch.cutFront(front), model.slice(0, front));
          model = model.slice(front);
          await expectBatch(batch, model, model.length);
        }
        model.push(...later.filter((row) => append(batch, row)));
        await expectBatch(batch, model, model.length);
      }),
      { numRuns: 60 },
    );
  });

  test('none: nothing changes', () => {
    const batch = new Batch();
    batch.begin(Buffer.alloc(BUFFER_BYTES));
    for (let id = 1; id <= 100; id++) batch.append(madeRow(id, 'a'), 1, id);
    const before = Buffer.from(batch.buffer!);
    expect(batch.extract(() => false)).toBeNull();
    expect(batch.buffer!.equals(before)).toBe(true);
    expect(batch.records).toBe(100);
  });

  test('offsets of three bytes become shorter ones', async () => {
    const batch = new Batch();
    batch.begin(Buffer.alloc(16 * BUFFER_BYTES));
    for (let id = 0; id < 9_000; id++) batch.append(madeRow(id, 'a', 10), 1, id);
    // The last record's length grows shorter with its offset: 64 bytes take two bytes to say, 63 take one.
    const out = batch.extract(({ index }) => index % 1_000 !== 999)!;
    expect([...batch.ids()].map(Number)).toEqual(Array.from({ length: 9 }, (_, i) => 1_000 * i + 999));
    const { records } = await decodeBatch(seal(batch, 9));
    expect(records.map(({ timestamp }) => Number(timestamp))).toEqual([...batch.ids()].map(Number));
    expect(batch.maxTimestampMs).toBe(8_999);
    expect(out.records).toBe(8_991);
  });

  test('a front that is not there cannot be cut', () => {
    const batch = new Batch();
    batch.begin(Buffer.alloc(BUFFER_BYTES));
    batch.append(madeRow(1, 'a'), 1, 1);
    for (const records of [0, 2]) {
      expect(() => batch.front(records)).toThrow(RangeError);
      expect(() => batch.cutFront(records)).toThrow(RangeError);
    }
  });
});

function rowOf({ stated, outbox, id }: Laid): OutboxRow {
  const row = toRow(stated);
  row.outbox = outbox;
  if (typeof id === 'string') {
    fill(row.idBytes, Form.Text, Buffer.from(id, 'hex'));
  } else {
    row.idLow = Number(id & 0xffff_ffffn);
    row.idHigh = Number(id >> 32n);
  }
  return row;
}

/** False: there is no room. */
function append(batch: Batch, laid: Laid): boolean {
  const row = rowOf(laid);
  if (batch.roomBytes < recordBound(row)) return false;
  batch.append(row, laid.transaction, laid.timestampMs);
  return true;
}

function expectRecord(record: RecordView, index: number, laid: Laid): void {
  const { outbox, transaction, id } = laid;
  const seen = [record.index, record.outbox, record.transaction, record.id, recordKeyText(record)];
  expect(seen).toEqual([index, outbox, transaction, id, scopeKeyText(rowOf(laid))]);
}

function expectTaken(out: Batch | null, model: readonly Laid[]): void {
  if (model.length === 0) {
    expect(out).toBeNull();
    return;
  }
  expect(out!.buffer).toBeNull();
  expectRows(out!, model);
}

/** The first `records` records of the batch, and all of its rows. */
async function expectBatch(batch: Batch, model: readonly Laid[], records: number): Promise<void> {
  expectRows(batch, model);
  if (records === 0) return;
  const behind = Buffer.from(batch.buffer!.subarray(batch.front(records)));
  const sealed = seal(batch, records);
  expect(behind.equals(batch.buffer!.subarray(sealed.length))).toBe(true);
  expect(sealed.readUInt32BE(17)).toBe(crc32C(sealed.subarray(21)) >>> 0);
  const decoded = await decodeBatch(sealed);
  const front = model.slice(0, records);
  expect(decoded.lastOffsetDelta).toBe(records - 1);
  expect(Number(decoded.maxTimestamp)).toBe(Math.max(...front.map(({ timestampMs }) => timestampMs)));
  expect(decoded.records).toEqual(front.map(decodedOf));
}

function decodedOf({ stated, timestampMs }: Laid, i: number): Partial<DecodedRecord> {
  return expect.objectContaining({
    offset: String(i),
    timestamp: String(timestampMs),
    attributes: 0,
    key: stated.key,
    value: valueOf(stated),
    headers: headersOf(stated),
  }) as Partial<DecodedRecord>;
}

function seal(batch: Batch, records: number): Buffer {
  const end = batch.front(records);
  sealBatch(batch.buffer!, end, {
    records,
    baseTimestampMs: batch.baseTimestampMs,
    maxTimestampMs: batch.maxTimestampMsOf(records),
    producer: { id: 7n, epoch: 0 },
    baseSequence: 5,
    compression: 'none',
  });
  return batch.buffer!.subarray(0, end);
}

function expectRows(batch: Batch, model: readonly Laid[]): void {
  const rows = model.map(({ outbox, id, transaction }): BatchRow => ({ outbox, id, transaction }));
  expect(batch.records).toBe(rows.length);
  expect([...batch.rows()]).toEqual(rows);
  const keys = rows.filter(({ id }) => typeof id === 'string');
  expect(batch.keyBytes).toBe(keys.reduce((sum, { id }) => sum + String(id).length / 2, 0));
  const runs = Array.from({ length: batch.runCount }, (_, i) => batch.run(i));
  expect(runs).toEqual(runsOf(rows));
}

function runsOf(rows: readonly BatchRow[]): TransactionRun[] {
  const runs: (TransactionRun & { rows: number })[] = [];
  for (const { transaction, outbox, id } of rows) {
    const hasKeys = typeof id === 'string';
    const last = runs.at(-1);
    if (last?.transaction === transaction && last.outbox === outbox && last.hasKeys === hasKeys) last.rows++;
    else runs.push({ transaction, outbox, rows: 1, hasKeys });
  }
  return runs;
}
