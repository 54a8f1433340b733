import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { BATCH_HEADER_BYTES } from '../../../src/encoding/record-batch.ts';
import { recordBound, writeRecord } from '../../../src/encoding/record.ts';
import { systemClock } from '../../../src/model/clock.ts';
import type { Fault } from '../../../src/model/fault.ts';
import type { Publisher } from '../../../src/model/publisher.ts';
import { emptyRow, type Field, Form, type OutboxRow } from '../../../src/model/row.ts';
import type { Leader } from '../../../src/model/store.ts';
import { DeadLetters } from '../../../src/relay/dead-letters.ts';
import type { Letter } from '../../../src/relay/letter.ts';
import { kafkaClient } from '../../stack/kafka-client.ts';
import { connected, RecordedLog, TopicCorner } from '../../stack/publishing.ts';
import { type ReadRecord, readRecords } from '../../stack/read-records.ts';

const brokers = inject('brokers');
let topics: TopicCorner;

beforeAll(async () => {
  topics = await TopicCorner.open(brokers);
});
afterAll(() => topics[Symbol.asyncDispose]());

const failure: Fault = { code: 'KAFKA_MESSAGE_TOO_LARGE', disposition: 'reject', detail: 'orders-0: too large' };
const letter: Letter = { outbox: 0, id: 7n, topic: 'orders', fault: failure, attempts: 1 };
const leader = { lost: new AbortController().signal, maySend: () => true } as Leader;

const lettersTo = (publisher: Publisher, topic: string, log = new RecordedLog()): DeadLetters =>
  new DeadLetters({ publisher, clock: systemClock, log, leader, topic, outboxes: ['app.outbox'] });

interface Content {
  readonly key?: Buffer;
  readonly value?: Buffer;
  readonly headers?: string;
}

function rowOf({ key, value, headers }: Content): OutboxRow {
  const row = emptyRow();
  const fill = (field: Field, bytes: Buffer | undefined): void => {
    if (bytes !== undefined) Object.assign(field, { form: Form.Text, buffer: bytes, start: 0, end: bytes.length });
  };
  fill(row.key, key);
  fill(row.value, value);
  fill(row.headers, headers === undefined ? undefined : Buffer.from(headers));
  fill(row.eventType, Buffer.from('paid'));
  fill(row.idempotencyKey, Buffer.from('k-1'));
  return row;
}

/** A lane's batch, and where each row's record is in it. */
function batchOf(rows: readonly OutboxRow[]): { buffer: Buffer; ends: number[] } {
  const buffer = Buffer.alloc(rows.reduce((bytes, row) => bytes + recordBound(row), BATCH_HEADER_BYTES));
  const ends = [BATCH_HEADER_BYTES];
  for (const [i, row] of rows.entries()) ends.push(writeRecord(buffer, ends[i], row, i, 3 * i));
  return { buffer, ends };
}

const shown = ({ key, value, headers }: ReadRecord): object => ({ key, value, headers });
const withoutLetter = (record: ReadRecord): object => {
  const headers = Object.entries(record.headers).filter(([name]) => !name.startsWith('dlq-'));
  return shown({ ...record, headers: Object.fromEntries(headers) });
};

