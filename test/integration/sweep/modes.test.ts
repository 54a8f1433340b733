import { expect, test } from 'vitest';
import { expectedRows } from '../../stack/expected-rows.ts';
import { Load } from '../../stack/load.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { until } from '../../stack/until.ts';
import { command, insertText, inSession, released, RelayUser, said, startTailing, sweepBed } from './sweep-bed.ts';

test('mode: sweep is a complete relay: all rows, in order, by a user that may not even ask for the binlog', async () => {
  await using bed = await sweepBed({ config: { sweep: { mode: 'sweep', batchRows: 100 } } });
  await using user = await RelayUser.create(bed, false);
  const { pool, topic } = bed.servers;
  await insertRows(pool, { topic: topic('orders'), count: 300, prefix: 'writer-0' });
  const relay = await bed.launch({ start: 'pending', mysql: user.mysql });
  const load = new Load(pool, { topic: topic('orders'), writers: 3 });
  await until(() => load.committed > 500, { withinMs: 20_000, what: 'five hundred rows' });
  await load.stop();
  await bed.retired();
  const figures = await bed.expectDelivered();
  expect(figures).toMatchObject({ committed: figures.delivered, duplicates: 0 });
  expect(figures.committed).toBeGreaterThan(600);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  expect(said(relay, 'binlog-streaming')).toBe(0);
  // A second start repeats nothing.
  const second = await bed.launch({ mysql: user.mysql });
  await insertRows(pool, { topic: topic('orders'), count: 5, prefix: 'writer-9' });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: figures.committed + 5, duplicates: 0 });
  expect((await second.kill('SIGTERM')).code).toBe(0);
});

test('mode: sweep with retire: delete', async () => {
  await using bed = await sweepBed({
    outboxes: [{ table: 'outbox', retire: 'delete' }],
    config: { sweep: { mode: 'sweep', batchRows: 100 } },
  });
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 450 });
  const rows = await expectedRows(bed.servers.pool, { table: 'outbox' });
  const relay = await bed.launch({ start: 'pending' });
  await until(async () => (await bed.count('outbox')) === 0, { withinMs: 20_000, what: 'an empty table' });
  expect(await bed.expectDelivered({ rows })).toMatchObject({ committed: 450, delivered: 450, duplicates: 0 });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('S31 M7 the binlog may not be read any more, and then again: sweep and tail in turn, under load, once and in order', async () => {
  await using bed = await sweepBed({ topics: { orders: 3 } });
  await using user = await RelayUser.create(bed, true);
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed, { mysql: user.mysql });
  const load = new Load(bed.servers.pool, { topic, pauseMs: 20 });
  await until(() => load.committed > 200, { withinMs: 20_000, what: 'some load' });
  await user.mayReadBinlog(false);
  const told = await relay.waitFor('sweep-only');
  expect(told).toMatchObject({ level: 'error', code: 'BINLOG_NOT_PERMITTED' });
  const before = await bed.count('outbox', "status = 'published'");
  await until(async () => (await bed.count('outbox', "status = 'published'")) > before + 300, {
    withinMs: 20_000,
    what: 'rows by the sweep',
    everyMs: 100,
  });
  await user.mayReadBinlog(true);
  const after = relay.lines().length;
  await relay.waitFor('tail-flowing', { after, withinMs: 20_000 });
  await relay.waitFor('scope-released', { fields: { scope: 'everything' }, after, withinMs: 20_000 });
  await bed.sql(insertText([{ topic, key: 'last' }]));
  await load.stop();
  await bed.retired();
  const figures = await bed.expectDelivered();
  expect(figures).toMatchObject({ committed: figures.delivered, duplicates: 0 });
  expect(figures.committed).toBeGreaterThan(500);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('sweep by itself from the first start on, where the grant was forgotten; the tail once it is given', async () => {
  await using bed = await sweepBed();
  await using user = await RelayUser.create(bed, false);
  await bed.sql(`GRANT REPLICATION CLIENT ON *.* TO ${user.name}`);
  const topic = bed.servers.topic('orders');
  const relay = await bed.launch({ mysql: user.mysql });
  await relay.waitFor('sweep-only');
  await insertRows(bed.servers.pool, { topic, count: 100, perTransaction: 3 });
  await bed.retired();
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  // The next start has rows before its tail is known not to come: it does not wait for that tail.
  await insertRows(bed.servers.pool, { topic, count: 100, perTransaction: 3 });
  const second = await bed.launch({ mysql: user.mysql });
  await second.waitFor('sweep-only');
  await until(async () => (await bed.count('outbox', "status <> 'published'")) === 0, {
    withinMs: 4_000,
    what: 'rows by the sweep, soon',
  });
  await user.mayReadBinlog(true);
  await second.waitFor('tail-flowing', { withinMs: 20_000 });
  await insertRows(bed.servers.pool, { topic, count: 100, perTransaction: 3 });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 300, delivered: 300, duplicates: 0 });
  expect((await second.kill('SIGTERM')).code).toBe(0);
});

