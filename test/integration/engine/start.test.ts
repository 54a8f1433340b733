import { expect, test } from 'vitest';
import { logHead } from '../../stack/log-head.ts';
import { insertInto, insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { until } from '../../stack/until.ts';

const SWEPT_OFTEN = { sweep: { intervalMs: 100 }, failures: { backOffMs: 50, backOffCapMs: 200 } };

test('the first start on a table with rows must be told where to begin', async () => {
  await using bed = await RelayBed.open();
  const rows = { topic: bed.servers.topic('orders'), count: 10 };
  const before = await logHead((text) => bed.sql(text));
  await insertRows(bed.servers.pool, rows);

  const untold = await bed.launch({ start: 'none' });
  expect((await untold.exited).code).toBe(2);
  expect(untold.stderr()).toContain('START_NOT_CHOSEN');
  expect(untold.stderr()).toContain('10 pending');
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

test('S6 start: head: what is there counts as published and is not sent; without a word an empty table starts at the head', async () => {
  await using bed = await RelayBed.open({ config: SWEPT_OFTEN });
  const topic = bed.servers.topic('orders');
  await insertRows(bed.servers.pool, { topic, count: 2_500 });
  const relay = await bed.start({ start: 'head' });
  expect(relay.lines()).toContainEqual(expect.objectContaining({ event: 'history-counts-as-published', rows: 2_500 }));
  expect(await bed.count('outbox', "status = 'published' AND attempts = 0")).toBe(2_500);
  await insertRows(bed.servers.pool, { topic, count: 5, prefix: 'later' });
  await bed.retired();
  expect(await bed.expectDelivered({ where: "aggregate_id LIKE 'later-%'" })).toMatchObject({ committed: 5 });

  await using fresh = await RelayBed.open();
  await fresh.start({ start: 'none' });
  await insertRows(fresh.servers.pool, { topic: fresh.servers.topic('orders'), count: 5 });
  await fresh.retired();
  expect(await fresh.expectDelivered()).toMatchObject({ committed: 5, duplicates: 0 });
});

test('S7 the first start under load: rows committed around the moment at which the head is read are not lost', async () => {
  await using bed = await RelayBed.open({ config: SWEPT_OFTEN });
  const { pool, topic } = bed.servers;
  const rows = { topic: topic('orders'), perTransaction: 1 };
  const early = await pool.getConnection();
  await early.beginTransaction();
  await insertInto(early, { ...rows, count: 3, prefix: 'early' });
  let isLoading = true;
  const load = async (prefix: string): Promise<void> => {
    while (isLoading) await insertRows(pool, { ...rows, count: 10, prefix });
  };
  const loads = ['a', 'b', 'c'].map(load);
  const relay = await bed.start({ start: 'pending' });
  // Written before the head was read, and visible only now.
  await early.commit();
  early.release();
  await relay.waitFor('scope-released', { fields: { scope: 'everything' } });
  isLoading = false;
  await Promise.all(loads);
  await bed.retired();
  const committed = await bed.count('outbox');
  expect(await bed.expectDelivered()).toMatchObject({ committed, delivered: committed, duplicates: 0 });
});

test('S11 start: pending: what waits is delivered from its table, and live rows of the same aggregates do not overtake', async () => {
  await using bed = await RelayBed.open({ config: { ...SWEPT_OFTEN, sweep: { intervalMs: 100, batchRows: 50 } } });
  const { pool, topic } = bed.servers;
  const rows = { topic: topic('orders'), aggregates: 7 };
  await insertRows(pool, { ...rows, count: 2_000 });
  // Gone with its binlog, were it read: by the tail nothing of it can come.
  await bed.sql("UPDATE outbox SET event_type = 'changed' WHERE id % 10 = 0");
  const relay = await bed.start({ start: 'pending' });
  for (let n = 0; n < 400; n += 4) {
    await insertRows(pool, { ...rows, count: 4 });
  }
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 2_400, delivered: 2_400, duplicates: 0 });
  await relay.waitFor('scope-released', { fields: { scope: 'everything' } });
});

test('the checkpoint of another server: said once, everything from the table, nothing is lost', async () => {
  await using bed = await RelayBed.open({ config: SWEPT_OFTEN });
  const { pool, topic } = bed.servers;
  const rows = { topic: topic('orders'), count: 20 };
  const relay = await bed.start();
  await insertRows(pool, rows);
  await bed.retired();
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  const foreign = '11111111-2222-3333-4444-555555555555';
  await bed.sql('UPDATE cdc_relay_offsets SET server_uuid = ?', [foreign]);
  await insertRows(pool, rows);
  const second = await bed.start();
  await insertRows(pool, rows);
  const told = await second.waitFor('position-unusable');
  expect(told).toMatchObject({ level: 'error', code: 'MYSQL_FOREIGN_SERVER' });
  expect(String(told['detail'])).toContain(foreign);
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 60, delivered: 60, duplicates: 0 });
  await second.waitFor('scope-released', { fields: { scope: 'everything' } });
  await insertRows(pool, rows);
  await bed.retired();
  expect((await second.kill('SIGTERM')).code).toBe(0);
  const last = await bed.start();
  expect(last.lines().some(({ event }) => event === 'position-unusable')).toBe(false);
  expect(await bed.expectDelivered()).toMatchObject({ committed: 80, delivered: 80, duplicates: 0 });
});

