/** What the publisher makes of answers that a real broker cannot be made to give: against the fake broker. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { verdictOf } from '../../../src/kafka/fault-table.ts';
import { createPublisher } from '../../../src/kafka/publisher.ts';
import { UNKNOWN_TOPIC_GRACE_MS } from '../../../src/kafka/routes.ts';
import { RelayError } from '../../../src/model/fault.ts';
import type { Publisher, SealedBatch } from '../../../src/model/publisher.ts';
import { type Api, FakeBroker, type Reply } from '../../stack/fake-broker.ts';
import { until } from '../../stack/until.ts';
import { connected, kafkaSettings, makeBatch, RecordedLog, told } from '../../stack/publishing.ts';

const producer = { id: 1n, epoch: 0 };
let broker: FakeBroker;
let publisher: Publisher & AsyncDisposable;
let batch: SealedBatch;
let log: RecordedLog;

/** Nothing comes near these, unless it waits where it should not. */
const bounds = { connectTimeoutMs: 20_000, requestTimeoutMs: 40_000 };
/** Where a time-out is what is tested, that one is short. */
const SHORT_MS = 1_200;
/** Far above what is short, far below what is not. */
const IN_TIME_MS = 10_000;

beforeEach(async () => {
  broker = await FakeBroker.start();
  broker.topics.set('orders', { leaders: [1, 1, 1] });
  log = new RecordedLog();
  publisher = await connected([broker.address], bounds, log);
  batch = await makeBatch({ topic: 'orders', producer, values: ['a', 'b'] });
});

afterEach(async () => {
  await publisher[Symbol.asyncDispose]();
  await broker[Symbol.asyncDispose]();
});

/** In place of the publisher of all tests: its end is the same. */
const impatient = async (over: Partial<typeof bounds>): Promise<void> => {
  await publisher[Symbol.asyncDispose]();
  publisher = await connected([broker.address], { ...bounds, ...over }, log);
};

const sendTold = async (reply?: Reply): Promise<string> => {
  if (reply !== undefined) broker.script('Produce', reply);
  return told(await publisher.send(batch));
};

test('one topic-partition in each request, acks=all, the bytes as they were given', async () => {
  expect(await sendTold()).toBe('acked');
  expect(broker.received).toMatchObject([{ topic: 'orders', partition: 0, acks: -1, version: 7 }]);
  expect(broker.received[0].bytes.equals(batch.bytes)).toBe(true);
});

test.each([
  [3, 3],
  [5, 5],
  [7, 7],
  [13, 7],
])('a broker that offers Produce up to v%i gets v%i', async (offered, used) => {
  broker.versions.Produce = [0, offered];
  expect(await sendTold()).toBe('acked');
  expect(broker.received).toMatchObject([{ version: used }]);
});

test.each([
  [0, 2],
  [8, 12],
])('a broker that offers Produce v%i to v%i alone is not for us', async (min, max) => {
  broker.versions.Produce = [min, max];
  expect(await sendTold()).toBe('refused KAFKA_UNSUPPORTED_VERSION halt');
});

const codes = Array.from({ length: 136 }, (_, i) => i - 1).filter((errorCode) => ![0, 2, 46].includes(errorCode));

/** What halts at the start is thought to pass once we have been in. */
const AT_THE_DOOR = [33, 34, 58];

test.each([...codes, 999])('error code %i', async (errorCode) => {
  const { name, appended, ...verdict } = verdictOf(errorCode);
  const isOdd = verdict.disposition === 'reject' && appended === 'maybe';
  const disposition = isOdd || AT_THE_DOOR.includes(errorCode) ? 'retry' : verdict.disposition;
  const as = appended === 'maybe' ? 'uncertain' : 'refused';
  expect(await sendTold({ errorCode })).toBe(`${as} KAFKA_${name} ${disposition}`);
});

test('a duplicate sequence number is an acknowledgement', async () => {
  expect(await sendTold({ errorCode: 46 })).toBe('acked duplicate');
});

