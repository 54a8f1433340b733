import { expect, test } from 'vitest';
import { insertInto, insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';

const MIB = 1_048_576;

test('A3 an outbox written by a trigger: rows of both tables alternate, and only the outbox is read as one', async () => {
  await using bed = await RelayBed.open();
  const topic = bed.servers.topic('orders');
  await bed.sql('CREATE TABLE placed (id INT PRIMARY KEY AUTO_INCREMENT, state VARCHAR(20), note VARCHAR(300))');
  await bed.sql(
    `CREATE TRIGGER placing AFTER INSERT ON placed FOR EACH ROW
     INSERT INTO outbox (topic, aggregate_id, event_type, payload)
     VALUES ('${topic}', CONCAT('order-', NEW.id), NEW.state, JSON_OBJECT('id', NEW.id, 'note', NEW.note))`,
  );
  await bed.start();
  await bed.sql("INSERT INTO placed (state, note) VALUES ('a', 'first'), ('b', NULL)");
  await bed.sql(`INSERT INTO placed (state, note) VALUES ${"('c', REPEAT('x', 300)),".repeat(99)} ('d', 'last')`);
  await bed.retired();
  expect(await bed.count('outbox')).toBe(102);
  expect(await bed.expectDelivered()).toMatchObject({ committed: 102, delivered: 102, duplicates: 0 });
});

test.for([32 * MIB, 4 * MIB])(
  'S23 an open transaction of 25 MiB does not starve a pool of %i bytes',
  async (maxInFlightBytes) => {
    await using bed = await RelayBed.open({ config: { relay: { maxInFlightBytes } } });
    const topic = bed.servers.topic('orders');
    await bed.start();
    // Lanes with something in them before, while and after it is read.
    const others = insertRows(bed.servers.pool, { topic, count: 300, perTransaction: 1, prefix: 'other' });
    await insertRows(bed.servers.pool, { topic, count: 400, payloadBytes: 65_536, aggregates: 40 });
    await others;
    await bed.retired('outbox', { withinMs: 30_000 });
    expect(await bed.expectDelivered()).toMatchObject({ committed: 700, delivered: 700, duplicates: 0 });
  },
);

test('a transaction over its bound that changes its own rows is left to the sweep, in order with what is before and behind', async () => {
  await using bed = await RelayBed.open({ config: { sweep: { intervalMs: 100 } } });
  const topic = bed.servers.topic('orders');
  const relay = await bed.start({ relay: { maxTransactionBytes: MIB } });
  await insertRows(bed.servers.pool, { topic, count: 10, payloadBytes: 10_000 });
  await bed.retired();
  const connection = await bed.servers.pool.getConnection();
  await connection.beginTransaction();
  await insertInto(connection, { topic, count: 30, payloadBytes: 65_536 });
  await connection.query("UPDATE outbox SET event_type = 'changed' ORDER BY id DESC LIMIT 1");
  await connection.commit();
  connection.release();
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.retired();
  const left = relay.lines().find(({ event }) => event === 'transaction-left-to-sweep');
  expect(left).toMatchObject({ code: 'BINLOG_TRANSACTION_TOO_LARGE' });
  expect(String(left!['detail'])).toContain('relay.maxTransactionBytes');
  // The tail has it again.
  await relay.waitFor('scope-released', { after: relay.lines().indexOf(left!) });
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 60, delivered: 60, duplicates: 0 });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('transactions over the bound of memory go out among others, in order and once', async () => {
  await using bed = await RelayBed.open({ config: { relay: { maxTransactionBytes: 65_536 } } });
  const topic = bed.servers.topic('orders');
  const relay = await bed.start();
  for (const payloadBytes of [100, 20_000, 100, 70_000]) {
    await insertRows(bed.servers.pool, { topic, count: 50, payloadBytes });
  }
  await bed.retired();
  expect(relay.lines().filter(({ event }) => event === 'binlog-second-read')).toHaveLength(2);
  expect(await bed.expectDelivered()).toMatchObject({ committed: 200, delivered: 200, duplicates: 0 });
});
