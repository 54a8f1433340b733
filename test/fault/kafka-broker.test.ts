import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Publisher, SealedBatch } from '../../src/model/publisher.ts';
import { newKafkaCounts } from '../../src/model/server-counts.ts';
import type { KafkaCluster } from '../stack/handles.ts';
import { connected, makeBatch, newProducer, RecordedLog, told, TopicCorner } from '../stack/publishing.ts';
import { startKafka } from '../stack/stack.ts';
import { until } from '../stack/until.ts';

let cluster: KafkaCluster;
let brokers: readonly string[];
let topics: TopicCorner;

beforeAll(async () => {
  cluster = await startKafka();
  ({ brokers } = cluster);
  topics = await TopicCorner.open(brokers);
});
afterAll(async () => {
  await topics[Symbol.asyncDispose]();
  await cluster.dispose();
});

describe('F5: a broker frozen in mid-request', () => {
  test('uncertain in bounded time, the connection is dropped, the identical bytes end up there once', async () => {
    await using publisher = await connected(brokers, { connectTimeoutMs: 1_000, requestTimeoutMs: 3_000 });
    const topic = await topics.create(2);
    const producer = await newProducer(publisher);
    const [node] = cluster.nodes;
    const batches: SealedBatch[] = [];
    for (const partition of [0, 1]) {
      await sendsFirst(publisher, await makeBatch({ topic, partition, producer, values: ['before'] }));
      batches.push(await makeBatch({ topic, partition, producer, sequence: 1, values: ['a', 'b', 'c'] }));
    }
    await node.freeze();
    try {
      const startedMs = performance.now();
      const frozen = await Promise.all(batches.map((batch) => publisher.send(batch)));
      expect(frozen.map(({ as }) => as)).toEqual(['uncertain', 'uncertain']);
      expect(performance.now() - startedMs).toBeLessThan(15_000);
      // It accepts connections and says nothing on them.
      expect(told(await publisher.send(batches[0]))).toBe('refused KAFKA_TIMEOUT retry');
    } finally {
      await node.thaw();
    }
    for (const batch of batches) {
      await until(async () => (await publisher.send(batch)).as === 'acked', { withinMs: 30_000, what: 'the resend' });
    }
    expect(await topics.counts(topic)).toEqual([4, 4]);
  });

  test('close does not wait for it', async () => {
    const publisher = await connected(brokers, { requestTimeoutMs: 60_000 });
    const topic = await topics.create();
    const producer = await newProducer(publisher);
    await sendsFirst(publisher, await makeBatch({ topic, producer, values: ['a'] }));
    const [node] = cluster.nodes;
    await node.freeze();
    try {
      const sending = publisher.send(await makeBatch({ topic, producer, sequence: 1, values: ['b'] }));
      const startedMs = performance.now();
      await publisher.close(100);
      expect(performance.now() - startedMs).toBeLessThan(15_000);
      expect((await sending).as).toBe('uncertain');
    } finally {
      await node.thaw();
    }
  });
});

test('a broker that is killed and comes back: the identical bytes go through', async () => {
  const counts = newKafkaCounts();
  const over = { connectTimeoutMs: 5_000, requestTimeoutMs: 10_000 };
  await using publisher = await connected(brokers, over, new RecordedLog(), counts);
  const topic = await topics.create();
  const producer = await newProducer(publisher);
  await sendsFirst(publisher, await makeBatch({ topic, producer, values: ['a'] }));
  const { open } = counts;
  expect([...counts.connects]).toEqual([['FIRST', open]]);
  const [node] = cluster.nodes;
  await node.kill();
  await until(() => counts.open === 0, { withinMs: 20_000, what: 'the end of the connections' });
  const batch = await makeBatch({ topic, producer, sequence: 1, values: ['b'] });
  expect((await publisher.send(batch)).as).not.toBe('acked');
  expect(told(await publisher.send(batch))).toBe('refused KAFKA_UNREACHABLE retry');
  await node.start();
  await until(async () => (await publisher.send(batch)).as === 'acked', { withinMs: 60_000, what: 'the resend' });
  expect(await topics.counts(topic)).toEqual([2]);
  expect(counts.connects.get('FIRST')).toBe(open);
  expect(counts.connects.get('KAFKA_UNREACHABLE')).toBeGreaterThan(0);
  expect(counts.open).toBe(counts.connects.get('KAFKA_UNREACHABLE'));
});

/** A broker says for a moment that it does not lead what has just been made. */
async function sendsFirst(publisher: Publisher, batch: SealedBatch): Promise<void> {
  await until(async () => (await publisher.send(batch)).as === 'acked', { withinMs: 20_000, what: 'the first batch' });
}
