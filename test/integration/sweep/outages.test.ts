import { setTimeout as sleep } from 'node:timers/promises';
import type { Admin } from 'kafkajs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { partitionOf } from '../../../src/encoding/murmur2.ts';
import { comparePositions } from '../../../src/model/position.ts';
import { full, isTenth } from '../../stack/full.ts';
import type { KafkaCluster } from '../../stack/handles.ts';
import { kafkaClient } from '../../stack/kafka-client.ts';
import { logHead } from '../../stack/log-head.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { createTopics } from '../../stack/patient-admin.ts';
import { startKafka } from '../../stack/stack.ts';
import { until } from '../../stack/until.ts';
import { inSession, insertText, said, startTailing, sweepBed } from './sweep-bed.ts';

const IMPATIENT = {
  kafka: { requestTimeoutMs: 1_000, connectTimeoutMs: 500 },
  relay: { laneStallMs: 700 },
};
const MIB = 1_048_576;
/** So many times longer than the longest back-off of a row. */
const OUTAGE_MS = full(8_000, 40_000);

let kafka: KafkaCluster;
let admin: Admin;

// Of two brokers the second is no controller: the first goes on without it.
beforeAll(async () => {
  kafka = await startKafka({ brokers: 2, properties: { 'default.replication.factor': '1' } });
  admin = kafkaClient(kafka.brokers).admin();
  await admin.connect();
});
afterAll(async () => {
  await admin.disconnect();
  await kafka.dispose();
});

