import { beforeEach, describe, expect, test } from 'vitest';
import { partitionOf } from '../../../src/encoding/murmur2.ts';
import { recordLength, writeRecord } from '../../../src/encoding/record.ts';
import type { Clock } from '../../../src/model/clock.ts';
import type { Disposition, Fault, FaultCode } from '../../../src/model/fault.ts';
import { fault as relayError } from '../../../src/model/fault.ts';
import type {
  ProducerIdentity,
  Publisher,
  SealedBatch,
  SendOutcome,
  TopicState,
} from '../../../src/model/publisher.ts';
import { emptyRow, Form, type OutboxRow } from '../../../src/model/row.ts';
import type { Leader } from '../../../src/model/store.ts';
import { DeadLetters } from '../../../src/relay/dead-letters.ts';
import type { Letter } from '../../../src/relay/letter.ts';
import { RecordedLog } from '../../stack/publishing.ts';
import { decodeBatch, type DecodedRecord } from '../encoding/kafkajs-protocol.ts';
import { fill } from '../encoding/rows.ts';

const PARTITIONS = 8;
const failure: Fault = { code: 'KAFKA_INVALID_RECORD', disposition: 'reject', detail: 'orders-0 (broker error 87)' };
const letter: Letter = { outbox: 1, id: 42n, topic: 'orders', fault: failure, attempts: 3 };

/** Time passes at once, as far as it is waited for. */
class FastClock implements Clock {
  #nowMs = 0;
  #timers: { atMs: number; call: () => void }[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, call: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, call };
    this.#timers.push(timer);
    // When nothing else is left to be done, the next timer is due.
    setImmediate(() => this.#ring());
    return () => (this.#timers = this.#timers.filter((each) => each !== timer));
  }

  #ring(): void {
    const next = this.#timers.sort((a, b) => a.atMs - b.atMs).shift();
    if (next === undefined) return;
    this.#nowMs = Math.max(this.#nowMs, next.atMs);
    next.call();
  }
}

type Answer = SendOutcome | 'silence';

class ScriptedPublisher implements Publisher {
  answers: Answer[] = [];
  always: Answer = { as: 'acked', duplicate: false };
  producers: (() => ProducerIdentity)[] = [];
  state: TopicState = { as: 'known', partitions: PARTITIONS, maxBatchBytes: null };
  readonly sent: SealedBatch[] = [];
  #lastId = 0n;

  connect = (): Promise<void> => Promise.resolve();
  close = (): Promise<void> => Promise.resolve();
  topic = (): Promise<TopicState> => Promise.resolve(this.state);

