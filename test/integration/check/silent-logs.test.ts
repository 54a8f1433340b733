import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { expect, test } from 'vitest';
import { full, isTenth } from '../../stack/full.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { caughtUp } from '../../stack/replica.ts';
import { startMysql } from '../../stack/stack.ts';
import { until } from '../../stack/until.ts';

const NO_GTIDS = ['--gtid-mode=OFF', '--enforce-gtid-consistency=OFF'];

const SILENT_LOGS = [
  { what: 'no binlog', flags: ['--skip-log-bin', ...NO_GTIDS], check: 'log-bin', isOnlySwept: true },
  {
    what: 'a filter that leaves all out',
    flags: ['--binlog-do-db=other'],
    check: 'binlog-filters',
    isOnlySwept: false,
  },
];

test.each(SILENT_LOGS.slice(0, full(1, 2)))(
  'J2 $what: run says so, and every row goes by the sweep',
  async ({ flags, check, isOnlySwept }) => {
    await using mysql = await startMysql({ flags });
    await using bed = await RelayBed.open({ mysql });
    const relay = await bed.launch();
    expect(await relay.waitFor('check-finding')).toMatchObject({ level: 'warn', check });
    if (isOnlySwept) expect(await relay.waitFor('sweep-only')).toMatchObject({ code: 'BINLOG_DISABLED' });
    const topic = bed.servers.topic('orders');
    await bed.sql('INSERT INTO outbox (topic, aggregate_id) VALUES (?, ?), (?, ?)', [topic, '1', topic, '2']);
    await bed.retired();
    expect(await bed.expectDelivered()).toMatchObject({ committed: 2, delivered: 2, duplicates: 0 });
    expect((await relay.kill('SIGTERM')).code).toBe(0);
  },
);

test.skipIf(isTenth)('J2 a replica that does not log what it replicates: the same', async () => {
  await using source = await startMysql();
  await using replica = await startMysql({ serverId: 2, replicaOf: source, flags: ['--skip-log-replica-updates'] });
  await using bed = await RelayBed.open({ mysql: source });
  const { database, topic } = bed.servers;
  const { host, port, user, password } = replica;
  const root = await createConnection({ host, port, user, password });
  // What the relay writes there, its claims and marks, is in the replica alone.
  await root.query('SET GLOBAL super_read_only = OFF');
  await root.query('SET GLOBAL read_only = OFF');
  await caughtUp(replica, source);
  const relay = await bed.launch({ mysql: { host, port, user, password } });
  expect(await relay.waitFor('check-finding')).toMatchObject({ level: 'warn', check: 'replica' });
  await bed.sql('INSERT INTO outbox (topic, aggregate_id) VALUES (?, ?)', [topic('orders'), '1']);
  const sent = async () => {
    const [rows] = await root.query<RowDataPacket[]>(`SELECT 1 FROM ${database}.outbox WHERE status = 'published'`);
    return rows.length === 1;
  };
  await until(sent, { withinMs: 20_000, what: 'the row by the sweep' });
  root.destroy();
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});
