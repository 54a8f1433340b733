import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/model/clock.ts';
import { newMysqlCounts, newServerCounts } from '../../../src/model/server-counts.ts';
import { addServerMetrics } from '../../../src/observability/server-metrics.ts';
import { SessionSlot } from '../../../src/store/session-slot.ts';
import { until } from '../../stack/until.ts';
import { checkpointAt, flushOf, silent, StoreBed } from './store-bed.ts';

test('deadlocks and lock waits are counted, also those that are tried again', async () => {
  await using bed = await StoreBed.open();
  const counts = newMysqlCounts();
  const store = bed.store({ counts });
  const leader = await bed.lead(store);
  const ids = await bed.insert(200);
  const application = await bed.connect();
  await application.beginTransaction();
  // The transaction that has changed less is the victim. A scan of the table would lock the first row, too.
  await application.query('UPDATE outbox FORCE INDEX (PRIMARY) SET attempts = attempts + 1 WHERE id >= ?', [ids[2]]);
  const flushed = store.flush(leader, flushOf([ids[0], ids[2]], 700));
  await bed.lockWait();
  await application.query('UPDATE outbox SET attempts = attempts + 1 WHERE id = ?', [ids[0]]);
  await application.commit();
  expect(await flushed).toEqual(checkpointAt(700));
  expect([...counts.flush.lockFaults]).toEqual([['MYSQL_DEADLOCK', 1]]);

  await application.beginTransaction();
  await application.query('SELECT epoch FROM cdc_relay_offsets FOR UPDATE');
  const again = store.flush(leader, flushOf([ids[3]], 800));
  await until(() => counts.flush.lockFaults.has('MYSQL_LOCK_WAIT'), { withinMs: 20_000, what: 'a lock wait' });
  await application.commit();
  expect(await again).toEqual(checkpointAt(800));
  expect(counts.flush.connects).toEqual(new Map([['FIRST', 1]]));
});

test('connections are counted by what ended the one before, work by whether it waits for its turn', async () => {
  await using bed = await StoreBed.open();
  const servers = newServerCounts();
  const registry = new Registry();
  addServerMetrics(registry, servers);
  const { mysql } = bed.settings();
  const counts = servers.mysql.sweep;
  const slot = new SessionSlot({ mysql, clock: systemClock, log: silent, takeOverMs: 400, counts });
  const id = () => slot.use((session) => session.rows('asking', 'SELECT CONNECTION_ID() AS id'));
  const samples = async () => {
    const lines = (await registry.metrics()).split('\n').filter((line) => line.includes('{connection="sweep"'));
    return lines.filter((line) => !line.includes('waited')).map((line) => line.replace('cdc_relay_mysql_', ''));
  };
  const slow = slot.use((session) => session.rows('waiting', 'SELECT SLEEP(0.2)'));
  const [next, third] = [id(), id()];
  await until(() => counts.open === 1, { withinMs: 20_000, what: 'a connection' });
  expect(await samples()).toEqual([
    'connects_total{connection="sweep",cause="FIRST"} 1',
    'connections{connection="sweep"} 1',
    'work{connection="sweep",doing="running"} 1',
    'work{connection="sweep",doing="waiting"} 2',
  ]);
  await Promise.all([slow, next, third]);
  expect(counts.waitedMs).toBeGreaterThan(2 * 150);
  await until(() => counts.open === 0, { withinMs: 20_000, what: 'the rest of a connection that nobody uses' });
  const [{ id: victim }] = await id();
  await bed.sql(`KILL ${String(victim)}`);
  await until(() => counts.open === 0, { withinMs: 20_000, what: 'the end of a connection that was killed' });
  await id();
  slot.destroy();
  await id();
  slot.close();
  expect(await samples()).toEqual([
    'connects_total{connection="sweep",cause="FIRST"} 1',
    'connects_total{connection="sweep",cause="IDLE"} 1',
    'connects_total{connection="sweep",cause="MYSQL_UNREACHABLE"} 1',
    'connects_total{connection="sweep",cause="DONE"} 1',
    'connections{connection="sweep"} 0',
    'work{connection="sweep",doing="running"} 0',
    'work{connection="sweep",doing="waiting"} 0',
  ]);
});
