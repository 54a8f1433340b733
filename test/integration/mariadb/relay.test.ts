import { expect, test } from 'vitest';
import { insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { startCli } from '../../stack/relay-process.ts';

const GTIDS = /^\d+-\d+-\d+(,\d+-\d+-\d+)*$/;

/** `migrate` is what every bed begins with. */
test('a relay on a MariaDB: JSON as the text that it is, positions with its GTIDs, a start from them, status', async () => {
  await using bed = await RelayBed.open();
  const { pool, topic } = bed.servers;
  const insert = 'INSERT INTO outbox (topic, aggregate_id, event_type, payload, headers) VALUES ?';
  const texts = ['{"b": 1.0,  "a" : [1e20]}', '{ }', 'null', '"ü🙂"', null];
  const first = await bed.start();
  await pool.query(insert, [
    texts.map((text, n) => [topic('orders'), `key ${n}`, 'made', text, '{"tenant": "süd",  "n": 1.0}']),
  ]);
  await bed.retired();
  expect((await first.kill('SIGTERM')).code).toBe(0);

  const offsets = async () => (await bed.sql('SELECT server_uuid, gtid_set, last_gtid FROM cdc_relay_offsets'))[0];
  const saved = await offsets();
  expect(saved['server_uuid']).toMatch(/^mariadb-\d+$/);
  expect(String(saved['gtid_set'])).toMatch(GTIDS);
  expect(String(saved['last_gtid'])).toMatch(/^0-1-\d+$/);

  await insertRows(pool, { topic: topic('orders'), count: 50, perTransaction: 1 });
  const second = await bed.start();
  expect(await second.waitFor('start-at-checkpoint')).toMatchObject({ level: 'info' });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 55, delivered: 55, duplicates: 0 });
  expect(String((await offsets())['gtid_set'])).toMatch(GTIDS);

  await using status = await startCli(['status'], { config: bed.config() });
  expect((await status.exited).code).toBe(0);
});