test('F7: a producer that the broker knows no more is to be renewed, and the next one is another', async () => {
  for (const errorCode of [45, 47, 59]) {
    expect(await sendTold({ errorCode })).toContain('refused');
    const [before, after] = [await publisher.newProducer(), await publisher.newProducer()];
    expect(after.id).toBeGreaterThan(before.id);
    expect(await sendTold()).toBe('acked');
  }
});

test('corrupt is the wire until it is the batch', async () => {
  broker.script('Produce', { errorCode: 2 }, { errorCode: 2 }, { errorCode: 2 });
  expect([await sendTold(), await sendTold(), await sendTold()]).toEqual([
    'refused KAFKA_CORRUPT_MESSAGE retry',
    'refused KAFKA_CORRUPT_MESSAGE retry',
    'refused KAFKA_CORRUPT_MESSAGE reject',
  ]);
});

test.each([133, 999])('code %i that nobody knows is retried with the same bytes, then believed', async (errorCode) => {
  broker.script('Produce', { errorCode }, { errorCode }, { errorCode });
  const { name } = verdictOf(errorCode);
  expect([await sendTold(), await sendTold(), await sendTold()]).toEqual([
    `uncertain KAFKA_${name} retry`,
    `uncertain KAFKA_${name} retry`,
    `refused KAFKA_${name} reject`,
  ]);
});

test('the right to write at all: a halt for who never had it, a pause for who had', async () => {
  expect(await sendTold({ errorCode: 31 })).toBe('refused KAFKA_CLUSTER_AUTHORIZATION_FAILED halt');
  await publisher.newProducer();
  expect(await sendTold({ errorCode: 31 })).toBe('refused KAFKA_CLUSTER_AUTHORIZATION_FAILED retry');
});

describe('an answer that does not name the batch', () => {
  test.each<[string, Reply]>([
    ['another partition', { partition: 1 }],
    ['another topic', { topic: 'ordres' }],
    ['no bytes at all', { raw: Buffer.alloc(0) }],
    ['noise', { raw: Buffer.from('ffffffffffffffffffffffffffffffffffff', 'hex') }],
  ])('%s: uncertain, over a new connection the next time', async (_what, reply) => {
    expect(await sendTold(reply)).toBe('uncertain KAFKA_RESPONSE_MISMATCH retry');
    expect(await sendTold()).toBe('acked');
    const [first, second] = broker.received;
    expect(second.connection).toBeGreaterThan(first.connection);
    expect(second.bytes.equals(first.bytes)).toBe(true);
  });
});

describe('F5: a connection that ends in mid-request', () => {
  test.each<[string, Reply]>([
    ['before the answer', { cut: 'closed' }],
    ['in the middle of the answer', { cut: 'half' }],
    ['after the append', { cut: 'closed', appends: true }],
  ])('%s: uncertain, and the identical bytes go over a new one', async (_what, reply) => {
    expect(await sendTold(reply)).toBe('uncertain KAFKA_UNREACHABLE retry');
    expect(await sendTold()).toBe('acked');
    expect(broker.received[1].connection).toBeGreaterThan(broker.received[0].connection);
    expect(broker.received[1].bytes.equals(broker.received[0].bytes)).toBe(true);
  });

  test('a size that cannot be ends the connection, not the process', async () => {
    broker.script('Produce', { cut: 'silent' });
    const sending = publisher.send(batch);
    await until(() => broker.received.length === 1, { withinMs: 20_000, what: 'the request' });
    broker.sendRaw(Buffer.from('fffffff0ffffffffffffffff', 'hex'));
    expect(told(await sending)).toBe('uncertain KAFKA_CLIENT_BUG retry');
    expect(await sendTold()).toBe('acked');
  });
});