  newProducer(): Promise<ProducerIdentity> {
    return Promise.resolve().then(this.producers.shift() ?? (() => ({ id: ++this.#lastId, epoch: 0 })));
  }

  send(batch: SealedBatch): Promise<SendOutcome> {
    this.sent.push(batch);
    const answer = this.answers.shift() ?? this.always;
    return answer === 'silence' ? new Promise(() => undefined) : Promise.resolve(answer);
  }
}

const answer = (as: 'refused' | 'uncertain', code: FaultCode, disposition: Disposition): SendOutcome => ({
  as,
  fault: { code, disposition, detail: 'dead' },
});
const uncertain = answer('uncertain', 'KAFKA_TIMEOUT', 'retry');
const tooLarge = answer('refused', 'KAFKA_MESSAGE_TOO_LARGE', 'reject');

let publisher: ScriptedPublisher;
let log: RecordedLog;
let mayLead: boolean;
let lost: AbortController;
let letters: DeadLetters;

beforeEach(() => {
  publisher = new ScriptedPublisher();
  log = new RecordedLog();
  mayLead = true;
  lost = new AbortController();
  const leader = { lost: lost.signal, maySend: () => mayLead } as Leader;
  const outboxes = ['app.outbox', 'shop.events'];
  letters = new DeadLetters({ publisher, clock: new FastClock(), log, leader, topic: 'dead', outboxes });
});

const rowOf = (key: string | null = 'order-1', value: string | null = 'secret'): OutboxRow => {
  const row = emptyRow();
  if (key !== null) fill(row.key, Form.Text, Buffer.from(key));
  if (value !== null) fill(row.value, Form.Text, Buffer.from(value));
  fill(row.topic, Form.Text, Buffer.from('orders'));
  fill(row.idempotencyKey, Form.Text, Buffer.from('k1'));
  fill(row.headers, Form.Text, Buffer.from('{"trace":"t1"}'));
  return row;
};

const recordsOf = async ({ bytes }: SealedBatch): Promise<DecodedRecord> => (await decodeBatch(bytes)).records[0];
const textsOf = ({ headers }: DecodedRecord): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
const identityOf = async ({ bytes }: SealedBatch): Promise<[string, number]> => {
  const { producerId, firstSequence } = await decodeBatch(bytes);
  return [producerId, firstSequence];
};

describe('a letter', () => {
  test('says what happened, behind what the row was', async () => {
    const beforeMs = Date.now();
    expect(await letters.sendRow(rowOf(), letter)).toBeNull();
    const record = await recordsOf(publisher.sent[0]);
    expect([String(record.key), String(record.value)]).toEqual(['order-1', 'secret']);
    const { 'dlq-first-failure': first, 'dlq-last-failure': last, ...headers } = textsOf(record);
    expect(headers).toEqual({
      id: 'k1',
      trace: 't1',
      'dlq-reason': 'orders-0 (broker error 87)',
      'dlq-code': 'KAFKA_INVALID_RECORD',
      'dlq-attempts': '3',
      'dlq-outbox': 'shop.events',
      'dlq-row-id': '42',
      'dlq-topic': 'orders',
    });
    expect(first).toBe(last);
    expect(Date.parse(last)).toBeGreaterThanOrEqual(beforeMs);
    expect(last).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(record.timestamp).toBe(String(Date.parse(last)));
    expect(log.lines).toEqual([]);
  });

  test('says since when the row has failed, and keys that are no integers as people know them', async () => {
    await letters.sendRow(rowOf(), { ...letter, id: 'c3bc00', firstFailureMs: 0 });
    const headers = textsOf(await recordsOf(publisher.sent[0]));
    expect(headers).toMatchObject({ 'dlq-row-id': 'c3bc00', 'dlq-first-failure': '1970-01-01T00:00:00.000Z' });
  });

  test('of a record is the same as of its row, and does not need the buffer any more', async () => {
    const row = rowOf();
    const buffer = Buffer.alloc(100 + recordLength(row, 7, 5));
    writeRecord(buffer, 100, row, 7, 5);
    const sending = letters.sendRecord(buffer, 100, buffer.length, letter);
    buffer.fill(0);
    expect(await sending).toBeNull();
    await letters.sendRow(row, letter);
    const [ofRecord, ofRow] = await Promise.all(publisher.sent.map(recordsOf));
    expect(ofRecord.value).toEqual(ofRow.value);
    expect(Object.keys(ofRecord.headers)).toEqual(Object.keys(ofRow.headers));
  });

  test('names the topic that the row names, or none', async () => {
    await letters.sendRow(rowOf(), { ...letter, topic: null });
    const nowhere = rowOf();
    nowhere.topic.form = Form.Null;
    await letters.sendRow(nowhere, { ...letter, topic: null });
    const [named, none] = (await Promise.all(publisher.sent.map(recordsOf))).map(textsOf);
    expect(named['dlq-topic']).toBe('orders');
    expect(none).not.toHaveProperty('dlq-topic');
  });

  test('of a row whose headers cannot be read says so', async () => {
    const row = rowOf();
    fill(row.headers, Form.Text, Buffer.from('"none"'));
    await letters.sendRow(row, letter);
    const record = await recordsOf(publisher.sent[0]);
    expect(String(record.value)).toBe('secret');
    expect(textsOf(record)).toMatchObject({ id: 'k1', 'dlq-headers': 'omitted' });
  });

  test('goes where its key goes; without one, to the same place each time', async () => {
    for (const key of ['a', 'b', 'order-7']) {
      await letters.sendRow(rowOf(key), letter);
      const bytes = Buffer.from(key);
      expect(publisher.sent.at(-1)!.partition).toBe(partitionOf(bytes, 0, bytes.length, PARTITIONS));
    }
    for (const id of [1n, 2n, 3n, 1n]) await letters.sendRow(rowOf(null), { ...letter, id });
    const [one, two, three, again] = publisher.sent.slice(3).map(({ partition }) => partition);
    expect(again).toBe(one);
    expect(new Set([one, two, three]).size).toBeGreaterThan(1);
  });
});

describe('one that is too large', () => {
  test('goes without its value, and says how long that was', async () => {
    publisher.answers = [tooLarge];
    expect(await letters.sendRow(rowOf(), letter)).toBeNull();
    const record = await recordsOf(publisher.sent[1]);
    expect([String(record.key), record.value]).toEqual(['order-1', null]);
    expect(textsOf(record)).toMatchObject({ trace: 't1', 'dlq-value': 'omitted', 'dlq-value-bytes': '6' });
    expect(log.text()).toContain('dead-letter-cut');
    expect(log.text()).not.toContain('secret');
  });

  test('without its headers too, when that is not enough', async () => {
    publisher.answers = [tooLarge, tooLarge];
    expect(await letters.sendRow(rowOf(), letter)).toBeNull();
    const headers = textsOf(await recordsOf(publisher.sent[2]));
    expect(headers).toMatchObject({ 'dlq-value': 'omitted', 'dlq-headers': 'omitted', 'dlq-row-id': '42' });
    expect(headers).not.toHaveProperty('trace');
  });

  test('is given up when nothing is left to leave out', async () => {
    publisher.always = tooLarge;
    expect(await letters.sendRow(rowOf('k', null), letter)).toMatchObject({ code: 'KAFKA_MESSAGE_TOO_LARGE' });
    expect(publisher.sent).toHaveLength(2);
  });

  test('a tombstone is one still', async () => {
    expect(await letters.sendRow(rowOf('k', null), letter)).toBeNull();
    const record = await recordsOf(publisher.sent[0]);
    expect(record.value).toBeNull();
    expect(textsOf(record)).not.toHaveProperty('dlq-value');
  });
});

describe('numbers', () => {
  test('go up by one in each partition, which has its own identity', async () => {
    for (let i = 0; i < 3; i++) await letters.sendRow(rowOf('a'), letter);
    await letters.sendRow(rowOf('c'), letter);
    expect(await Promise.all(publisher.sent.map(identityOf))).toEqual([
      ['1', 0],
      ['1', 1],
      ['1', 2],
      ['2', 0],
    ]);
  });

  test('letters that come together wait for each other, and have numbers of their own', async () => {
    publisher.answers = [uncertain];
    const sending = Array.from({ length: 3 }, () => letters.sendRow(rowOf('a'), letter));
    expect(await Promise.all(sending)).toEqual([null, null, null]);
    const numbers = (await Promise.all(publisher.sent.map(identityOf))).map(([, sequence]) => sequence);
    expect(numbers).toEqual([0, 0, 1, 2]);
  });

  test('what nobody knows is answered by the identical bytes', async () => {
    publisher.answers = [uncertain, uncertain, { as: 'acked', duplicate: true }];
    expect(await letters.sendRow(rowOf(), letter)).toBeNull();
    const [first, ...others] = publisher.sent;
    expect(others).toHaveLength(2);
    for (const other of others) expect(other.bytes).toBe(first.bytes);
  });

  test('a number that may be taken is not used for another letter', async () => {
    publisher.always = uncertain;
    expect(await letters.sendRow(rowOf(), letter)).toMatchObject({ code: 'KAFKA_TIMEOUT', disposition: 'retry' });
    publisher.always = { as: 'acked', duplicate: false };
    expect(await letters.sendRow(rowOf('order-1', 'another'), letter)).toBeNull();
    expect(await identityOf(publisher.sent[0])).toEqual(['1', 0]);
    expect(await identityOf(publisher.sent.at(-1)!)).toEqual(['2', 0]);
  });

  test('F7: an identity that the broker knows no more is replaced', async () => {
    publisher.answers = [answer('refused', 'KAFKA_UNKNOWN_PRODUCER_ID', 'renew')];
    expect(await letters.sendRow(rowOf(), letter)).toBeNull();
    expect(await Promise.all(publisher.sent.map(identityOf))).toEqual([
      ['1', 0],
      ['2', 0],
    ]);
  });
});

describe('what ends it', () => {
  test.each<[string, Answer, FaultCode]>([
    [
      'what cannot be written',
      answer('refused', 'KAFKA_TOPIC_AUTHORIZATION_FAILED', 'park'),
      'KAFKA_TOPIC_AUTHORIZATION_FAILED',
    ],
    ['what is refused', answer('refused', 'KAFKA_INVALID_RECORD', 'reject'), 'KAFKA_INVALID_RECORD'],
  ])('%s, at once', async (_what, always, code) => {
    publisher.always = always;
    expect(await letters.sendRow(rowOf(), letter)).toMatchObject({ code });
    expect(publisher.sent).toHaveLength(1);
  });

  test.each<[string, Answer, FaultCode]>([
    ['no leader', answer('refused', 'KAFKA_LEADER_NOT_AVAILABLE', 'retry'), 'KAFKA_LEADER_NOT_AVAILABLE'],
    ['no answer', 'silence', 'KAFKA_TIMEOUT'],
  ])('time, with %s', async (_what, always, code) => {
    publisher.always = always;
    expect(await letters.sendRow(rowOf(), letter)).toMatchObject({ code, disposition: 'retry' });
    publisher.always = { as: 'acked', duplicate: false };
    expect(await letters.sendRow(rowOf(), letter)).toBeNull();
    expect((await identityOf(publisher.sent.at(-1)!))[0]).toBe('2');
  });

  test('a topic that is not there', async () => {
    const fault: Fault = { code: 'KAFKA_UNKNOWN_TOPIC_OR_PARTITION', disposition: 'park', detail: 'dead' };
    publisher.state = { as: 'unusable', fault };
    expect(await letters.sendRow(rowOf(), letter)).toBe(fault);
    expect(publisher.sent).toEqual([]);
  });

  test('no identity to be had: a refusal at once, otherwise when the time is over', async () => {
    const refuse = (disposition: Disposition) => () => {
      throw relayError('KAFKA_COORDINATOR_LOAD_IN_PROGRESS', disposition, 'x');
    };
    publisher.producers = [refuse('retry'), refuse('retry')];
    expect(await letters.sendRow(rowOf(), letter)).toBeNull();
    publisher.producers = [refuse('halt')];
    expect(await letters.sendRow(rowOf('other'), letter)).toMatchObject({ disposition: 'halt' });
    publisher.producers = Array.from({ length: 1000 }, () => refuse('retry'));
    expect(await letters.sendRow(rowOf('another'), letter)).toMatchObject({ disposition: 'retry' });
  });

  test('leadership: nothing is sent without it', async () => {
    mayLead = false;
    expect(await letters.sendRow(rowOf(), letter)).toMatchObject({ code: 'KAFKA_TIMEOUT' });
    lost.abort();
    expect(await letters.sendRow(rowOf(), letter)).toMatchObject({ code: 'LEADERSHIP_LOST' });
    expect(publisher.sent).toEqual([]);
  });

  test('leadership that comes back in time is enough', async () => {
    mayLead = false;
    const sending = letters.sendRow(rowOf(), letter);
    setImmediate(() => (mayLead = true));
    expect(await sending).toBeNull();
  });
});
