import { expect, test } from 'vitest';
import { insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { resynced, told } from '../resync/resync-bed.ts';

test('resync on a MariaDB: from the head with a relay, from a position without one, published rows again', async () => {
  await using bed = await RelayBed.open();
  const { pool, topic } = bed.servers;
  const rows = { topic: topic('orders'), aggregates: 5 };
  const relay = await bed.start();
  await relay.waitFor('binlog-streaming');
  await insertRows(pool, { ...rows, count: 40 });
  await bed.retired();
  await bed.sql("UPDATE outbox SET status = 'pending' WHERE id % 4 = 0");
  expect(await resynced(bed)).toMatchObject({ kind: 'reconcile', state: 'done', reconcile: { pending: 0 } });
  await bed.retired();
  expect(await resynced(bed, '--republish', '--id', '1..20')).toMatchObject({
    ...{ kind: 'republish', state: 'done' },
    republish: { total: 20, sent: 20, gone: 0, failed: 0 },
  });
  expect((await relay.kill('SIGTERM')).code).toBe(0);

  const [saved] = await bed.sql('SELECT file, position FROM cdc_relay_offsets');
  await insertRows(pool, { ...rows, count: 10 });
  const from = `${String(saved['file'])}:${String(saved['position'])}`;
  expect((await resynced(bed, '--from-position', from)).state).toBe('done');
  expect(await bed.count('outbox', "status <> 'published'")).toBe(0);
  const records = await told(bed);
  expect(records.filter(({ job }) => job !== null)).toHaveLength(20);
  // What was made pending by hand is sent twice; nothing else is.
  expect(records.filter(({ job }) => job === null)).toHaveLength(40 + 10 + 10);
  expect(new Set(records.map(({ id }) => id)).size).toBe(50);
});
