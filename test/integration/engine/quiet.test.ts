import { afterAll, beforeAll, expect, test } from 'vitest';
import { comparePositions } from '../../../src/model/position.ts';
import { isMariadb, startDatabase } from '../../stack/flavour.ts';
import type { DatabaseServer } from '../../stack/handles.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';

import { until } from '../../stack/until.ts';

/** Twenty times the default between two flushes. */
const QUIET_MS = 2_000;

/** Of its own: nobody else may write to its log. */
let mysql: DatabaseServer;

beforeAll(async () => {
  mysql = await startDatabase();
});
afterAll(() => mysql.dispose());

test('L2 10,000 rows: published once, own updates passed over, then nothing is written; a dead connection is no fault', async () => {
  await using bed = await RelayBed.open({ mysql });
  // The server ends connections that are as quiet as the relay.
  await bed.sql('SET GLOBAL wait_timeout = 1');
  const relay = await bed.start();
  await bed.sql('SET GLOBAL wait_timeout = DEFAULT');
  const topic = bed.servers.topic('orders');
  await insertRows(bed.servers.pool, { topic, count: 10_000, perTransaction: 500 });
  await bed.retired();
  await bed.expectQuiet(QUIET_MS);
  // Marking goes in large strokes: the relay's own statements are few.
  if (!isMariadb()) await expectFewUpdates(bed); // MariaDB counts statements only when told to
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.retired();
  // A broker that has just started has no producer ids yet.
  const said = relay.lines().filter(({ event }) => event !== 'producer-unavailable');
  expect(said.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  expect(await bed.expectDelivered()).toMatchObject({ committed: 10_010, delivered: 10_010, duplicates: 0 });
});

test('S19 a row that the application holds: the others are published, nothing is written while it waits, then it is', async () => {
  await using bed = await RelayBed.open({ mysql });
  const topic = bed.servers.topic('orders');
  const relay = await bed.start({ relay: { flushMs: 1_500 } });
  const application = await bed.servers.pool.getConnection();
  await insertRows(bed.servers.pool, { topic, count: 20, perTransaction: 1 });
  // Sent at once, retired later: time to take a lock.
  await application.beginTransaction();
  const [held] = await bed.sql("SELECT MAX(id) AS id FROM outbox WHERE status = 'pending'");
  await application.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [held['id']]);
  await bed.retired('outbox', { where: `id <> ${String(held['id'])}` });
  await relay.waitFor('rows-held-by-application');
  await bed.expectQuiet(QUIET_MS);
  const before = await bed.saved();
  await application.query('UPDATE outbox SET attempts = 7 WHERE id = ?', [held['id']]);
  await application.commit();
  application.release();
  await bed.retired();
  await relay.waitFor('rows-released-by-application');
  expect(comparePositions((await bed.saved())!, before!)).toBeGreaterThan(0);
  expect(await bed.count('outbox', 'attempts = 7')).toBe(1);
  expect(await bed.expectDelivered()).toMatchObject({ committed: 20, duplicates: 0 });
});

test('S27 two relays of different names on one server do not feed each other', async () => {
  await using first = await RelayBed.open({ mysql });
  await using second = await RelayBed.open({ mysql, outboxes: [{ table: 'outbox', retire: 'delete' }] });
  const beds = [first, second];
  for (const bed of beds) await bed.start();
  for (const bed of beds) {
    await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 500, perTransaction: 5 });
  }
  for (const bed of beds) await bed.retired();
  await first.expectQuiet(QUIET_MS);
  expect(await first.expectDelivered()).toMatchObject({ committed: 500, duplicates: 0 });
  expect(await second.records()).toBe(500);
});

test('S27 two relays of different names on one outbox: each delivers once, and both go quiet', async () => {
  await using bed = await RelayBed.open({ mysql });
  const other = { name: `${bed.servers.database}-other`, mysql: { serverId: bed.servers.serverId + 1 } };
  await bed.start();
  await bed.start(other);
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 200, perTransaction: 1 });
  await bed.retired();
  await until(async () => (await bed.records()) >= 400, { withinMs: 20_000, what: 'the rows of both relays' });
  await bed.expectQuiet(QUIET_MS);
  expect(await bed.records()).toBe(400);
});

async function expectFewUpdates(bed: RelayBed): Promise<void> {
  const [updates] = await bed.sql(
    `SELECT SUM(count_star) AS made FROM performance_schema.events_statements_summary_by_digest
     WHERE schema_name IS NULL AND digest_text LIKE 'UPDATE %' AND digest_text LIKE CONCAT('%', ?, '%')`,
    [bed.servers.database],
  );
  expect(Number(updates['made'])).toBeGreaterThan(0);
  expect(Number(updates['made'])).toBeLessThan(500);
}