test('S12 the application holds a row that a dead leader had claimed: its aggregate waits for it, nobody else does', async () => {
  // A back-off that nobody would wait for.
  const config = { failures: { backOffMs: 600_000, backOffCapMs: 600_000 } };
  await using bed = await sweepBed({ topics: { orders: 1 }, config });
  const { pool, topic } = bed.servers;
  const first = await startTailing(bed);
  await insertRows(pool, { topic: topic('orders'), count: 3 });
  await bed.retired();
  expect((await first.kill('SIGTERM')).code).toBe(0);

  const [held, behind, other] = ['a', 'a', 'b'].map((key) => insertText([{ topic: topic('orders'), key }]));
  await bed.sql(held);
  await bed.sql("UPDATE outbox SET status = 'processing', claimed_by = X'00' WHERE status = 'pending'");
  const [claimed] = await bed.sql("SELECT id FROM outbox WHERE status = 'processing'");
  const relay = await inSession(bed, async (application) => {
    await application.beginTransaction();
    await application.query('SELECT status FROM outbox FORCE INDEX (PRIMARY) WHERE id = ? FOR UPDATE', [claimed['id']]);
    await bed.sql(behind);
    const next = await bed.start();
    await next.waitFor('claims-held', { fields: { rows: 1 } });
    await bed.sql(other);
    await bed.sql(behind);
    await bed.retired('outbox', { where: "aggregate_id = 'b'" });
    expect(await bed.records()).toBe(4);
    const { stdout } = await command(bed, 'status', '--json');
    expect(stdout).toContain('CLAIM_HELD');
    await application.rollback();
    return next;
  });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 7, delivered: 7, duplicates: 0, reordered: 0 });
  await released(relay, 'pair');
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('S12 S15 G3 a leader is frozen in the midst of its claims and comes back: the other takes them over, live rows do not overtake', async () => {
  await using bed = await sweepBed({ config: { sweep: { batchRows: 200 }, relay: { takeOverMs: 2_100 } } });
  const { pool, topic } = bed.servers;
  const rows = { topic: topic('orders'), aggregates: 7 };
  await insertRows(pool, { ...rows, count: 6_000 });
  const claimed = (): Promise<number> => bed.count('outbox', "status = 'processing'");
  const relays = [await bed.launch({ start: 'pending' }), await bed.launch({ start: 'pending' })];
  const leading = (relay: (typeof relays)[number]): boolean => {
    return relay.lines().some(({ event, to }) => event === 'relay-state' && to === 'flowing');
  };
  await until(async () => relays.some(leading) && (await claimed()) > 0, {
    withinMs: 20_000,
    what: 'claims',
    everyMs: 1,
  });
  const first = relays.find(leading)!;
  first.signal('SIGSTOP');
  try {
    await until(() => relays.some((relay) => relay !== first && leading(relay)), {
      withinMs: 30_000,
      what: 'the other leads',
    });
  } finally {
    first.signal('SIGCONT');
  }
  await insertRows(pool, { ...rows, count: 300, perTransaction: 3 });
  await first.waitFor('leadership-lost');
  await bed.retired();
  const figures = await bed.expectDelivered({ faultInjected: true });
  expect(figures).toMatchObject({ committed: 6_300, delivered: 6_300, lost: 0, reordered: 0 });
  expect(relays.some((relay) => said(relay, 'claims-released') > 0)).toBe(true);
  for (const relay of relays) expect((await relay.kill('SIGTERM')).code).toBe(0);
});