describe('key, value and headers are those that the record has, byte for byte', () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  const contents: readonly Content[] = [
    { key: Buffer.from('order-1'), value: bytes, headers: '{"trace":"ä","none":null,"deep":{"a":[1,2.50]}}' },
    { key: bytes, value: Buffer.from('a tombstone has none').subarray(0, 0) },
    { key: Buffer.from('gone') },
    { value: Buffer.from('no key') },
    {},
  ];

  test('as of a record in a batch, as of a row', async () => {
    await using publisher = await connected(brokers);
    const [dead, asRows, orders] = [await topics.create(3), await topics.create(3), await topics.create(1)];
    const rows = contents.map(rowOf);
    const { buffer, ends } = batchOf(rows);
    // What consumers of the topic itself would have got.
    const asSent = lettersTo(publisher, orders);
    const [ofRecords, ofRows] = [lettersTo(publisher, dead), lettersTo(publisher, asRows)];
    for (const [i, row] of rows.entries()) {
      const id = BigInt(i);
      expect(await asSent.sendRow(row, { ...letter, id })).toBeNull();
      expect(await ofRecords.sendRecord(buffer, ends[i], ends[i + 1], { ...letter, id })).toBeNull();
      expect(await ofRows.sendRow(row, { ...letter, id })).toBeNull();
    }
    const byRow = async (topic: string): Promise<ReadRecord[]> =>
      (await readRecords(kafkaClient(brokers), [topic])).sort(
        (a, b) => Number(String(a.headers['dlq-row-id'])) - Number(String(b.headers['dlq-row-id'])),
      );
    const read = await byRow(dead);
    expect(read.map(({ key, value }) => ({ key, value }))).toEqual(
      contents.map(({ key, value }) => ({ key: key ?? null, value: value ?? null })),
    );
    expect(read[0].headers).toMatchObject({
      id: Buffer.from('k-1'),
      'event-type': Buffer.from('paid'),
      trace: Buffer.from('ä'),
      deep: Buffer.from('{"a":[1,2.50]}'),
      'dlq-code': Buffer.from('KAFKA_MESSAGE_TOO_LARGE'),
      'dlq-outbox': Buffer.from('app.outbox'),
      'dlq-topic': Buffer.from('orders'),
    });
    expect((await byRow(asRows)).map(withoutLetter)).toEqual(read.map(withoutLetter));
  });
});

test('F1: too large for the dead-letter topic too: without its value, found before anything is sent', async () => {
  const log = new RecordedLog();
  await using publisher = await connected(brokers);
  const dead = await topics.create(1, { 'max.message.bytes': '2000' });
  const letters = lettersTo(publisher, dead, log);
  const large = rowOf({ key: Buffer.from('k'), value: Buffer.alloc(5000, 'x'), headers: '{"trace":"1"}' });
  const wide = rowOf({ key: Buffer.from('k'), headers: JSON.stringify({ trace: 'y'.repeat(5000) }) });
  expect(await letters.sendRow(large, letter)).toBeNull();
  expect(await letters.sendRow(wide, letter)).toBeNull();
  expect(await letters.sendRow(rowOf({ key: Buffer.from('k') }), letter)).toBeNull();
  const read = await readRecords(kafkaClient(brokers), [dead]);
  expect(read.map(({ value }) => value)).toEqual([null, null, null]);
  const [cut, bare, tombstone] = read.map(({ headers }) => headers);
  expect(cut).toMatchObject({
    trace: Buffer.from('1'),
    'dlq-value': Buffer.from('omitted'),
    'dlq-value-bytes': Buffer.from('5000'),
    'dlq-row-id': Buffer.from('7'),
  });
  expect(bare).toMatchObject({ 'dlq-headers': Buffer.from('omitted') });
  expect(bare).not.toHaveProperty('trace');
  expect(tombstone).not.toHaveProperty('dlq-value');
  expect(log.lines.map(({ event }) => event)).toEqual(['dead-letter-cut', 'dead-letter-cut']);
  expect(log.text()).not.toMatch(/xxx|yyy/);
});

test('many at once are there once each', async () => {
  await using publisher = await connected(brokers);
  const dead = await topics.create(3);
  const letters = lettersTo(publisher, dead);
  const sent = Array.from({ length: 60 }, (_, i) =>
    letters.sendRow(rowOf({ key: Buffer.from(`order-${i % 7}`), value: Buffer.from(String(i)) }), {
      ...letter,
      id: BigInt(i),
    }),
  );
  expect(await Promise.all(sent)).toEqual(Array(60).fill(null));
  const read = await readRecords(kafkaClient(brokers), [dead]);
  expect(read.map(({ value }) => Number(String(value))).sort((a, b) => a - b)).toEqual([...sent.keys()]);
});

test('F2: a dead-letter topic that is not there is told, in bounded time', async () => {
  await using publisher = await connected(brokers);
  const letters = lettersTo(publisher, topics.unused());
  expect(await letters.sendRow(rowOf({}), letter)).toMatchObject({
    code: 'KAFKA_UNKNOWN_TOPIC_OR_PARTITION',
    disposition: 'park',
  });
});
