import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { letterBatch, partsOfRecord, partsOfRow, type RecordParts } from '../../../src/encoding/dead-letter.ts';
import { sealBatch } from '../../../src/encoding/record-batch.ts';
import { recordLength, writeRecord } from '../../../src/encoding/record.ts';
import { emptyRow, Form, type OutboxRow } from '../../../src/model/row.ts';
import { decodeBatch, type DecodedRecord } from './kafkajs-protocol.ts';
import { fill, headersOf, stated, toRow, valueOf } from './rows.ts';

const added = [
  ['dlq-a', 'ä'],
  ['dlq-b', ''],
] as const;
const asShown = { 'dlq-a': Buffer.from('ä'), 'dlq-b': Buffer.alloc(0) };

test('any record keeps key, value and headers, and gets headers behind them', async () => {
  await fc.assert(
    fc.asyncProperty(stated, fc.nat(2000), fc.nat(200), async (row, offset, before) => {
      const outboxRow = toRow(row);
      const end = before + recordLength(outboxRow, offset, row.timestampDeltaMs);
      const buffer = Buffer.alloc(end + 50, 0xff);
      writeRecord(buffer.subarray(0, end), before, outboxRow, offset, row.timestampDeltaMs);
      const record = await decode(partsOfRecord(buffer, before, end));
      expect(record).toMatchObject({ key: row.key, value: valueOf(row) });
      expect(record.headers).toEqual({ ...headersOf(row), ...asShown });
    }),
    { numRuns: 300 },
  );
});

test('any row is the same as the record of it', async () => {
  await fc.assert(
    fc.asyncProperty(stated, async (row) => {
      const { parts, isWhole } = partsOfRow(toRow(row));
      const record = await decode(parts);
      expect(isWhole).toBe(true);
      expect(record).toMatchObject({ key: row.key, value: valueOf(row) });
      expect(record.headers).toEqual({ ...headersOf(row), ...asShown });
    }),
    { numRuns: 300 },
  );
});

describe('a row that cannot become a record', () => {
  const row = (change: (row: OutboxRow) => void): OutboxRow => {
    const made = emptyRow();
    fill(made.key, Form.Text, Buffer.from('order-1'));
    fill(made.value, Form.Text, Buffer.from('{}'));
    fill(made.eventType, Form.Text, Buffer.from('paid'));
    fill(made.idempotencyKey, Form.Uuid, Buffer.alloc(16, 0xa5));
    fill(made.headers, Form.Text, Buffer.from('{"trace":"1"}'));
    change(made);
    return made;
  };
  const id = Buffer.from('a5a5a5a5-a5a5-a5a5-a5a5-a5a5a5a5a5a5');
  const eventType = Buffer.from('paid');

  test.each<[string, (row: OutboxRow) => void, Partial<DecodedRecord>]>([
    ['headers that are no object', (made) => fill(made.headers, Form.Text, Buffer.from('[1]')), {}],
    [
      'an idempotency key that is no UUID',
      (made) => fill(made.idempotencyKey, Form.Uuid, Buffer.from('seventeen bytes!!')),
      { headers: { id: Buffer.from('seventeen bytes!!'), 'event-type': eventType } },
    ],
    ['no idempotency key', (made) => (made.idempotencyKey.form = Form.Null), { headers: { 'event-type': eventType } }],
    [
      'a value that is no binary JSON',
      (made) => fill(made.value, Form.Json, Buffer.from('ff00', 'hex')),
      { value: Buffer.from('ff00', 'hex') },
    ],
    [
      'a tombstone',
      (made) => {
        made.value.form = Form.Null;
        made.key.form = Form.Null;
        made.idempotencyKey.form = Form.Null;
        made.eventType.form = Form.Null;
      },
      { key: null, value: null, headers: {} },
    ],
  ])('%s: the bytes of what it has', async (_what, change, expected) => {
    const { parts, isWhole } = partsOfRow(row(change));
    expect(isWhole).toBe(false);
    const { headers = { id, 'event-type': eventType }, ...rest } = expected;
    const record = await decode(parts);
    expect(record).toMatchObject({ key: Buffer.from('order-1'), value: Buffer.from('{}'), ...rest });
    expect(record.headers).toEqual({ ...headers, ...asShown });
  });

  test('keeps nothing of the buffer that it was read from', () => {
    const made = row((each) => fill(each.headers, Form.Text, Buffer.from('[1]')));
    const { parts } = partsOfRow(made);
    made.key.buffer.fill(0);
    made.value.buffer.fill(0);
    expect([String(parts.key), String(parts.value)]).toEqual(['order-1', '{}']);
  });
});

async function decode(parts: RecordParts): Promise<DecodedRecord> {
  const bytes = letterBatch(parts, added);
  sealBatch(bytes, bytes.length, {
    records: 1,
    baseTimestampMs: 5,
    maxTimestampMs: 5,
    producer: { id: 1n, epoch: 0 },
    baseSequence: 0,
    compression: 'none',
  });
  // Behind the batch's length, as the library has it.
  const { records } = await decodeBatch(bytes);
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ timestamp: '5', offset: '0', attributes: 0 });
  return records[0];
}
