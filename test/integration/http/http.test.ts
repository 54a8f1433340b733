import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { Load } from '../../stack/load.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { freePort } from '../../stack/ports.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { until } from '../../stack/until.ts';
import { Relayed } from './http-client.ts';

const TOKEN = 'a-token-of-some-length';

test('/metrics under load: what is counted is what was inserted, and nothing of the rows is in any answer', async () => {
  await using bed = await RelayBed.open();
  const port = await freePort();
  const relay = new Relayed(port);
  await bed.start({ http: { port } });
  const outbox = `${bed.servers.database}.outbox`;
  const topic = bed.servers.topic('orders');
  const load = new Load(bed.servers.pool, { topic, writers: 2 });
  await until(() => load.committed > 200, { withinMs: 20_000, what: 'some load' });
  const sample = `cdc_relay_rows_total{outbox="${outbox}",way="tail"}`;
  await until(async () => (await relay.metric(sample))! > 0, { withinMs: 20_000, what: 'rows counted under load' });
  await load.stop();
  await bed.retired();
  const rows = await bed.count('outbox');
  await until(async () => (await relay.metric('cdc_relay_unflushed_rows')) === 0, {
    withinMs: 20_000,
    what: 'the flush',
  });
  const after = await relay.metrics();
  expect(after.get(sample)! + after.get(`cdc_relay_rows_total{outbox="${outbox}",way="sweep"}`)!).toBe(rows);
  expect(after.get(`cdc_relay_kafka_acked_records_total{topic="${topic}"}`)).toBe(rows);
  expect(after.get('cdc_relay_kafka_batch_records_sum')).toBe(rows);
  expect(after.get('cdc_relay_publish_latency_seconds_count')).toBe(after.get('cdc_relay_kafka_batch_records_count'));
  expect(
    after.get('cdc_relay_publish_latency_seconds_sum')! / after.get('cdc_relay_publish_latency_seconds_count')!,
  ).toBeLessThan(10);
  expect(after.get('cdc_relay_mysql_seconds_count{operation="flush"}')).toBeGreaterThan(0);
  for (const connection of ['leader', 'flush', 'sweep', 'progress']) {
    expect(after.get(`cdc_relay_mysql_connects_total{connection="${connection}",cause="FIRST"}`), connection).toBe(1);
    expect(after.get(`cdc_relay_mysql_connections{connection="${connection}"}`), connection).toBe(1);
  }
  expect(after.get('cdc_relay_kafka_request_seconds_count{request="Produce"}')).toBe(
    after.get('cdc_relay_kafka_send_seconds_count{outcome="acked"}'),
  );
  expect(after.get('cdc_relay_kafka_connects_total{cause="FIRST"}')).toBe(after.get('cdc_relay_kafka_connections'));
  expect(after.get('cdc_relay_state{state="FLOWING"}')).toBe(1);
  expect(after.get('cdc_relay_state{state="STUCK"}')).toBe(0);
  expect(after.get('cdc_relay_leader')).toBe(1);
  expect(after.get('cdc_relay_leader_epoch')).toBe((await bed.saved())!.epoch);
  expect(after.get('cdc_relay_lag_seconds')).toBeLessThan(10);
  await until(async () => (await relay.metric(`cdc_relay_pending_rows{outbox="${outbox}"}`)) === 0, {
    withinMs: 20_000,
    what: 'a look after the last flush',
  });
  for (const path of ['/metrics', '/status', '/readyz', '/livez', '/nothing']) {
    const { body } = await relay.ask(path);
    expect(body).not.toMatch(/writer-|filler|idempotency/);
  }
});

test('/livez, /readyz, /status of a relay that flows; what else is asked for is refused', async () => {
  await using bed = await RelayBed.open();
  const port = await freePort();
  const relay = new Relayed(port);
  await bed.start({ http: { port } });
  await until(() => relay.isReady(), { withinMs: 20_000, what: 'a relay that is ready' });
  expect(await relay.ask('/livez')).toMatchObject({ code: 200, body: '{"live":true}' });
  expect(await relay.ask('/readyz')).toMatchObject({ code: 200, headers: { 'cache-control': 'no-store' } });
  expect(await relay.status()).toMatchObject({
    state: 'FLOWING',
    ready: true,
    stuck: [],
    term: { source: 'tail', parked: { everything: 0 } },
    outboxes: [{ table: `${bed.servers.database}.outbox`, waiting: { pendingRows: 0, failedRows: 0 } }],
  });
  expect((await relay.ask('/nothing')).code).toBe(404);
  expect((await relay.ask('/status', { method: 'POST', body: 'x' })).code).toBe(404);
  expect((await relay.ask('/status', { headers: { filler: 'x'.repeat(10_000) } })).code).toBe(431);
  expect((await relay.ask('/status', { body: 'xx' })).code).toBeLessThan(500);
});

