import { expect, test } from 'vitest';
import { insertRows } from '../../stack/outbox-rows.ts';
import { sweepBed } from '../sweep/sweep-bed.ts';
import { resynced, told } from './resync-bed.ts';

test('mode: sweep, without a position: pending rows are delivered by resync, published ones sent again', async () => {
  await using bed = await sweepBed({ config: { sweep: { mode: 'sweep' } } });
  const topic = bed.servers.topic('orders');
  const relay = await bed.launch();
  await relay.waitFor('relay-state', { fields: { to: 'flowing' } });
  await insertRows(bed.servers.pool, { topic, count: 60, aggregates: 5 });
  await bed.retired();
  await bed.sql("UPDATE outbox SET status = 'pending' WHERE id % 4 = 0");
  expect(await resynced(bed)).toMatchObject({ kind: 'reconcile', state: 'done', reconcile: { pending: 0 } });
  await bed.retired();
  expect(await resynced(bed, '--republish', '--id', '1..20')).toMatchObject({
    ...{ kind: 'republish', state: 'done' },
    republish: { total: 20, sent: 20, gone: 0, failed: 0 },
  });
  await insertRows(bed.servers.pool, { topic, count: 10, aggregates: 5 });
  await bed.retired();
  const records = await told(bed);
  expect(records.filter(({ job }) => job !== null)).toHaveLength(20);
  expect(records.filter(({ job }) => job === null)).toHaveLength(60 + 15 + 10);
  expect(new Set(records.map(({ id }) => id)).size).toBe(70);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});