describe('F5: a broker that does not answer', () => {
  test('uncertain within the time-out; the connection is dropped and the next send opens another', async () => {
    await impatient({ requestTimeoutMs: SHORT_MS });
    broker.script('Produce', { cut: 'silent' });
    const startedMs = performance.now();
    expect(await sendTold()).toBe('uncertain KAFKA_TIMEOUT retry');
    expect(performance.now() - startedMs).toBeLessThan(IN_TIME_MS);
    expect(await sendTold()).toBe('acked');
    expect(broker.received[1].connection).toBeGreaterThan(broker.received[0].connection);
    await until(() => broker.openConnections <= 2, { withinMs: 20_000, what: 'the silent connection is gone' });
  });

  test('everything in flight on that connection is uncertain, each batch for itself', async () => {
    const others = await Promise.all(
      [1, 2].map((partition) => makeBatch({ topic: 'orders', partition, producer, values: ['c'] })),
    );
    await impatient({ requestTimeoutMs: SHORT_MS });
    broker.script('Produce', { cut: 'silent' });
    const outcomes = await Promise.all([batch, ...others].map((each) => publisher.send(each)));
    expect(outcomes.map(told).slice(0, 1)).toEqual(['uncertain KAFKA_TIMEOUT retry']);
    expect(outcomes.map(({ as }) => as).sort()).not.toContain('refused');
  });

  test('one that accepts connections and no more is bounded by the connect time-out', async () => {
    await impatient({ connectTimeoutMs: SHORT_MS });
    broker.script('ApiVersions', { cut: 'silent' });
    const startedMs = performance.now();
    expect(await sendTold()).toMatch(/^refused KAFKA_TIMEOUT retry/);
    expect(performance.now() - startedMs).toBeLessThan(IN_TIME_MS);
    expect(broker.received).toEqual([]);
    expect(await sendTold()).toBe('acked');
  });

  test('a late answer to a request that was given up is nobody’s', async () => {
    await impatient({ requestTimeoutMs: SHORT_MS });
    broker.script('Produce', { delayMs: SHORT_MS + 100 });
    expect(await sendTold()).toBe('uncertain KAFKA_TIMEOUT retry');
    expect(await sendTold()).toBe('acked');
    await until(() => broker.settled === broker.asked.length, { withinMs: 20_000, what: 'the late answer' });
    expect(await sendTold()).toBe('acked');
  });
});

test('a connection that the broker closed while idle costs nothing', async () => {
  expect(await sendTold()).toBe('acked');
  broker.cutAll();
  await until(() => broker.openConnections === 0, { withinMs: 20_000, what: 'every connection is closed' });
  await until(() => log.lines.filter(({ event }) => event === 'kafka-connection-ended').length === 2, {
    withinMs: 20_000,
    what: 'both ends are noticed',
  });
  expect(await sendTold()).toBe('acked');
});

describe('connect', () => {
  const connecting = async (
    brokers: readonly string[],
    { signal = new AbortController().signal, ...over }: Partial<typeof bounds> & { signal?: AbortSignal } = {},
  ): Promise<string> => {
    const other = createPublisher(kafkaSettings(brokers, { ...bounds, ...over }), new RecordedLog());
    try {
      await other.connect(signal);
      return 'connected';
    } catch (error) {
      if (!(error instanceof RelayError)) throw error;
      return `${error.fault.code} ${error.fault.disposition}`;
    } finally {
      await other.close(0);
    }
  };

  test('one broker that answers is enough', async () => {
    const gone = await FakeBroker.start(2);
    await gone[Symbol.asyncDispose]();
    expect(await connecting([gone.address, broker.address])).toBe('connected');
  });

  test('nobody there, no such host: retry', async () => {
    const gone = await FakeBroker.start(2);
    await gone[Symbol.asyncDispose]();
    expect(await connecting([gone.address])).toBe('KAFKA_UNREACHABLE retry');
    expect(await connecting(['no-such-host.invalid:9092'])).toMatch(/^KAFKA_(UNREACHABLE|TIMEOUT) retry$/);
  });

  test('a broker that says nothing: retry, in bounded time', async () => {
    broker.script('ApiVersions', { cut: 'silent' });
    const startedMs = performance.now();
    expect(await connecting([broker.address], { connectTimeoutMs: SHORT_MS })).toBe('KAFKA_TIMEOUT retry');
    expect(performance.now() - startedMs).toBeLessThan(IN_TIME_MS);
  });

  test('something that is no Kafka: an end in bounded time, and no crash', async () => {
    broker.script('ApiVersions', { raw: Buffer.from('HTTP/1.1 400 Bad Request') });
    expect(await connecting([broker.address], { connectTimeoutMs: SHORT_MS })).toMatch(/^KAFKA_/);
  });

  test('can be given up', async () => {
    broker.script('ApiVersions', { cut: 'silent' });
    const abort = new AbortController();
    const attempt = connecting([broker.address], { signal: abort.signal });
    abort.abort();
    expect(await attempt).toBe('STOPPED halt');
    expect(await connecting([broker.address], { signal: abort.signal })).toBe('STOPPED halt');
  });
});

