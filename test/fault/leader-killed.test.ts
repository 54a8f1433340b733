import { expect, test } from 'vitest';
import type { Broker, KafkaCluster } from '../stack/handles.ts';
import { Load } from '../stack/load.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { startKafka } from '../stack/stack.ts';
import { eventually, until } from '../stack/until.ts';

test(
  'three brokers: a leader is killed under load, then the next one together with the relay',
  { timeout: 300_000 },
  async () => {
    await using kafka = await startKafka({ brokers: 3 });
    await using bed = await RelayBed.open({
      kafka,
      topics: { orders: 3 },
      config: { kafka: { requestTimeoutMs: 5_000 } },
    });
    let relay = await bed.start();
    const load = new Load(bed.servers.pool, { topic: bed.topics[0], writers: 2 });
    for (let kills = 1; kills <= 2; kills++) {
      const there = await bed.records();
      await until(async () => (await bed.records()) > there + 100, { withinMs: 30_000, what: 'records under load' });
      const lines = relay.lines().length;
      const victim = await leader(bed, kafka);
      await victim.kill();
      await relay.waitFor('lane-held', { after: lines });
      if (kills === 1) {
        await relay.waitFor('lane-flowing', { after: lines, withinMs: 30_000 });
      } else {
        // Other lanes have gone on, and their rows are marked; the position has not.
        await relay.kill();
        relay = await bed.start();
      }
      // Rows of all partitions go on, with two brokers of three.
      const published = await bed.count('outbox', "status = 'published'");
      const moved = async (): Promise<boolean> => (await bed.count('outbox', "status = 'published'")) > published + 100;
      await until(moved, { withinMs: 30_000, what: 'rows published by the brokers that are left' });
      if (kills === 1) {
        await victim.start();
        await inSync(bed, 3);
      }
    }
    await load.stop();
    await bed.retired('outbox', { withinMs: 30_000 });
    expect(relay.alive()).toBe(true);
    expect(relay.stderr()).not.toMatch(/crashed|[Uu]nhandled/);
    expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ lost: 0, reordered: 0 });
  },
);

/** The broker that leads the topic's first partition. */
async function leader(bed: RelayBed, kafka: KafkaCluster): Promise<Broker> {
  const [first] = (await partitions(bed)).filter(({ partitionId }) => partitionId === 0);
  return kafka.nodes.find(({ id }) => id === first.leader)!;
}

async function inSync(bed: RelayBed, replicas: number): Promise<void> {
  const all = async (): Promise<boolean> => (await partitions(bed)).every(({ isr }) => isr.length === replicas);
  await until(all, { withinMs: 30_000, what: `${replicas} replicas in sync`, everyMs: 100 });
}

function partitions(bed: RelayBed) {
  return eventually(
    async () => {
      const admin = bed.servers.kafka.admin();
      try {
        await admin.connect();
        return (await admin.fetchTopicMetadata({ topics: bed.topics })).topics[0].partitions;
      } finally {
        await admin.disconnect();
      }
    },
    { withinMs: 20_000, what: 'metadata of the topic', everyMs: 100 },
  );
}
