import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CheckpointWatch } from '../stack/checkpoint-watch.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { Proxy } from '../stack/proxy.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { TopicEnds } from '../stack/topic-ends.ts';
import { until } from '../stack/until.ts';

/** Five rows to a batch: so a transaction takes long enough to be met in its midst. */
const SMALL_BATCHES = { kafka: { batchBytes: 16_384 } };

let bed: RelayBed;
let ends: TopicEnds;

beforeAll(async () => {
  bed = await RelayBed.open({ topics: { orders: 1 }, config: SMALL_BATCHES });
  ends = new TopicEnds(bed.servers, bed.topics);
});
afterAll(async () => {
  await ends[Symbol.asyncDispose]();
  await bed[Symbol.asyncDispose]();
});

describe('killed in the midst of a transaction', () => {
  let repeated = 0;

  test.for([
    { case: 'A9', rows: 5_000, sent: 2_000 },
    { case: 'B1', rows: 1_000, sent: 1 },
  ])('$case: $rows rows in many row events, SIGKILL when $sent are there', async ({ rows, sent }) => {
    const relay = await bed.start();
    await using watch = new CheckpointWatch(bed.servers);
    const before = await ends.records();
    const earlier = await bed.count('outbox');
    await bed.sql(
      `INSERT INTO outbox (topic, aggregate_id, event_type, payload)
       WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
       SELECT /*+ SET_VAR(cte_max_recursion_depth = 1M) */
         ?, CONCAT('order-', n % 20), 'placed', JSON_OBJECT('n', n, 'filler', REPEAT('x', 3000)) FROM n`,
      [rows, bed.topics[0]],
    );
    const there = async (): Promise<boolean> => (await ends.records()) - before >= sent;
    await until(there, { withinMs: 20_000, what: `${sent} records`, everyMs: 1 });
    await relay.kill();
    const killedAt = (await ends.records()) - before;
    expect(killedAt).toBeLessThan(rows);
    // Its rows may be marked; the position stands before it.
    const atKill = await bed.saved();
    const marked = await bed.count('outbox', "status = 'published'");

    const again = await bed.start();
    await bed.retired();
    await watch.expectSound();
    const { duplicates } = await bed.expectDelivered({ faultInjected: true });
    // The transaction is read again from its start; what the table says is published is not sent again.
    expect(duplicates - repeated).toBeLessThanOrEqual(killedAt + earlier - marked);
    repeated = duplicates;
    expect(await bed.saved()).not.toMatchObject({ offset: atKill?.offset });
    expect((await again.kill('SIGTERM')).code).toBe(0);
  });
});

test('B1 the dump connection is cut in the midst of a transaction: read again from its start, nothing sent twice', async () => {
  await using proxy = await Proxy.open(bed.servers.mysql);
  await using through = await RelayBed.open({ config: { mysql: { host: '127.0.0.1', port: proxy.port } } });
  const topic = through.servers.topic('orders');
  const relay = await through.start();
  await using watch = new CheckpointWatch(through.servers);
  for (let round = 0; round < 3; round++) {
    const lines = relay.lines().length;
    proxy.cutAfter(200_000 + round * 150_000, 'down');
    await insertRows(through.servers.pool, { topic, count: 300, payloadBytes: 3_000 });
    await relay.waitFor('tail-lost', { after: lines });
    await insertRows(through.servers.pool, { topic, count: 50, perTransaction: 5 });
    await through.retired();
  }
  await watch.expectSound();
  expect(await through.expectDelivered()).toMatchObject({ committed: 1_050, duplicates: 0 });
});

test('B1 a transaction too large to be kept is cut in its second reading: begun again, all there, in order', async () => {
  await using proxy = await Proxy.open(bed.servers.mysql);
  await using through = await RelayBed.open({
    topics: { orders: 1 },
    config: {
      ...SMALL_BATCHES,
      mysql: { host: '127.0.0.1', port: proxy.port },
      relay: { maxTransactionBytes: 262_144, maxInFlightBytes: 262_144 },
    },
  });
  const topic = through.servers.topic('orders');
  const relay = await through.start();
  await using watch = new CheckpointWatch(through.servers);
  await insertRows(through.servers.pool, { topic, count: 20 });
  await through.retired();
  await insertRows(through.servers.pool, { topic, count: 2_000, payloadBytes: 3_000 });
  await relay.waitFor('binlog-second-read');
  await until(async () => (await through.records()) > 40, { withinMs: 20_000, what: 'some of its rows', everyMs: 1 });
  proxy.cutAfter(20_000, 'down');
  await relay.waitFor('tail-lost');
  expect(await through.records()).toBeLessThan(2_020);
  await insertRows(through.servers.pool, { topic, count: 20 });
  await through.retired();
  await watch.expectSound();
  expect(relay.alive()).toBe(true);
  expect(await through.expectDelivered({ faultInjected: true })).toMatchObject({ committed: 2_040, reordered: 0 });
});
