import { expect, test } from 'vitest';
import { FakeBroker } from '../../stack/fake-broker.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { until } from '../../stack/until.ts';

/** Where nothing may be waited for: the time for shutting down, and one far below it. */
const SHUTDOWN_MS = 60_000;
const AT_ONCE_MS = 15_000;

test('SIGTERM under load: what was read is delivered and flushed, exit 0; the next start sends nothing twice', async () => {
  await using bed = await RelayBed.open();
  const topic = bed.servers.topic('orders');
  await bed.start();
  const load = insertRows(bed.servers.pool, { topic, count: 3_000, perTransaction: 3, payloadBytes: 500 });
  for (let stops = 1; stops <= 3; stops++) {
    await until(async () => (await bed.records()) > stops * 200, { withinMs: 20_000, what: 'records under load' });
    const [relay] = bed.relays.slice(-1);
    expect(await relay.kill('SIGTERM')).toMatchObject({ code: 0, signal: null });
    await bed.start();
  }
  await load;
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 3_000, delivered: 3_000, duplicates: 0 });
});

test('SIGTERM in the midst of a transaction larger than the pool: it is routed to its end, nothing is sent twice', async () => {
  await using bed = await RelayBed.open({
    topics: { orders: 1 },
    config: { kafka: { batchBytes: 16_384 }, relay: { maxInFlightBytes: 65_536 } },
  });
  const relay = await bed.start();
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 4_000, payloadBytes: 1_500 });
  await until(async () => (await bed.records()) > 0, { withinMs: 20_000, what: 'the first records', everyMs: 2 });
  expect(await relay.kill('SIGTERM')).toMatchObject({ code: 0, signal: null });
  expect(await bed.count('outbox', "status = 'pending'")).toBe(0);
  await bed.start();
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 1 });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 4_001, duplicates: 0 });
});

test('a broker that never answers: the second signal, or the time for shutting down, ends it with 1', async () => {
  await using bed = await RelayBed.open();
  await using broker = await FakeBroker.start();
  const topic = bed.servers.topic('orders');
  broker.topics.set(topic, { leaders: [1] });
  broker.script('Produce', { cut: 'silent' }, { cut: 'silent' });
  const silent = { kafka: { brokers: [broker.address] } };

  const relay = await bed.start({ ...silent, relay: { shutdownMs: SHUTDOWN_MS } });
  await insertRows(bed.servers.pool, { topic, count: 5 });
  await until(() => broker.received.length > 0, { withinMs: 20_000, what: 'a batch' });
  relay.signal('SIGTERM');
  await relay.waitFor('stop-requested');
  const startedMs = performance.now();
  expect(await relay.kill('SIGINT')).toMatchObject({ code: 1, signal: null });
  expect(performance.now() - startedMs).toBeLessThan(AT_ONCE_MS);

  const patient = await bed.start({ ...silent, relay: { shutdownMs: 700 } });
  await until(() => broker.received.length > 1, { withinMs: 20_000, what: 'the batch again' });
  expect(await patient.kill('SIGTERM')).toMatchObject({ code: 1, signal: null });
  expect(patient.lines().some(({ event }) => event === 'stopped-hard')).toBe(true);

  // Nothing was taken for sent; the sweep may have died with claims.
  expect(await bed.count('outbox', "status IN ('pending', 'processing')")).toBe(5);
  await bed.start();
  await bed.retired();
  await bed.expectDelivered();
});

test('a relay that stands by stops at once, with 0', async () => {
  await using bed = await RelayBed.open();
  await bed.start();
  const second = await bed.launch({ relay: { shutdownMs: SHUTDOWN_MS } });
  await second.waitFor('relay-state', { fields: { to: 'standby' } });
  const startedMs = performance.now();
  expect(await second.kill('SIGTERM')).toMatchObject({ code: 0, signal: null });
  expect(performance.now() - startedMs).toBeLessThan(AT_ONCE_MS);
});

test('SIGTERM while Kafka cannot be reached: nothing is in hand, so 0', async () => {
  await using bed = await RelayBed.open();
  const relay = await bed.launch({
    kafka: { brokers: ['127.0.0.1:9'] },
    relay: { shutdownMs: SHUTDOWN_MS },
  });
  await relay.waitFor('relay-waits');
  const startedMs = performance.now();
  expect(await relay.kill('SIGTERM')).toMatchObject({ code: 0, signal: null });
  expect(performance.now() - startedMs).toBeLessThan(AT_ONCE_MS);
});
