import { expect, test } from 'vitest';
import { insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';

test('E1 E3 columns swapped and a copy put in the place of the outbox while the relay is down: each row once', async () => {
  await using bed = await RelayBed.open();
  const rows = { topic: bed.servers.topic('orders'), count: 3 };
  const first = await bed.start();
  await insertRows(bed.servers.pool, rows);
  await bed.retired();
  expect((await first.kill('SIGTERM')).code).toBe(0);

  await insertRows(bed.servers.pool, { ...rows, prefix: 'behind' });
  await bed.sql('CREATE TABLE _outbox_gho LIKE outbox');
  await bed.sql('ALTER TABLE _outbox_gho MODIFY topic VARCHAR(249) NOT NULL AFTER aggregate_id');
  const columns = 'id, topic, aggregate_id, event_type, payload, headers, idempotency_key, created_at, status';
  await bed.sql(`INSERT INTO _outbox_gho (${columns}) SELECT ${columns} FROM outbox`);
  await bed.sql('RENAME TABLE outbox TO _outbox_del, _outbox_gho TO outbox');
  await insertRows(bed.servers.pool, { ...rows, prefix: 'after' });
  await bed.start();
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 9, delivered: 9, duplicates: 0 });
});

test('columns that change while the relay runs', async () => {
  await using bed = await RelayBed.open();
  const rows = { topic: bed.servers.topic('orders'), count: 5, perTransaction: 1 };
  const relay = await bed.start();
  for (const [n, change] of [
    'MODIFY topic VARCHAR(249) NOT NULL AFTER aggregate_id',
    'ADD COLUMN tenant VARCHAR(128) FIRST',
    'DROP COLUMN tenant',
  ].entries()) {
    await insertRows(bed.servers.pool, { ...rows, prefix: `n${n}` });
    await bed.sql(`ALTER TABLE outbox ${change}`);
  }
  await insertRows(bed.servers.pool, rows);
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 20, delivered: 20, duplicates: 0 });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});
