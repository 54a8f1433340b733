import { expect, test } from 'vitest';
import { comparePositions } from '../../../src/model/position.ts';
import { lockName } from '../../../src/store/leadership.ts';
import { isTenth } from '../../stack/full.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { until } from '../../stack/until.ts';

const TAKE_OVER_MS = 3_000;

test('two relays of one name: one leads and one stands by, which takes over when the other is killed', async () => {
  // Far longer than what it takes: nobody waits for this time where the connection ends.
  await using bed = await RelayBed.open({ config: { relay: { takeOverMs: 60_000 } } });
  const rows = { topic: bed.servers.topic('orders'), count: 200, perTransaction: 10 };
  const first = await bed.start();
  const second = await bed.launch();
  await second.waitFor('relay-state', { fields: { to: 'standby' } });
  await insertRows(bed.servers.pool, rows);
  await bed.retired();
  expect(second.lines().some(({ event }) => event === 'binlog-streaming')).toBe(false);

  const load = insertRows(bed.servers.pool, { ...rows, count: 1_000 });
  await until(async () => (await bed.records()) > 250, { withinMs: 20_000, what: 'records under load' });
  await first.kill();
  await second.waitFor('binlog-streaming', { withinMs: 20_000 });
  expect((await bed.saved())?.epoch).toBe(2);
  await load;
  await bed.retired();
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ committed: 1_200, lost: 0, reordered: 0 });
});

test('S15 S22 I4 a frozen leader is taken over; when it wakes it writes nothing and stands by', async () => {
  await using bed = await RelayBed.open({ config: { relay: { takeOverMs: TAKE_OVER_MS } } });
  const rows = { topic: bed.servers.topic('orders'), count: 2_000, perTransaction: 2 };
  const first = await bed.start();
  const second = await bed.launch();
  await second.waitFor('relay-state', { fields: { to: 'standby' } });
  const load = insertRows(bed.servers.pool, rows);
  await bed.sql('CREATE TABLE bulk LIKE outbox');
  await until(async () => (await bed.records()) > 100, { withinMs: 20_000, what: 'records under load' });

  const startedMs = performance.now();
  first.signal('SIGSTOP');
  // More than the sockets take: the server hangs in a write to the frozen one.
  const bulk = isTenth
    ? null
    : insertRows(bed.servers.pool, { ...rows, table: 'bulk', count: 20_000, perTransaction: 100, payloadBytes: 2_000 });
  await second.waitFor('binlog-streaming', { withinMs: 30_000 });
  expect(performance.now() - startedMs).toBeLessThan(TAKE_OVER_MS + 15_000);
  await load;
  await bulk;
  await bed.retired();
  const before = (await bed.saved())!;

  first.signal('SIGCONT');
  await first.waitFor('relay-state', { fields: { to: 'standby' }, withinMs: 20_000 });
  await insertRows(bed.servers.pool, { ...rows, count: 10 });
  await bed.retired();
  const after = (await bed.saved())!;
  expect(after.epoch).toBe(before.epoch);
  expect(comparePositions(after, before)).toBeGreaterThan(0);

  const said = first.lines().length;
  await second.kill();
  await first.waitFor('relay-state', { fields: { to: 'flowing', from: 'leading' }, after: said });
  await insertRows(bed.servers.pool, { ...rows, count: 10 });
  await bed.retired();
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ committed: 2_020, lost: 0, reordered: 0 });
});

test('I3 the lock is lost and the successor reads with the same server id: the one before stands by, it does not halt', async () => {
  await using bed = await RelayBed.open();
  const rows = { topic: bed.servers.topic('orders'), count: 100, perTransaction: 5 };
  const first = await bed.start();
  const second = await bed.launch();
  await second.waitFor('relay-state', { fields: { to: 'standby' } });
  await insertRows(bed.servers.pool, rows);
  await bed.retired();
  const [lock] = await bed.sql('SELECT IS_USED_LOCK(?) AS holder', [
    lockName(bed.servers.database, bed.servers.database),
  ]);
  await bed.sql(`KILL CONNECTION ${String(lock['holder'])}`);
  await second.waitFor('binlog-streaming', { withinMs: 20_000 });
  await first.waitFor('relay-state', { fields: { to: 'standby' } });
  await insertRows(bed.servers.pool, rows);
  await bed.retired();
  expect(second.lines().filter(({ event }) => event === 'binlog-streaming')).toHaveLength(1);
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ committed: 200, lost: 0, reordered: 0 });
});

test('I3 two relays of different names with one server id: told what to change, and no war of reconnects', async () => {
  await using bed = await RelayBed.open({ config: { relay: { takeOverMs: 3_000 } } });
  const first = await bed.start();
  const second = await bed.start({ name: `${bed.servers.database}-other` });
  expect((await first.exited).code).not.toBe(0);
  expect(first.stderr()).toContain('BINLOG_SERVER_ID_CLASH');
  expect(first.stderr()).toContain('mysql.serverId');
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 10 });
  await bed.retired();
  expect(second.lines().filter(({ event }) => event === 'binlog-streaming')).toHaveLength(1);
  expect(await bed.expectDelivered()).toMatchObject({ committed: 10, duplicates: 0 });
});