describe('leaders', () => {
  test('NOT_LEADER: the cluster is asked once, by however many lanes, and the batch goes to the new leader', async () => {
    await using other = await FakeBroker.start(2);
    broker.members = other.members = [broker, other];
    const topic = { leaders: [1, 1, 1] };
    broker.topics.set('orders', topic);
    const batches = await Promise.all(
      [0, 1, 2].map((partition) => makeBatch({ topic: 'orders', partition, producer, values: ['x'] })),
    );
    expect((await Promise.all(batches.map((each) => publisher.send(each)))).map(told)).toEqual(
      Array<string>(3).fill('acked'),
    );
    topic.leaders = [2, 2, 2];
    broker.script('Produce', { errorCode: 6 }, { errorCode: 6 }, { errorCode: 6 });
    const moved = await Promise.all(batches.map((each) => publisher.send(each)));
    expect(moved.map(told)).toEqual(Array<string>(3).fill('uncertain KAFKA_NOT_LEADER_OR_FOLLOWER retry'));
    const askedBefore = broker.asked.filter((api) => api === 'Metadata').length;
    const again = await Promise.all(batches.map((each) => publisher.send(each)));
    expect(again.map(told)).toEqual(Array<string>(3).fill('acked'));
    expect(broker.asked.filter((api) => api === 'Metadata').length - askedBefore).toBe(1);
    expect(other.appended.map(({ partition }) => partition).sort()).toEqual([0, 1, 2]);
  });

  test('a partition without a leader is refused, its neighbours go on', async () => {
    broker.topics.set('orders', { leaders: [-1, 1, 1] });
    const neighbour = await makeBatch({ topic: 'orders', partition: 1, producer, values: ['x'] });
    expect(await sendTold()).toBe('refused KAFKA_LEADER_NOT_AVAILABLE retry');
    expect(told(await publisher.send(neighbour))).toBe('acked');
    broker.topics.set('orders', { leaders: [1, 1, 1] });
    expect(await sendTold()).toBe('acked');
  });

  test('a leader that cannot be reached is looked up again at the others', async () => {
    const gone = await FakeBroker.start(2);
    broker.members = [broker, gone];
    const topic = { leaders: [2, 1, 1] };
    broker.topics.set('orders', topic);
    await publisher.topic('orders');
    await gone[Symbol.asyncDispose]();
    expect(await sendTold()).toBe('refused KAFKA_UNREACHABLE retry');
    topic.leaders = [1, 1, 1];
    expect(await sendTold()).toBe('acked');
  });

  test('metadata come from the next broker when the first is silent', async () => {
    await using other = await FakeBroker.start(2);
    broker.members = other.members = [broker, other];
    other.topics.set('late', { leaders: [2] });
    await impatient({ connectTimeoutMs: SHORT_MS });
    await publisher.topic('orders');
    broker.script('Metadata', { cut: 'silent' });
    expect(await publisher.topic('late')).toEqual({ as: 'known', partitions: 1, maxBatchBytes: null });
  });
});