test('a token: without it health alone is told', async () => {
  await using bed = await RelayBed.open();
  const port = await freePort();
  const relay = new Relayed(port);
  const process = await bed.start({ http: { port, token: TOKEN } });
  await until(() => relay.isReady(), { withinMs: 20_000, what: 'a relay that is ready' });
  for (const path of ['/status', '/metrics']) {
    expect(await relay.ask(path)).toMatchObject({ code: 401, headers: { 'www-authenticate': 'Bearer' } });
    const others = [
      'Bearer',
      'Bearer wrong',
      TOKEN,
      `Basic ${TOKEN}`,
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.toUpperCase()}`,
    ];
    for (const authorization of others) {
      expect((await relay.ask(path, { headers: { authorization } })).code).toBe(401);
    }
    for (const authorization of [`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER  ${TOKEN}`]) {
      const { code, body } = await relay.ask(path, { headers: { authorization } });
      expect(code, authorization).toBe(200);
      expect(body).not.toContain(TOKEN);
    }
  }
  expect((await relay.ask('/livez')).code).toBe(200);
  expect(process.stderr()).not.toContain(TOKEN);
});

test('by default nobody but this machine is listened to', async () => {
  await using bed = await RelayBed.open();
  const port = await freePort();
  const process = await bed.start({ http: { port } });
  await process.waitFor('http-listening', { fields: { host: '127.0.0.1', port } });
  const others = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address);
  // 127.0.0.2 is this machine too, and still another address: there is always one to try.
  for (const host of ['127.0.0.2', ...others]) {
    const socket = connect({ host, port });
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toMatch(/ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/);
  }
});

test('where the port is taken rows move all the same, and it listens once the port is free', async () => {
  await using bed = await RelayBed.open();
  const taken = createServer();
  taken.listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  const process = await bed.start({ http: { port } });
  await process.waitFor('http-unavailable', { fields: { code: 'EADDRINUSE' } });
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 10 });
  await bed.retired();
  taken.close();
  await process.waitFor('http-listening');
  expect((await new Relayed(port).ask('/livez')).code).toBe(200);
});

test('one that stands by is ready, and says so; it has no lag', async () => {
  await using bed = await RelayBed.open();
  const [first, second] = [await freePort(), await freePort()];
  await bed.start({ http: { port: first } });
  const standby = await bed.launch({ http: { port: second } });
  await standby.waitFor('relay-state', { fields: { to: 'standby' } });
  const relay = new Relayed(second);
  await until(() => relay.isReady(), { withinMs: 20_000, what: 'a standby that is ready' });
  expect(await relay.status()).toMatchObject({ state: 'STANDBY', lagMs: null, epoch: null, term: null });
  const metrics = await relay.metrics();
  expect(metrics.get('cdc_relay_leader')).toBe(0);
  expect(metrics.has('cdc_relay_lag_seconds')).toBe(false);
});

test('more rows wait than outboxes[].limits has: not ready, though all else flows; ready again when they are gone', async () => {
  const outboxes = [{ table: 'outbox', retire: 'mark', limits: { pendingRows: 20 } }] as const;
  await using bed = await RelayBed.open({ outboxes });
  const port = await freePort();
  const relay = new Relayed(port);
  await bed.start({ http: { port } });
  await until(() => relay.isReady(), { withinMs: 20_000, what: 'a relay that is ready' });
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('missing'), count: 40 });
  await until(async () => (await relay.ready())?.reasons.includes('PENDING_ROWS'), { withinMs: 30_000, what: 'a no' });
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 10 });
  await bed.retired('outbox', { where: `topic = '${bed.servers.topic('orders')}'` });
  expect(await relay.ready()).toEqual({ ready: false, state: 'FLOWING', reasons: ['PENDING_ROWS'] });
  expect((await relay.ask('/readyz')).code).toBe(503);
  const outbox = `${bed.servers.database}.outbox`;
  const metrics = await relay.metrics();
  expect(metrics.get(`cdc_relay_pending_limit_passed{outbox="${outbox}",limit="rows"}`)).toBe(1);
  expect(metrics.get('cdc_relay_parked_scopes{kind="topic"}')).toBe(1);
  expect(metrics.get('cdc_relay_ready')).toBe(0);
  expect((await relay.status()).term?.scopes).toMatchObject([{ kind: 'topic', topic: bed.servers.topic('missing') }]);
  await bed.servers.createTopics({ missing: 1 });
  await bed.retired('outbox', { withinMs: 40_000 });
  await until(() => relay.isReady(), { withinMs: 20_000, what: 'a relay that is ready again' });
  expect(
    await relay.metric(`cdc_relay_swept_rows_total{outbox="${outbox}",cause="KAFKA_UNKNOWN_TOPIC_OR_PARTITION"}`),
  ).toBe(40);
});
