import { type Admin, ConfigResourceTypes } from 'kafkajs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isTenth } from '../stack/full.ts';
import type { Broker, KafkaCluster } from '../stack/handles.ts';
import { Load } from '../stack/load.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { Proxy } from '../stack/proxy.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { type CliProcess, startCli } from '../stack/relay-process.ts';
import { startKafka } from '../stack/stack.ts';
import { until } from '../stack/until.ts';

/** Short, so that a broker that says nothing is soon known for it. */
const IMPATIENT = { kafka: { connectTimeoutMs: 500, requestTimeoutMs: 1_500 } };

let proxy: Proxy;
let kafka: KafkaCluster;
let broker: Broker;

beforeAll(async () => {
  proxy = await Proxy.open({ host: '127.0.0.1', port: 9 });
  kafka = await startKafka({ listeners: { proxied: { through: [`127.0.0.1:${proxy.port}`] } } });
  const [host, port] = kafka.listener('proxied')[0].split(':');
  proxy.target = { host, port: Number(port) };
  [broker] = kafka.nodes;
});
afterAll(async () => {
  await kafka.dispose();
  await proxy[Symbol.asyncDispose]();
});

test('F3 a broker is down while rows come, and the relay is killed: nothing passes the first row that is not out', async () => {
  await using bed = await RelayBed.open({ kafka, config: IMPATIENT });
  const topic = bed.servers.topic('orders');
  const relay = await bed.start();
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.retired();
  const before = await bed.saved();
  const nothingMoved = async (): Promise<void> => {
    expect(await bed.saved()).toMatchObject({ file: before?.file, offset: before?.offset });
    expect(await bed.count('outbox', 'published_at IS NOT NULL')).toBe(10);
    expect(await bed.count('outbox', 'attempts > 0')).toBe(0);
  };

  await broker.kill();
  await insertRows(bed.servers.pool, { topic, count: 100, perTransaction: 3 });
  await relay.waitFor('lane-held');
  await nothingMoved();
  await relay.kill();
  await insertRows(bed.servers.pool, { topic, count: 100, perTransaction: 3 });
  const again = await bed.launch();
  await again.waitFor('kafka-broker-lost');
  await nothingMoved();
  await broker.start();
  await bed.retired();
  // Nothing of the second hundred could be sent before: those that were come from the one batch of each lane.
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ committed: 210, lost: 0, reordered: 0 });
  expect(await bed.count('outbox', "status = 'published' AND published_at IS NOT NULL")).toBe(210);
});

test('F5 a broker frozen in mid-request: the wait is bounded, the relay lives, nothing is sent twice', async () => {
  await using bed = await RelayBed.open({ kafka, config: IMPATIENT });
  const relay = await bed.start();
  const load = new Load(bed.servers.pool, { topic: bed.servers.topic('orders') });
  try {
    await until(async () => (await bed.records()) > 50, { withinMs: 20_000, what: 'records under load' });
    const startedMs = performance.now();
    await broker.freeze();
    await relay.waitFor('lane-held', { withinMs: 30_000 });
    expect(performance.now() - startedMs).toBeLessThan(15_000);
    const [published, committed] = [await bed.count('outbox', "status = 'published'"), load.committed];
    await until(() => load.committed > committed + 100, { withinMs: 20_000, what: 'commits meanwhile' });
    expect(await bed.count('outbox', "status = 'published'")).toBe(published);
  } finally {
    await broker.thaw();
  }
  await relay.waitFor('lane-flowing');
  await load.stop();
  await bed.retired();
  expect(relay.alive()).toBe(true);
  expect(relay.stderr()).not.toMatch(/crashed|[Uu]nhandled/);
  // The identical bytes under the same sequence number: a batch that had arrived is known again.
  expect(await bed.expectDelivered()).toMatchObject({ lost: 0, reordered: 0, duplicates: 0 });
});

