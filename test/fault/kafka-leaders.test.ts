import type { Admin } from 'kafkajs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isTenth } from '../stack/full.ts';
import type { Publisher, SealedBatch } from '../../src/model/publisher.ts';
import type { Broker, KafkaCluster } from '../stack/handles.ts';
import { kafkaClient } from '../stack/kafka-client.ts';
import { createTopics, topicOffsets } from '../stack/patient-admin.ts';
import { startKafka } from '../stack/stack.ts';
import { until } from '../stack/until.ts';
import { connected, makeBatch, newProducer } from '../stack/publishing.ts';

const BOUNDS = { connectTimeoutMs: 500, requestTimeoutMs: 2000 };
const PARTITIONS = [0, 1, 2];

let cluster: KafkaCluster;
let admin: Admin;

beforeAll(async () => {
  cluster = await startKafka({
    brokers: 3,
    properties: { 'broker.session.timeout.ms': '3000', 'replica.lag.time.max.ms': '2000' },
  });
  admin = kafkaClient(cluster.brokers).admin();
  await admin.connect();
});
afterAll(async () => {
  await admin.disconnect();
  await cluster.dispose();
});

/** A topic whose partition i is led by broker i + 1. */
async function newTopic(topic: string): Promise<void> {
  const replicaAssignment = PARTITIONS.map((partition) => ({
    partition,
    replicas: [0, 1, 2].map((i) => ((partition + i) % 3) + 1),
  }));
  await createTopics(admin, [{ topic, replicaAssignment }]);
}

const leaderOf = (partition: number): Broker => cluster.nodes[partition];

class Lane {
  sequence = 0;
  readonly outcomes: string[] = [];
  readonly #publisher: Publisher;
  readonly #next: (sequence: number) => Promise<SealedBatch>;

  constructor(publisher: Publisher, next: (sequence: number) => Promise<SealedBatch>) {
    this.#publisher = publisher;
    this.#next = next;
  }

  /** Sends the next batch until it is acknowledged, the identical bytes each time. */
  async deliver(withinMs: number): Promise<void> {
    const batch = await this.#next(this.sequence++);
    await until(
      async () => {
        const outcome = await this.#publisher.send(batch);
        this.outcomes.push(outcome.as === 'acked' ? 'acked' : outcome.fault.code);
        return outcome.as === 'acked';
      },
      { withinMs, what: `batch ${this.sequence} is acknowledged (${this.outcomes.slice(-5).join(', ')})`, everyMs: 50 },
    );
  }
}

async function lanes(publisher: Publisher, topic: string): Promise<Lane[]> {
  const producer = await newProducer(publisher);
  return PARTITIONS.map(
    (partition) =>
      new Lane(publisher, (sequence) => makeBatch({ topic, partition, producer, sequence, values: [`${sequence}`] })),
  );
}

async function counts(topic: string): Promise<number[]> {
  const offsets = await topicOffsets(admin, topic);
  return offsets.sort((a, b) => a.partition - b.partition).map(({ high }) => Number(high));
}

test.skipIf(isTenth).each(['kill', 'freeze'] as const)(
  'a leader is lost (%s): the others go on, its partition moves, nothing is lost or doubled',
  async (how) => {
    const topic = `moves-${how}`;
    await newTopic(topic);
    await using publisher = await connected(cluster.brokers, BOUNDS);
    const all = await lanes(publisher, topic);
    for (const lane of all) await lane.deliver(30_000);
    const lost = leaderOf(2);
    await lost[how]();
    try {
      const moving = all[2].deliver(40_000);
      await Promise.all([moving, ...all.slice(0, 2).map((lane) => lane.deliver(40_000))]);
      for (const lane of all) await lane.deliver(30_000);
      expect(all[2].outcomes.some((outcome) => outcome !== 'acked')).toBe(true);
    } finally {
      await (how === 'kill' ? lost.start() : lost.thaw());
    }
    await until(
      async () => JSON.stringify(await counts(topic)) === JSON.stringify(all.map(({ sequence }) => sequence)),
      {
        withinMs: 20_000,
        what: 'exactly one record for each batch',
        everyMs: 200,
      },
    );
  },
);

test('S20 at the publisher: a partition that loses all its replicas holds up no other', async () => {
  const topic = 'one-replica';
  const replicaAssignment = PARTITIONS.map((partition) => ({ partition, replicas: [partition + 1] }));
  await createTopics(admin, [{ topic, replicaAssignment }]);
  await using publisher = await connected(cluster.brokers, BOUNDS);
  const all = await lanes(publisher, topic);
  for (const lane of all) await lane.deliver(30_000);
  const lost = leaderOf(2);
  await lost.kill();
  const stuck = all[2].deliver(60_000);
  await until(() => all[2].outcomes.includes('KAFKA_LEADER_NOT_AVAILABLE'), { withinMs: 30_000, what: 'no leader' });
  // Held up each time, they would take 20 request time-outs.
  const startedMs = performance.now();
  for (let i = 0; i < 20; i++) await Promise.all(all.slice(0, 2).map((lane) => lane.deliver(20_000)));
  expect(performance.now() - startedMs).toBeLessThan((20 * BOUNDS.requestTimeoutMs) / 2);
  await lost.start();
  await stuck;
  expect(await counts(topic)).toEqual(all.map(({ sequence }) => sequence));
});