test('F2 an unknown topic: its rows wait, all others flow; once it is there its rows follow, in order', async () => {
  await using bed = await RelayBed.open({ topics: { t1: 1, t2: 2 }, config: SWEPT_OFTEN });
  const { pool, topic } = bed.servers;
  const relay = await bed.start();
  const mixed = async (): Promise<void> => {
    for (const name of ['t1', 'nope', 't2', 'nope'])
      await insertRows(pool, { topic: topic(name), count: 6, aggregates: 2 });
  };
  await mixed();
  const others = `topic <> '${topic('nope')}'`;
  await bed.retired('outbox', { where: others });
  expect(relay.lines()).toContainEqual(
    expect.objectContaining({ event: 'scope-parked', scope: 'topic', reason: 'KAFKA_UNKNOWN_TOPIC_OR_PARTITION' }),
  );
  await mixed();
  await bed.retired('outbox', { where: others });
  expect(await bed.expectDelivered({ where: others })).toMatchObject({ committed: 24, delivered: 24, duplicates: 0 });
  expect(await bed.count('outbox', `topic = '${topic('nope')}' AND status = 'pending' AND attempts = 0`)).toBe(24);
  // The checkpoint does not wait for it.
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  expect((await bed.saved())!.offset).toBeGreaterThan(0);
  await bed.start();

  await bed.servers.createTopics({ nope: 2 });
  await mixed();
  await bed.retired();
  expect(await bed.expectDelivered({ topics: [...bed.topics, topic('nope')] })).toMatchObject({
    committed: 72,
    delivered: 72,
    duplicates: 0,
  });
});

test.for([
  { what: 'a record over the limit of the broker', topic: 'orders', bytes: 3_000_000, code: 'KAFKA_MESSAGE_TOO_LARGE' },
  { what: 'a row without a topic', topic: '', bytes: 100, code: 'ROW_NO_TOPIC' },
])('$what fails, its siblings go on in order, and what it holds is not told', async ({ topic, bytes, code }) => {
  await using bed = await RelayBed.open({ config: SWEPT_OFTEN });
  const relay = await bed.start();
  const { pool } = bed.servers;
  const good = { topic: bed.servers.topic('orders'), count: 6, aggregates: 2 };
  await insertRows(pool, good);
  await insertRows(pool, { topic: topic === '' ? '' : good.topic, count: 1, payloadBytes: bytes });
  await insertRows(pool, good);
  await bed.retired();
  const failed = await bed.sql("SELECT attempts, last_error, published_at FROM outbox WHERE status = 'failed'");
  expect(failed).toMatchObject([{ attempts: 1, published_at: null }]);
  expect(String(failed[0]['last_error']).startsWith(`${code}: `)).toBe(true);
  expect(await bed.expectDelivered({ where: "status = 'published'" })).toMatchObject({
    committed: 12,
    delivered: 12,
    duplicates: 0,
  });
  expect(relay.lines()).toContainEqual(expect.objectContaining({ event: 'row-failed', code }));
  expect(relay.stderr()).not.toContain('filler');
  expect(relay.stderr().length).toBeLessThan(10_000);
  // It is done with: it does not come again with the next start.
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  await bed.start();
  await insertRows(pool, good);
  await bed.retired();
  expect(await bed.expectDelivered({ where: "status = 'published'" })).toMatchObject({ committed: 18, duplicates: 0 });
  expect(await bed.sql("SELECT attempts FROM outbox WHERE status = 'failed'")).toMatchObject([{ attempts: 1 }]);
});

test('an outbox that is only kept has nowhere to say that a row failed: the relay halts before it', async () => {
  await using bed = await RelayBed.open({ outboxes: [{ table: 'outbox', retire: 'keep' }] });
  const { pool, topic } = bed.servers;
  const relay = await bed.start();
  await insertRows(pool, { topic: topic('orders'), count: 3 });
  await insertRows(pool, { topic: topic('late'), count: 3 });
  await insertRows(pool, { topic: topic('orders'), count: 3 });
  expect((await relay.exited).code).toBe(1);
  expect(relay.lines().find(({ event }) => event === 'relay-halted')).toMatchObject({
    code: 'KAFKA_UNKNOWN_TOPIC_OR_PARTITION',
  });
  await bed.servers.createTopics({ late: 2 });
  await bed.start();
  const topics = [topic('orders'), topic('late')];
  await until(async () => (await bed.records(topics)) >= 9, { withinMs: 20_000, what: 'nine records' });
  await bed.expectDelivered({ topics, faultInjected: true });
});