test('F5 the connection is cut in the midst of answers: nothing is lost, nothing is sent twice', async () => {
  await using bed = await RelayBed.open({ kafka, config: { kafka: { brokers: [`127.0.0.1:${proxy.port}`] } } });
  const relay = await bed.start();
  const load = new Load(bed.servers.pool, { topic: bed.servers.topic('orders'), payloadBytes: 2_000 });
  for (let cuts = 1; cuts <= 10; cuts++) {
    const accepted = proxy.accepted;
    proxy.cutAfter(20 + cuts * 13, 'down');
    await until(() => proxy.accepted > accepted, { withinMs: 20_000, what: 'a new connection after a cut answer' });
    proxy.cutAfter(1_000 * cuts, 'up');
    await until(() => proxy.accepted > accepted + 1, { withinMs: 20_000, what: 'another after a cut request' });
  }
  await load.stop();
  await bed.retired();
  expect(relay.alive()).toBe(true);
  expect(await bed.expectDelivered()).toMatchObject({ lost: 0, reordered: 0, duplicates: 0 });
});

test.skipIf(isTenth)(
  'M8 a row is appended without an answer and then refused: the next one is not taken for it',
  async () => {
    const through = { ...IMPATIENT.kafka, brokers: [`127.0.0.1:${proxy.port}`] };
    await using bed = await RelayBed.open({ kafka, topics: { orders: 1 }, config: { kafka: through } });
    const { pool } = bed.servers;
    const topic = bed.servers.topic('orders');
    const relay = await bed.start();
    await insertRows(pool, { topic, count: 1 });
    await bed.retired();
    proxy.freeze('down');
    try {
      await insertRows(pool, { topic, count: 1, payloadBytes: 20_000, prefix: 'large' });
      await until(async () => (await bed.records()) === 2, { withinMs: 20_000, what: 'the large row in the topic' });
      const lowered = [{ name: 'max.message.bytes', value: '10000' }];
      await using admin = await connectedAdmin(bed);
      await admin.alterConfigs({
        validateOnly: false,
        resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: lowered }],
      });
      expect(await relay.waitFor('lane-held')).toMatchObject({ uncertain: true });
    } finally {
      proxy.thaw();
    }
    await relay.waitFor('row-failed');
    // One record too: as many as the batch had whose sequence number would come again.
    await insertRows(pool, { topic, count: 1, prefix: 'next' });
    await bed.retired();
    expect(await bed.records()).toBe(3);
    expect(relay.lines().map(({ event }) => event)).toContain('producer-renewed');
  },
);

test.skipIf(isTenth)('a broker is stopped, killed and started again under load', async () => {
  await using bed = await RelayBed.open({ kafka, config: IMPATIENT });
  const relay = await bed.start();
  const load = new Load(bed.servers.pool, { topic: bed.servers.topic('orders') });
  for (const end of ['stop', 'kill'] as const) {
    const there = await bed.records();
    await until(async () => (await bed.records()) > there + 50, { withinMs: 20_000, what: 'records under load' });
    const lines = relay.lines().length;
    await broker[end]();
    await relay.waitFor('lane-held', { after: lines });
    await broker.start();
    // Whether its lanes still held their rows, or had left them to the sweep.
    const published = await bed.count('outbox', "status = 'published'");
    const moved = async (): Promise<boolean> => (await bed.count('outbox', "status = 'published'")) > published + 50;
    await until(moved, { withinMs: 30_000, what: 'rows published by the broker that is back' });
  }
  await load.stop();
  await bed.retired();
  expect(relay.alive()).toBe(true);
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ lost: 0, reordered: 0 });
});

