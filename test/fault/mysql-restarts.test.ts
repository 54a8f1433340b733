import { afterAll, beforeAll, expect, test } from 'vitest';
import { CheckpointWatch } from '../stack/checkpoint-watch.ts';
import type { DatabaseServer } from '../stack/handles.ts';
import { Load } from '../stack/load.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { Proxy } from '../stack/proxy.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { startMysql } from '../stack/stack.ts';
import { until } from '../stack/until.ts';

let mysql: DatabaseServer;

beforeAll(async () => {
  mysql = await startMysql({ durable: true });
});
afterAll(() => mysql.dispose());

test.for([
  { end: 'stop', restarts: 1 },
  { end: 'kill', restarts: 2 },
] as const)(
  'MySQL is restarted under load ($end): the same relay goes on, nothing is lost',
  async ({ end, restarts }) => {
    await using bed = await RelayBed.open({ mysql });
    const relay = await bed.start();
    const load = new Load(bed.servers.pool, { topic: bed.servers.topic('orders') });
    for (let times = 0; times < restarts; times++) {
      const there = await bed.records();
      await until(async () => (await bed.records()) > there + 100, { withinMs: 30_000, what: 'records under load' });
      const lines = relay.lines().length;
      await mysql[end]();
      await mysql.start();
      await relay.waitFor('binlog-streaming', { after: lines, withinMs: 30_000 });
    }
    expect(load.failed).toBeGreaterThan(0);
    await load.stop();
    await bed.retired('outbox', { withinMs: 30_000 });
    expect(relay.alive()).toBe(true);
    expect(relay.stderr()).not.toMatch(/crashed|[Uu]nhandled/);
    expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ lost: 0, reordered: 0 });
    expect((await relay.kill('SIGTERM')).code).toBe(0);
  },
);

test('MySQL is read-only for a while, as in a failover: rows go out, and are marked when it is over', async () => {
  await using bed = await RelayBed.open({ mysql });
  const relay = await bed.start({ relay: { flushMs: 800 } });
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 20 });
  await bed.sql('SET GLOBAL super_read_only = ON');
  try {
    await relay.waitFor('flush-failed', { fields: { code: 'MYSQL_QUERY_FAILED' } });
    expect(await bed.records()).toBe(20);
  } finally {
    await bed.sql('SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF');
  }
  await relay.waitFor('flush-recovered');
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 20, duplicates: 0 });
});

const TERM_ENDS = ['leader-lock-lost', 'term-ended'];

test('I1 the network to MySQL says nothing more, then is cut: the relay notices and goes on', async () => {
  await using proxy = await Proxy.open(mysql);
  await using bed = await RelayBed.open({
    mysql,
    config: {
      mysql: { host: '127.0.0.1', port: proxy.port, heartbeatMs: 500, queryTimeoutMs: 2_000, connectTimeoutMs: 1_000 },
      relay: { takeOverMs: 3_000 },
    },
  });
  const relay = await bed.start();
  await using watch = new CheckpointWatch(bed.servers);
  const load = new Load(bed.servers.pool, { topic: bed.servers.topic('orders') });
  for (const how of ['freeze', 'cut'] as const) {
    const there = await bed.records();
    await until(async () => (await bed.records()) > there + 100, { withinMs: 30_000, what: 'records under load' });
    const lines = relay.lines().length;
    proxy[how]();
    const code = how === 'freeze' ? 'BINLOG_SILENT' : 'BINLOG_CONNECTION_LOST';
    // Where another connection is missed first (the lock's, a claim's), the term ends and takes the stream with it.
    const isNoticed = (): boolean =>
      relay
        .lines()
        .slice(lines)
        .some(({ event, ...of }) => (event === 'tail-lost' ? of['code'] === code : TERM_ENDS.includes(event)));
    await bed.orTail(() => until(isNoticed, { withinMs: 20_000, what: `tail-lost with ${code}, or the term's end` }));
    proxy.thaw();
    await relay.waitFor('binlog-streaming', { after: lines, withinMs: 30_000 });
  }
  await load.stop();
  await bed.retired('outbox', { withinMs: 30_000 });
  await watch.expectSound();
  expect(relay.alive()).toBe(true);
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ lost: 0, reordered: 0 });
});
