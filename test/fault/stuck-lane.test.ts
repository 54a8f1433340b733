import { afterAll, beforeAll, expect, test } from 'vitest';
import { partitionOf } from '../../src/encoding/murmur2.ts';
import { comparePositions } from '../../src/model/position.ts';
import type { KafkaCluster } from '../stack/handles.ts';
import { kafkaClient } from '../stack/kafka-client.ts';
import { logHead } from '../stack/log-head.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { createTopics } from '../stack/patient-admin.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { startKafka } from '../stack/stack.ts';
import { until } from '../stack/until.ts';

const PARTITIONS = 3;
/** The one that only the second broker has. */
const STUCK = 1;
const AGGREGATES = 30;
const STALL_MS = 2_000;

let kafka: KafkaCluster;

beforeAll(async () => {
  kafka = await startKafka({ brokers: 2 });
});
afterAll(() => kafka.dispose());

async function createTopic(topic: string): Promise<void> {
  const admin = kafkaClient(kafka.brokers).admin();
  await admin.connect();
  const replicaAssignment = Array.from({ length: PARTITIONS }, (_, partition) => ({
    partition,
    replicas: [partition === STUCK ? 2 : 1],
  }));
  await createTopics(admin, [{ topic, replicaAssignment }]);
  await admin.disconnect();
}

test('S20 a partition without a leader is set aside: others flow, the position passes it, a crash repeats nothing', async () => {
  await using bed = await RelayBed.open({
    ...{ kafka, topics: {} },
    config: {
      kafka: { connectTimeoutMs: 500, requestTimeoutMs: 1_500 },
      relay: { laneStallMs: STALL_MS },
      failures: { backOffCapMs: 2_000 },
    },
  });
  const { pool, topic: full } = bed.servers;
  const topic = full('split');
  await createTopic(topic);
  const relay = await bed.start();
  const insert = (count: number) =>
    insertRows(pool, { topic, count, aggregates: AGGREGATES, perTransaction: 7, payloadBytes: 300 });
  const stuck = Array.from({ length: AGGREGATES }, (_, n) => `aggregate-${n}`).filter((name) => {
    const key = Buffer.from(name);
    return partitionOf(key, 0, key.length, PARTITIONS) === STUCK;
  });
  expect(stuck.length).toBeGreaterThan(2);
  const isStuck = `aggregate_id IN ('${stuck.join("', '")}')`;
  await insert(100);
  await bed.retired();

  await kafka.nodes[1].kill();
  await insert(400);
  const parked = await relay.waitFor('scope-parked', { withinMs: 30_000 });
  expect(parked).toMatchObject({ scope: 'topic-partition', topic, partition: STUCK });
  await bed.retired('outbox', { where: `NOT ${isStuck}` });
  const waiting =
    (await bed.count('outbox', isStuck)) - (await bed.count('outbox', `${isStuck} AND status = 'published'`));
  expect(waiting).toBeGreaterThan(50);
  // The position does not wait for it.
  const head = await logHead((text) => bed.sql(text));
  await insert(60);
  await until(async () => comparePositions((await bed.saved())!, head) > 0, { withinMs: 20_000, what: 'the position' });
  await bed.retired('outbox', { where: `NOT ${isStuck}` });

  await relay.kill();
  await insert(200);
  const again = await bed.start();
  await bed.retired('outbox', { where: `NOT ${isStuck}` });
  expect(await bed.count('outbox', `${isStuck} AND attempts > 0`)).toBe(0);

  const lines = again.lines().length;
  await kafka.nodes[1].start();
  await again.waitFor('scope-released', { fields: { scope: 'topic-partition' }, after: lines, withinMs: 30_000 });
  await insert(100);
  await bed.retired('outbox', { withinMs: 30_000 });
  expect(await bed.expectDelivered({ topics: [topic] })).toMatchObject({ committed: 860, duplicates: 0 });
  expect((await again.kill('SIGTERM')).code).toBe(0);
});
