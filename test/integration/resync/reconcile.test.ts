import { expect, test } from 'vitest';
import { insertRows } from '../../stack/outbox-rows.ts';
import { logHead } from '../../stack/log-head.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { startMysql } from '../../stack/stack.ts';
import { until } from '../../stack/until.ts';
import { startTailing, sweepBed } from '../sweep/sweep-bed.ts';
import { command, resynced, stateOf, told } from './resync-bed.ts';

test('rows that were made pending by hand are delivered, live rows stay in order, the relay goes on by the tail', async () => {
  await using bed = await sweepBed({ config: { sweep: { intervalMs: 600_000 } } });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  await insertRows(bed.servers.pool, { topic, count: 100 });
  await bed.retired();
  // As an operator does, under the nose of a relay that looks for such rows every ten minutes.
  await bed.sql(
    "SET SESSION sql_log_bin = 0; UPDATE outbox SET status = 'pending' WHERE id % 4 = 0; SET SESSION sql_log_bin = 1",
  );
  expect(await bed.count('outbox', "status = 'pending'")).toBe(25);
  const after = relay.lines().length;
  const job = await resynced(bed);
  expect(job).toMatchObject({ kind: 'reconcile', state: 'done', reconcile: { hasBegun: true, pendingAtFirst: 25 } });
  await bed.retired();
  await relay.waitFor('resync-begun', { after });
  await relay.waitFor('scope-released', { after, fields: { scope: 'everything', reason: 'RESYNC' } });
  await relay.waitFor('job-done', { after });
  await insertRows(bed.servers.pool, { topic, count: 100 });
  await bed.retired();
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({
    committed: 200,
    delivered: 200,
    duplicates: 25,
  });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('under live load nothing is lost, nothing twice, nothing out of order; a crash in the midst goes on', async () => {
  await using bed = await sweepBed({ topics: { orders: 2 } });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  const rows = { topic, aggregates: 7 };
  const write = async (): Promise<void> => {
    for (let n = 0; n < 30; n++) await insertRows(bed.servers.pool, { ...rows, count: 4 });
  };
  await Promise.all([write(), resynced(bed)]);
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 120, delivered: 120, duplicates: 0 });
  await relay.kill('SIGKILL');

  // It has been asked for, and begun, by a relay that is gone.
  await bed.sql(
    `INSERT INTO cdc_relay_jobs (relay, kind, spec, state) VALUES (?, 'reconcile', '{"kind": "reconcile", "from": {"at": "head"}}', 'running')`,
    [bed.servers.database],
  );
  await write();
  const second = await bed.start();
  await second.waitFor('resync-begun');
  await second.waitFor('job-done');
  await bed.retired();
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ committed: 240, delivered: 240 });
  expect((await stateOf(bed, 2)).state).toBe('done');
  expect((await second.kill('SIGTERM')).code).toBe(0);
});

test('B4 resync after the position was purged, with no relay running: the command leads, delivers, and stops softly', async () => {
  await using mysql = await startMysql();
  await using bed = await RelayBed.open({ mysql });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.retired();
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  await insertRows(bed.servers.pool, { topic, count: 3 });
  await bed.sql('FLUSH BINARY LOGS');
  const { file } = await logHead((text) => bed.sql(text));
  await bed.sql(`PURGE BINARY LOGS TO '${file}'`);
  await insertRows(bed.servers.pool, { topic, count: 2 });

  const dry = await command(bed, 'resync', '--dry-run', '--json');
  expect(JSON.parse(dry.stdout)).toMatchObject({ kind: 'reconcile', rows: 5 });
  const job = await resynced(bed);
  expect(job).toMatchObject({ state: 'done', reconcile: { pendingAtFirst: 5, pending: 0 } });
  expect(await bed.count('outbox', "status <> 'published'")).toBe(0);
  expect(await bed.expectDelivered()).toMatchObject({ committed: 15, delivered: 15, duplicates: 0 });
  // The lock is free, and what was left is a good position.
  const next = await bed.start();
  expect(next.lines().some(({ event }) => event === 'position-unusable')).toBe(false);
  await insertRows(bed.servers.pool, { topic, count: 5 });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 20, delivered: 20, duplicates: 0 });
  expect((await next.kill('SIGTERM')).code).toBe(0);
});

test('an outbox that is only kept: from a position, or a GTID set, its rows are sent again; without one it is refused', async () => {
  await using mysql = await startMysql();
  await using bed = await RelayBed.open({
    mysql,
    outboxes: [{ table: 'outbox', retire: 'keep' }],
    topics: { orders: 1 },
  });
  const topic = bed.servers.topic('orders');
  const relay = await bed.start();
  const records = (count: number): Promise<unknown> =>
    bed.orTail(() =>
      until(async () => (await bed.records()) === count, { withinMs: 20_000, what: `${count} records` }),
    );
  await insertRows(bed.servers.pool, { topic, count: 10 });
  const place = await logHead((text) => bed.sql(text));
  const gtidSet = String((await bed.sql('SELECT @@GLOBAL.gtid_executed AS gtids'))[0]['gtids']);
  await bed.sql('FLUSH BINARY LOGS');
  await insertRows(bed.servers.pool, { topic, count: 7, perTransaction: 1 });
  await bed.sql('FLUSH BINARY LOGS');
  await insertRows(bed.servers.pool, { topic, count: 5 });
  await records(22);

  const refused = await command(bed, 'resync', '--yes');
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain('--from-position');
  for (const wrong of [`${place.file}:${place.offset + 1}`, `${place.file}:99999999`, 'binlog.999999:4']) {
    expect((await command(bed, 'resync', '--from-position', wrong, '--yes')).code).toBe(1);
  }
  expect((await resynced(bed, '--from-position', `${place.file}:${place.offset}`)).state).toBe('done');
  await records(34);
  expect((await resynced(bed, '--from-gtid', gtidSet)).state).toBe('done');
  await records(46);
  const unknown = await command(bed, 'resync', '--from-gtid', '11111111-2222-3333-4444-555555555555:1-9', '--yes');
  expect(unknown.code).toBe(1);
  expect(unknown.stderr).toContain('does not have');
  const again = await resynced(bed, '--republish');
  expect(again.republish).toMatchObject({ total: 22, sent: 22 });
  expect((await told(bed)).filter(({ job }) => job !== null)).toHaveLength(22);
  expect((await relay.kill('SIGTERM')).code).toBe(0);

  // Where its position is lost the relay halts, and says what a person has to decide.
  for (let file = 0; file < 2; file++) await bed.sql('FLUSH BINARY LOGS');
  await bed.sql(`PURGE BINARY LOGS TO '${(await logHead((text) => bed.sql(text))).file}'`);
  const halted = await command(bed, 'run');
  expect(halted.code).toBe(1);
  expect(halted.stderr).toMatch(/fix +cdc-relay resync --from-position <file:offset> .* --from-head/);
});