describe('quotas', () => {
  test('a throttled broker is left alone for as long as it says', async () => {
    const startedMs = performance.now();
    expect(await sendTold({ throttleMs: 150 })).toBe('acked');
    expect(await sendTold()).toBe('acked');
    expect(performance.now() - startedMs).toBeGreaterThan(145);
  });

  test('longer than a send may wait: refused, nothing written, the connection stays', async () => {
    expect(await sendTold({ throttleMs: 60_000 })).toBe('acked');
    expect(await sendTold()).toBe('refused KAFKA_THROTTLING_QUOTA_EXCEEDED retry');
    expect(broker.received).toHaveLength(1);
  });
});

describe('a request that the broker will not read', () => {
  test('is told from a lost connection, and nothing else is held up by it', async () => {
    broker.maxRequestBytes = 2 << 20;
    const large = await makeBatch({ topic: 'orders', partition: 1, producer, values: ['x'.repeat(3 << 20)] });
    expect(told(await publisher.send(large))).toBe('uncertain KAFKA_UNREACHABLE retry');
    expect(await sendTold()).toBe('acked');
    const connection = broker.received[0].connection;
    expect(told(await publisher.send(large))).toBe('uncertain KAFKA_UNREACHABLE retry');
    expect(told(await publisher.send(large))).toBe('refused KAFKA_REQUEST_TOO_LARGE reject');
    expect(await sendTold()).toBe('acked');
    expect(broker.received[1].connection).toBe(connection);
  });

  test('a large batch that was only near an accident goes through the next time', async () => {
    const large = await makeBatch({ topic: 'orders', partition: 1, producer, values: ['x'.repeat(3 << 20)] });
    broker.script('Produce', { cut: 'closed' }, { cut: 'closed' });
    expect(told(await publisher.send(large))).toBe('uncertain KAFKA_UNREACHABLE retry');
    expect(told(await publisher.send(large))).toBe('uncertain KAFKA_UNREACHABLE retry');
    expect(told(await publisher.send(large))).toBe('acked');
  });
});

