import { expect, test } from 'vitest';
import { BATCH_HEADER_BYTES, compressRecords, sealBatch } from '../../../src/encoding/record-batch.ts';
import { headersOf, type ReadRecord, readRecordSet } from '../../../src/encoding/record-set.ts';
import { recordBound, writeRecord } from '../../../src/encoding/record.ts';
import { RelayError } from '../../../src/model/fault.ts';
import { emptyRow, type Field, Form } from '../../../src/model/row.ts';
import type { Compression } from '../../../src/model/settings.ts';

const TRANSACTIONAL = 16;
const CONTROL = 32;
const NOBODY = { id: -1n, epoch: -1 };

function put(field: Field, text: string | null): void {
  const buffer = Buffer.from(text ?? '');
  Object.assign(field, { form: text === null ? Form.Null : Form.Text, buffer, start: 0, end: buffer.length });
}

async function batch(
  baseOffset: number,
  values: readonly (string | null)[],
  compression: Compression,
): Promise<Buffer> {
  const row = emptyRow();
  put(row.key, 'key');
  put(row.idempotencyKey, 'id-1');
  put(row.headers, '{"trace": "t", "none": null}');
  let buffer = Buffer.alloc(BATCH_HEADER_BYTES + values.reduce((sum, value) => sum + 300 + (value ?? '').length, 0));
  let end = BATCH_HEADER_BYTES;
  values.forEach((value, n) => {
    put(row.value, value);
    if (buffer.length - end < recordBound(row)) throw new Error('the test has guessed the size wrong');
    end = writeRecord(buffer, end, row, n, -n);
  });
  if (compression !== 'none') {
    buffer = Buffer.from(await compressRecords(buffer, end, compression));
    end = buffer.length;
  }
  const times = { baseTimestampMs: 1_000_000, maxTimestampMs: 1_000_000 };
  sealBatch(buffer, end, { records: values.length, ...times, producer: NOBODY, baseSequence: -1, compression });
  buffer.writeBigInt64BE(BigInt(baseOffset), 0);
  return buffer.subarray(0, end);
}

function read(set: Buffer, from: number): { next: number; seen: ReadRecord[] } {
  const seen: ReadRecord[] = [];
  const next = readRecordSet(set, from, (record) => seen.push({ ...record }));
  return { next, seen };
}

test.each(['none', 'gzip', 'zstd'] as const)('records written with %s are read again', async (compression) => {
  const set = Buffer.concat([
    await batch(5, ['a', null], compression),
    await batch(7, ['x'.repeat(5_000)], compression),
  ]);
  const { next, seen } = read(set, 5);
  expect(next).toBe(8);
  expect(seen.map(({ offset, timestampMs, value }) => [offset, timestampMs, value?.length ?? null])).toEqual([
    [5, 1_000_000, 1],
    [6, 999_999, null],
    [7, 1_000_000, 5_000],
  ]);
  expect(headersOf(seen[0]).map(({ name, value }) => [name, value === null ? null : String(value)])).toEqual([
    ['id', 'id-1'],
    ['trace', 't'],
    ['none', null],
  ]);
});

test('records before the offset asked for are left out, and so is a batch that is cut short', async () => {
  const whole = await batch(5, ['a', 'b', 'c'], 'none');
  const set = Buffer.concat([whole, (await batch(8, ['d'], 'none')).subarray(0, 90)]);
  expect(read(set, 6)).toMatchObject({ next: 8, seen: [{ offset: 6 }, { offset: 7 }] });
  expect(read(whole.subarray(0, 70), 5)).toEqual({ next: 5, seen: [] });
});

test('control batches are passed over, and the log append time counts where there is one', async () => {
  const control = await batch(5, ['a'], 'none');
  control.writeInt16BE(32, 21);
  const appended = await batch(6, ['b'], 'none');
  appended.writeInt16BE(8, 21);
  appended.writeBigInt64BE(2_000_000n, 35);
  expect(read(Buffer.concat([control, appended]), 5)).toMatchObject({
    next: 7,
    seen: [{ offset: 6, timestampMs: 2_000_000 }],
  });
});

test('what cannot be read is said, not guessed', async () => {
  const snappy = await batch(5, ['a'], 'none');
  snappy.writeInt16BE(2, 21);
  expect(() => read(snappy, 5)).toThrow(RelayError);
  expect(() => read(snappy, 5)).toThrow('compressed with snappy');
  const old = await batch(5, ['a'], 'none');
  old[16] = 1;
  expect(() => read(old, 5)).toThrow('a batch of format 1');
});

async function ofProducer(producer: bigint, offset: number, value: string, isMark = false): Promise<Buffer> {
  const one = await batch(offset, [value], 'none');
  one.writeInt16BE(isMark ? TRANSACTIONAL | CONTROL : TRANSACTIONAL, 21);
  one.writeBigInt64BE(producer, 43);
  return one;
}
test('records of aborted transactions are left out, up to the mark of each, and no others', async () => {
  const set = Buffer.concat([
    await batch(0, ['plain'], 'none'),
    await ofProducer(1n, 1, 'good'),
    await ofProducer(1n, 2, 'mark', true),
    await ofProducer(1n, 3, 'bad'),
    await ofProducer(2n, 4, 'good beside it'),
    await ofProducer(1n, 5, 'bad too'),
    await ofProducer(1n, 6, 'mark', true),
    await ofProducer(2n, 7, 'mark', true),
    await ofProducer(1n, 8, 'good again'),
    await ofProducer(2n, 9, 'bad'),
    await batch(10, ['plain again'], 'none'),
  ]);
  const aborted = [
    { producerId: 2n, firstOffset: 9 },
    { producerId: 1n, firstOffset: 3 },
  ];
  const seen: string[] = [];
  const next = readRecordSet(set, 0, ({ value }) => seen.push(String(value)), aborted);
  expect(next).toBe(11);
  expect(seen).toEqual(['plain', 'good', 'good beside it', 'good again', 'plain again']);
});