test('F4 H2 Kafka is frozen for many tries: no row fails or loses an attempt, its rows are free for the application', async () => {
  await using bed = await sweepBed({ kafka, config: IMPATIENT });
  const { pool, topic } = bed.servers;
  const rows = { topic: topic('orders'), aggregates: 6 };
  const relay = await startTailing(bed, { failures: { maxAttempts: 2 } });
  await insertRows(pool, { ...rows, count: 60 });
  await bed.retired();
  await Promise.all(kafka.nodes.map((node) => node.freeze()));
  const frozenMs = performance.now();
  try {
    await insertRows(pool, { ...rows, count: 200, perTransaction: 5 });
    await until(() => said(relay, 'scope-parked') > 0, { withinMs: 20_000, what: 'a lane parked' });
    await until(async () => (await bed.count('outbox', "status = 'processing'")) > 0, {
      withinMs: 20_000,
      what: 'rows claimed by the sweep',
      everyMs: 2,
    });
    // Whatever the relay has in hand, nobody waits for Kafka.
    await inSession(bed, async (application) => {
      let free = 0;
      const claimed = "SELECT id FROM outbox WHERE status = 'processing' FOR UPDATE NOWAIT";
      for (let n = 0; n < 40; n++) {
        const isFree = await application.query(claimed).then(
          () => true,
          () => false,
        );
        if (isFree) free++;
        await sleep(10);
      }
      // But for the moments in which the relay itself writes them.
      expect(free).toBeGreaterThan(20);
      await application.query('SET SESSION innodb_lock_wait_timeout = 5');
      await application.query("UPDATE outbox SET event_type = event_type WHERE status <> 'published'");
      await application.query(insertText([{ topic: rows.topic, key: 'aggregate-0' }]));
      await application.query("DELETE FROM outbox WHERE status = 'published' AND id <= 10");
    });
    await until(() => performance.now() - frozenMs > OUTAGE_MS, {
      withinMs: 2 * OUTAGE_MS,
      what: 'the end of the outage',
    });
  } finally {
    await Promise.all(kafka.nodes.map((node) => node.thaw()));
  }
  await insertRows(pool, { ...rows, count: 50 });
  await bed.retired('outbox', { withinMs: 40_000 });
  expect(await bed.count('outbox', "status <> 'published' OR attempts > 0 OR last_error IS NOT NULL")).toBe(0);
  // Ten of the first are deleted: their records belong to no row any more.
  const audit = bed.expectDelivered({ faultInjected: true });
  await expect(audit).rejects.toThrow(/"committed":301,"delivered":301,"lost":0,"reordered":0,"altered":10,/);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test.skipIf(isTenth)(
  'H2 Kafka is frozen when the topic of kept rows is met first: they wait for it, and the relay does not halt',
  async () => {
    const config = { ...IMPATIENT, relay: { laneStallMs: 1_500 } };
    await using bed = await sweepBed({ kafka, outboxes: [{ table: 'outbox', retire: 'keep' }], config });
    const { pool, topic } = bed.servers;
    const relay = await bed.start();
    await relay.waitFor('tail-flowing');
    await Promise.all(kafka.nodes.map((node) => node.freeze()));
    try {
      await insertRows(pool, { topic: topic('orders'), aggregates: 3, count: 10 });
      // The first one was given up after `laneStallMs`.
      await until(() => said(relay, 'topic-unavailable') > 1, { withinMs: 20_000, what: 'the topic asked for anew' });
    } finally {
      await Promise.all(kafka.nodes.map((node) => node.thaw()));
    }
    await until(async () => (await bed.records()) === 10, { withinMs: 20_000, what: 'the kept rows in their topic' });
    expect((await relay.kill('SIGTERM')).code).toBe(0);
  },
);

test('S20 one partition without a leader: it leaves memory, all others flow and the checkpoint passes; it comes back in order', async () => {
  await using bed = await sweepBed({
    kafka,
    topics: { other: 1 },
    config: {
      ...IMPATIENT,
      relay: { ...IMPATIENT.relay, maxInFlightBytes: 2 * MIB },
      kafka: { ...IMPATIENT.kafka, batchBytes: 131_072 },
    },
  });
  const { pool, topic } = bed.servers;
  const stuck = kafka.nodes[1];
  const name = topic('orders');
  const replicaAssignment = [1, 2, 1].map((broker, partition) => ({ partition, replicas: [broker] }));
  await createTopics(admin, [{ topic: name, replicaAssignment }]);

  const first = await startTailing(bed);
  const rows = { topic: name, aggregates: 12, payloadBytes: 1_000 };
  await insertRows(pool, { ...rows, count: 120 });
  await bed.retired();
  const stuckKeys = Array.from({ length: 12 }, (_, n) => `aggregate-${n}`).filter((key) => {
    return partitionOf(Buffer.from(key), 0, key.length, 3) === 1;
  });
  expect(stuckKeys.length).toBeGreaterThan(0);
  const inStuck = `aggregate_id IN (${stuckKeys.map((key) => `'${key}'`).join(', ')})`;
  await stuck.freeze();
  try {
    // Of the stuck partition alone more than the pool holds.
    await insertRows(pool, { ...rows, count: 9_600, perTransaction: 100 });
    await first.waitFor('scope-parked', { fields: { scope: 'topic-partition', partition: 1 }, withinMs: 30_000 });
    await bed.retired('outbox', { where: `NOT ${inStuck}`, withinMs: 40_000 });
    expect(await bed.count('outbox', `${inStuck} AND status <> 'published'`)).toBe(800 * stuckKeys.length);
    const head = await logHead((text) => bed.sql(text));
    await insertRows(pool, { ...rows, count: 12 });
    await until(
      async () => {
        const saved = await bed.saved();
        return saved !== null && comparePositions(saved, head) >= 0;
      },
      { withinMs: 20_000, what: 'the checkpoint behind all that' },
    );
    // A restart knows it, and repeats nothing of the others.
    expect((await first.kill('SIGTERM', 30_000)).code).toBe(0);
    const second = await bed.start();
    await insertRows(pool, { ...rows, count: 120 });
    await bed.retired('outbox', { where: `NOT ${inStuck}`, withinMs: 20_000 });
    expect(await bed.count('outbox', `${inStuck} AND status = 'published'`)).toBe(10 * stuckKeys.length);
    expect(second.alive()).toBe(true);
  } finally {
    await stuck.thaw();
  }
  await bed.retired('outbox', { withinMs: 40_000 });
  await insertRows(pool, { ...rows, count: 120 });
  await bed.retired('outbox', { withinMs: 20_000 });
  const figures = await bed.expectDelivered({ topics: [name], faultInjected: true });
  expect(figures).toMatchObject({ committed: 9_972, delivered: 9_972, lost: 0, reordered: 0 });
  expect(await bed.count('outbox', 'attempts > 0')).toBe(0);
});
