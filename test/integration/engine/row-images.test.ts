import { expect, test } from 'vitest';
import { RelayBed } from '../../stack/relay-bed.ts';

const TOPIC = { topics: { orders: 3 } };

/** Rows `from` to `to` of a few aggregates, their other columns left to the defaults. */
function insert(topic: string, from: number, to: number): string {
  const values = Array.from(
    { length: to - from + 1 },
    (_, i) => `('${topic}', 'a-${(from + i) % 7}', '{"n": ${from + i}}')`,
  );
  return `INSERT INTO outbox (topic, aggregate_id, payload) VALUES ${values.join(', ')}`;
}

test('C3 rows of every row image are sent as the table has them, in order', async () => {
  await using bed = await RelayBed.open(TOPIC);
  const relay = await bed.start();
  const { pool, topic } = bed.servers;
  const orders = topic('orders');
  const connection = await pool.getConnection();
  try {
    let n = 0;
    for (const image of ['MINIMAL', 'NOBLOB', 'FULL', 'MINIMAL']) {
      await connection.query(`SET SESSION binlog_row_image = '${image}'`);
      await connection.query(insert(orders, n, n));
      // More than one read takes.
      await connection.query(insert(orders, n + 1, n + 1_100));
      await connection.query('BEGIN');
      await connection.query(insert(orders, n + 1_101, n + 1_110));
      await connection.query(`SET SESSION binlog_row_image = 'FULL'`);
      await connection.query(insert(orders, n + 1_111, n + 1_113));
      await connection.query(`SET SESSION binlog_row_image = '${image}'`);
      const tenth = (i: number) => `JSON_EXTRACT(payload, '$.n') = ${n + 1_100 + i}`;
      await connection.query(`UPDATE outbox SET payload = JSON_SET(payload, '$.changed', 1.0) WHERE ${tenth(2)}`);
      await connection.query(`UPDATE outbox SET attempts = 3 WHERE ${tenth(3)}`);
      await connection.query(`UPDATE outbox SET event_type = 'größer', headers = '{"h": "€"}' WHERE ${tenth(12)}`);
      await connection.query(`UPDATE outbox SET attempts = 3 WHERE ${tenth(13)}`);
      await connection.query(`DELETE FROM outbox WHERE ${tenth(5)}`);
      await connection.query('COMMIT');
      await connection.query(
        `INSERT INTO outbox (topic, aggregate_id, payload, status) VALUES ('${orders}', 'settled', '1', 'published')`,
      );
      await connection.query(
        `INSERT INTO outbox (topic, aggregate_id, available_at) VALUES ('${orders}', 'later', '2999-01-01')`,
      );
      n += 1_114;
    }
  } finally {
    connection.destroy();
  }
  await bed.retired('outbox', { where: "aggregate_id <> 'later'" });
  const figures = await bed.expectDelivered({ where: "aggregate_id NOT IN ('later', 'settled')" });
  expect(figures).toMatchObject({ delivered: 4 * 1_113, duplicates: 0, altered: 0 });
  expect(await bed.count('outbox', "aggregate_id = 'later' AND status = 'pending'")).toBe(4);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('C3 a row that is gone before it is read is named, and what follows is sent', async () => {
  await using bed = await RelayBed.open(TOPIC);
  const { pool, topic } = bed.servers;
  expect((await (await bed.start()).kill('SIGTERM')).code).toBe(0);
  const connection = await pool.getConnection();
  try {
    await connection.query("SET SESSION binlog_row_image = 'MINIMAL'");
    await connection.query(insert(topic('orders'), 1, 3));
    await connection.query("DELETE FROM outbox WHERE JSON_EXTRACT(payload, '$.n') = 2");
    await connection.query("UPDATE outbox SET status = 'failed' WHERE JSON_EXTRACT(payload, '$.n') = 3");
    await connection.query(insert(topic('orders'), 4, 5));
  } finally {
    connection.destroy();
  }
  const relay = await bed.start();
  const line = await relay.waitFor('rows-gone-before-read');
  expect(line).toMatchObject({ rows: 1, ids: ['2'] });
  await bed.retired();
  expect(await bed.expectDelivered({ where: "status = 'published'" })).toMatchObject({ delivered: 3, duplicates: 0 });
});

test('S3 a row that the application holds is waited for, and those behind it with it', async () => {
  await using bed = await RelayBed.open(TOPIC);
  const { pool, topic } = bed.servers;
  expect((await (await bed.start()).kill('SIGTERM')).code).toBe(0);
  const application = await pool.getConnection();
  try {
    await application.query("SET SESSION binlog_row_image = 'MINIMAL'");
    await application.query(insert(topic('orders'), 1, 20));
    await application.query('BEGIN');
    await application.query('UPDATE outbox SET attempts = 1 WHERE id = 7');
    const relay = await bed.start();
    await relay.waitFor('row-read-failed');
    expect(await bed.records()).toBe(0);
    await application.query('COMMIT');
  } finally {
    application.destroy();
  }
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ delivered: 20, duplicates: 0 });
});
