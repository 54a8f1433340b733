import { expect, test } from 'vitest';
import { logHead } from '../../stack/log-head.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';

test('the first start on a table with rows must be told where to begin', async () => {
  await using bed = await RelayBed.open();
  const rows = { topic: bed.servers.topic('orders'), count: 10 };
  const before = await logHead((text) => bed.sql(text));
  await insertRows(bed.servers.pool, rows);

  const untold = await bed.launch({ start: 'none' });
  expect((await untold.exited).code).toBe(2);
  expect(untold.stderr()).toContain('START_NOT_CHOSEN');
  expect(untold.stderr()).toContain('10 pending');
  const impossible = await bed.launch({ start: 'pending' });
  expect((await impossible.exited).code).toBe(1);
  expect(impossible.stderr()).toContain('START_PENDING_UNSUPPORTED');
  expect(await bed.saved()).toBeNull();

  const relay = await bed.start({ start: before });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 10, duplicates: 0 });
  // From then on the saved position counts, whatever the configuration says.
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  await insertRows(bed.servers.pool, rows);
  await bed.start({ start: 'head' });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 20, duplicates: 0 });
});

test('start: head leaves what is there alone; without a word an empty table starts at the head', async () => {
  await using bed = await RelayBed.open();
  const topic = bed.servers.topic('orders');
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.start({ start: 'head' });
  await insertRows(bed.servers.pool, { topic, count: 5, prefix: 'later' });
  const later = "aggregate_id LIKE 'later-%'";
  await bed.retired('outbox', { where: later });
  await bed.expectDelivered({ where: later });
  expect(await bed.count('outbox', "status = 'pending'")).toBe(10);

  await using fresh = await RelayBed.open();
  await fresh.start({ start: 'none' });
  await insertRows(fresh.servers.pool, { topic: fresh.servers.topic('orders'), count: 5 });
  await fresh.retired();
  await fresh.expectDelivered();
});

test('a position of another server is not read here: the relay halts, and says which is which', async () => {
  await using bed = await RelayBed.open();
  const relay = await bed.start();
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  const foreign = '11111111-2222-3333-4444-555555555555';
  await bed.sql('UPDATE cdc_relay_offsets SET server_uuid = ?', [foreign]);
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 1 });
  const halted = await bed.launch();
  expect((await halted.exited).code).toBe(1);
  expect(halted.stderr()).toContain('MYSQL_FOREIGN_SERVER');
  expect(halted.stderr()).toContain(foreign);
  expect(await bed.records()).toBe(0);
});

test('an unknown topic halts before its row; once it is there the relay goes on, in order', async () => {
  await using bed = await RelayBed.open({ topics: { orders: 1 } });
  const { pool, topic } = bed.servers;
  const relay = await bed.start();
  await insertRows(pool, { topic: topic('orders'), count: 3 });
  await bed.retired();
  await insertRows(pool, { topic: topic('late'), count: 3 });
  await insertRows(pool, { topic: topic('orders'), count: 3 });
  expect((await relay.exited).code).toBe(1);
  expect(relay.lines().find(({ event }) => event === 'relay-halted')).toMatchObject({
    code: 'KAFKA_UNKNOWN_TOPIC_OR_PARTITION',
  });
  expect(relay.stderr()).toContain(topic('late'));
  expect(await bed.count('outbox', "status = 'pending'")).toBe(6);

  await bed.servers.createTopics({ late: 2 });
  await bed.start();
  await bed.retired();
  expect(await bed.expectDelivered({ topics: [topic('orders'), topic('late')], faultInjected: true })).toMatchObject({
    committed: 9,
    lost: 0,
    reordered: 0,
  });
});

test.for([
  { what: 'a record over the limit of the broker', topic: 'orders', bytes: 3_000_000, code: 'KAFKA_MESSAGE_TOO_LARGE' },
  { what: 'a row without a topic', topic: '', bytes: 100, code: 'ROW_NO_TOPIC' },
])('$what halts before it, and what it holds is not told', async ({ topic, bytes, code }) => {
  await using bed = await RelayBed.open();
  const relay = await bed.start();
  const good = bed.servers.topic('orders');
  await insertRows(bed.servers.pool, { topic: good, count: 3 });
  await bed.retired();
  const before = await bed.saved();
  await insertRows(bed.servers.pool, { topic: topic === '' ? '' : good, count: 1, payloadBytes: bytes });
  await insertRows(bed.servers.pool, { topic: good, count: 3 });
  expect((await relay.exited).code).toBe(1);
  expect(relay.lines().find(({ event }) => event === 'relay-halted')).toMatchObject({ code });
  expect(relay.stderr()).not.toContain('filler');
  expect(relay.stderr().length).toBeLessThan(10_000);
  expect(await bed.saved()).toMatchObject({ file: before?.file, offset: before?.offset });
});