test('every change of state is told once: start, refused rows, outage, lost stream, job, take-over, stop', async () => {
  // A machine that is busy may take its time to start the broker.
  const config = { ...IMPATIENT, relay: { laneStallMs: 60_000 } };
  await using bed = await RelayBed.open({ kafka, config, topics: { orders: 1 } });
  const missing = bed.servers.topic('missing');
  const row = 'INSERT INTO outbox (topic, aggregate_id, payload) VALUES (?, ?, ?)';
  const first = await bed.start();
  const second = await bed.launch();
  await second.waitFor('relay-state', { fields: { to: 'standby' } });

  await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 20 });
  await bed.sql(row, [bed.topics[0], 'large', JSON.stringify('x'.repeat(2_000_000))]);
  await bed.sql(row, [missing, 'a', '1']);
  await first.waitFor('row-failed');
  await first.waitFor('scope-parked', { fields: { scope: 'topic', topic: missing } });
  await bed.servers.createTopics({ missing: 1 });
  await first.waitFor('scope-released', { fields: { topic: missing }, withinMs: 30_000 });

  await broker.kill();
  await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 20 });
  await first.waitFor('lane-held');
  await broker.start();
  await first.waitFor('lane-flowing');
  await bed.retired();

  const flowing = first.lines().length;
  const [dump] = await bed.sql("SELECT id FROM performance_schema.processlist WHERE db IS NULL AND command LIKE 'Binlog Dump%' AND user = ?", [bed.user.user]); // prettier-ignore
  await bed.sql(`KILL ${String(dump['id'])}`);
  await first.waitFor('binlog-streaming', { after: flowing });
  await using resync = await startCli(['resync', '--republish', '--id', '1..20', '--yes'], { config: bed.config() });
  expect((await resync.exited).code).toBe(0);

  for (const signal of ['SIGUSR2', 'SIGUSR1', 'SIGUSR2'] as const) {
    const lines = first.lines().length;
    first.signal(signal);
    if (signal === 'SIGUSR2') await first.waitFor('log-level', { after: lines });
  }
  expect((await first.kill('SIGTERM')).code).toBe(0);
  await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 20 });
  await second.waitFor('tail-flowing');
  await bed.retired();
  expect((await second.kill('SIGTERM')).code).toBe(0);
  expect(first.stderr()).not.toContain('Debugger listening');

  const told = (relay: CliProcess): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const { event, level, to } of relay.lines()) {
      if (level === 'debug' || event === 'job-progress') continue;
      const name = typeof to === 'string' ? `${event} ${to}` : event;
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  };
  const stop = { 'stop-requested': 1, 'relay-state stopping': 1, 'relay-state stopped': 1 };
  expect(told(first)).toEqual({
    ...{
      'relay-started': 1,
      'relay-state leading': 1,
      'kafka-connected': 1,
      'first-start': 1,
      'relay-state flowing': 1,
    },
    ...{ 'binlog-streaming': 2, 'tail-flowing': 2, 'tail-lost': 1 },
    ...{
      'topic-in-use': 2,
      'row-failed': 1,
      'scope-parked': 1, // Of the first start everything was parked.
      'scopes-taken-over': 1,
      'scope-released': 2,
    },
    ...{ 'lane-held': 1, 'lane-flowing': 1, 'kafka-broker-lost': 1, 'kafka-broker-back': 1 },
    ...{ 'job-started': 1, 'job-done': 1, 'log-level debug': 1, 'log-level info': 1, ...stop },
  });
  expect(told(second)).toEqual({
    ...{ 'relay-started': 1, 'relay-state standby': 1, 'relay-state leading': 1, 'relay-state flowing': 1 },
    ...{
      'kafka-connected': 1,
      'start-at-checkpoint': 1,
      'binlog-streaming': 1,
      'tail-flowing': 1,
      'topic-in-use': 1,
      ...stop,
    },
  });
});

async function connectedAdmin(bed: RelayBed): Promise<Admin & AsyncDisposable> {
  const admin = bed.servers.kafka.admin();
  await admin.connect();
  return Object.assign(admin, { [Symbol.asyncDispose]: () => admin.disconnect() });
}