describe('what is too large', () => {
  const asked = (api: Api): number => broker.asked.filter((each) => each === api).length;
  const values = (bytes: number): string[] => ['x'.repeat(bytes / 2)];
  const limited = (bytes: number): void => {
    const config = { 'max.message.bytes': String(bytes), 'segment.bytes': '1048576' };
    broker.topics.set('orders', { leaders: [1, 1, 1], config });
  };

  /** As a rule it comes with the topic; a slow machine hears of it a moment later. */
  const isKnown = async (maxBatchBytes: number): Promise<void> => {
    const has = async () => ((await publisher.topic('orders')) as { maxBatchBytes?: number }).maxBatchBytes;
    await until(async () => (await has()) === maxBatchBytes, { withinMs: 20_000, what: `a limit of ${maxBatchBytes}` });
  };

  test('the limit comes with the topic, and is asked for again with it', async () => {
    limited(2000);
    await Promise.all([publisher.topic('orders'), publisher.topic('orders')]);
    await isKnown(2000);
    limited(2 << 20);
    expect(await publisher.topic('orders')).toEqual({ as: 'known', partitions: 3, maxBatchBytes: 2000 });
    await publisher.topic('orders', true);
    await isKnown(1 << 20);
    expect(asked('DescribeConfigs')).toBe(2);
  });

  test('for its topic is refused without being sent', async () => {
    limited(2000);
    await isKnown(2000);
    const large = await makeBatch({ topic: 'orders', producer, values: values(4000) });
    const outcome = await publisher.send(large);
    expect(told(outcome)).toBe('refused KAFKA_MESSAGE_TOO_LARGE reject');
    expect(outcome).toMatchObject({
      fault: { detail: `orders-0: a batch of ${large.bytes.length} bytes, the topic takes 2000` },
    });
    expect(broker.received).toEqual([]);
    expect(await sendTold()).toBe('acked');
  });

  test('exactly as large as its topic takes goes out', async () => {
    limited(batch.bytes.length);
    await isKnown(batch.bytes.length);
    expect(await sendTold()).toBe('acked');
    limited(batch.bytes.length - 1);
    await publisher.topic('orders', true);
    await isKnown(batch.bytes.length - 1);
    const same = await makeBatch({ topic: 'orders', producer, values: ['a', 'b'] });
    expect(told(await publisher.send(same))).toBe('refused KAFKA_MESSAGE_TOO_LARGE reject');
  });

  test('and may be in the topic already: only the broker can say that it is not', async () => {
    limited(4000);
    await publisher.topic('orders');
    expect(await sendTold({ cut: 'closed', appends: true })).toBe('uncertain KAFKA_UNREACHABLE retry');
    limited(50);
    await publisher.topic('orders', true);
    await isKnown(50);
    expect(await sendTold({ errorCode: 46 })).toBe('acked duplicate');
  });

  test.each<[string, Reply]>([
    ['is not told', { errorCode: 29 }],
    ['is told late', { delayMs: 15_000 }],
    ['does not come', { cut: 'silent' }],
  ])('a limit that %s holds nothing up', async (_what, reply) => {
    limited(50);
    broker.script('DescribeConfigs', reply);
    const startedMs = performance.now();
    expect(await publisher.topic('orders')).toEqual({ as: 'known', partitions: 3, maxBatchBytes: null });
    expect(performance.now() - startedMs).toBeLessThan(IN_TIME_MS);
    expect(await sendTold()).toBe('acked');
  });

  test('a limit that is told late counts from then on', async () => {
    limited(50);
    broker.script('DescribeConfigs', { delayMs: 400 });
    expect(await publisher.topic('orders')).toMatchObject({ maxBatchBytes: null });
    await isKnown(50);
  });

  test('a broker that does not tell is logged once, at debug', async () => {
    delete broker.versions.DescribeConfigs;
    for (const refresh of [false, true, true]) {
      expect(await publisher.topic('orders', refresh)).toMatchObject({ as: 'known', maxBatchBytes: null });
    }
    const lines = log.lines.filter(({ event }) => event === 'kafka-limits-unknown');
    expect(lines).toMatchObject([{ level: 'debug', fields: { code: 'KAFKA_UNSUPPORTED_VERSION' } }]);
  });

  test('for its broker is refused without being sent, where the broker tells', async () => {
    broker.maxRequestBytes = 2 << 20;
    broker.tellsItsConfig = true;
    const large = await makeBatch({ topic: 'orders', partition: 1, producer, values: values(4 << 20) });
    const outcome = await publisher.send(large);
    expect(told(outcome)).toBe('refused KAFKA_REQUEST_TOO_LARGE reject');
    expect(outcome).toMatchObject({ fault: { detail: expect.stringContaining(`reads ${2 << 20} at most`) as string } });
    expect(broker.received).toEqual([]);
    expect(told(await publisher.send({ ...large, bytes: Buffer.from(large.bytes) }))).toContain('refused');
    expect(asked('DescribeConfigs')).toBeLessThanOrEqual(2);
    expect(await sendTold()).toBe('acked');
  });
});

describe('topics', () => {
  test('an unknown one is unusable, and disturbs no other', async () => {
    const [unknown, known] = await Promise.all([publisher.topic('no-such'), publisher.topic('orders')]);
    expect(unknown).toMatchObject({
      as: 'unusable',
      fault: { code: 'KAFKA_UNKNOWN_TOPIC_OR_PARTITION', disposition: 'park' },
    });
    expect(known).toEqual({ as: 'known', partitions: 3, maxBatchBytes: null });
    expect(await sendTold()).toBe('acked');
  });

  test.each([
    [29, 'KAFKA_TOPIC_AUTHORIZATION_FAILED'],
    [17, 'KAFKA_INVALID_TOPIC_EXCEPTION'],
  ])('error %i parks it', async (errorCode, code) => {
    broker.topics.set('secret', { errorCode, leaders: [] });
    expect(await publisher.topic('secret')).toMatchObject({ as: 'unusable', fault: { code, disposition: 'park' } });
  });

  test('F2: a known one that is missing for a moment is not unusable, one that stays away is', async () => {
    await publisher.topic('orders');
    const { leaders } = broker.topics.get('orders')!;
    broker.topics.delete('orders');
    const code = 'KAFKA_UNKNOWN_TOPIC_OR_PARTITION';
    expect(await publisher.topic('orders', true)).toMatchObject({ fault: { code, disposition: 'retry' } });
    broker.topics.set('orders', { leaders });
    expect(await publisher.topic('orders', true)).toMatchObject({ as: 'known' });
    broker.topics.delete('orders');
    const parked = async () => {
      const state = await publisher.topic('orders', true);
      return state.as === 'unusable' && state.fault.disposition === 'park';
    };
    await until(parked, { withinMs: 6 * UNKNOWN_TOPIC_GRACE_MS, what: 'it is given up' });
  });

  test.each([
    [-1, 'KAFKA_UNKNOWN_SERVER_ERROR'],
    [999, 'KAFKA_ERROR_999'],
  ])('error %i on a refresh takes nothing away', async (errorCode, code) => {
    await publisher.topic('orders');
    broker.topics.set('orders', { errorCode, leaders: [] });
    expect(await publisher.topic('orders', true)).toMatchObject({ fault: { code, disposition: 'retry' } });
    expect(await publisher.topic('orders')).toMatchObject({ as: 'known', partitions: 3 });
    expect(await sendTold()).toBe('acked');
  });

  test('one that nobody can say anything about is not parked', async () => {
    await broker[Symbol.asyncDispose]();
    expect(await publisher.topic('orders')).toMatchObject({ as: 'unusable', fault: { disposition: 'retry' } });
  });
});

test('newProducer tells the broker’s refusal', async () => {
  broker.script('InitProducerId', { errorCode: 31 }, { errorCode: 14 });
  await expect(publisher.newProducer()).rejects.toMatchObject({
    fault: { code: 'KAFKA_CLUSTER_AUTHORIZATION_FAILED', disposition: 'halt' },
  });
  await expect(publisher.newProducer()).rejects.toMatchObject({
    fault: { code: 'KAFKA_COORDINATOR_LOAD_IN_PROGRESS', disposition: 'retry' },
  });
});

describe('close', () => {
  test('waits for what is in flight', async () => {
    broker.script('Produce', { delayMs: 100 });
    const sending = publisher.send(batch);
    await publisher.close(20_000);
    expect(told(await sending)).toBe('acked');
    expect(await sendTold()).toBe('refused STOPPED halt');
    await until(() => broker.openConnections === 0, { withinMs: 20_000, what: 'every connection is closed' });
  });

  test('cuts what does not end', async () => {
    broker.script('Produce', { cut: 'silent' });
    const sending = publisher.send(batch);
    await until(() => broker.received.length === 1, { withinMs: 20_000, what: 'the request' });
    const startedMs = performance.now();
    await publisher.close(50);
    expect(performance.now() - startedMs).toBeLessThan(IN_TIME_MS);
    expect(told(await sending)).toBe('uncertain STOPPED halt');
  });

  test('ends a connection that is just being opened', async () => {
    broker.script('ApiVersions', { cut: 'silent' });
    const sending = publisher.send(batch);
    await until(() => broker.asked.filter((api) => api === 'ApiVersions').length === 2, {
      withinMs: 20_000,
      what: 'the second connection',
    });
    await publisher.close(10);
    expect(told(await sending)).toBe('refused STOPPED halt');
  });
});

test('topics that are new do not wait for each other, and one topic is not asked for again at once', async () => {
  const names = Array.from({ length: 300 }, (_, i) => `topic-${i}`);
  for (const name of names) broker.topics.set(name, { leaders: [1] });
  const startedMs = performance.now();
  for (const name of names)
    expect(await publisher.topic(name)).toEqual({ as: 'known', partitions: 1, maxBatchBytes: null });
  expect(performance.now() - startedMs).toBeLessThan(IN_TIME_MS);
  await publisher.topic('topic-0', true);
  const againMs = performance.now();
  await publisher.topic('topic-0', true);
  expect(performance.now() - againMs).toBeGreaterThan(90);
});
