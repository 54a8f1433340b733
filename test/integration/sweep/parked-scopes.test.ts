import { expect, test } from 'vitest';
import { full } from '../../stack/full.ts';
import { Load } from '../../stack/load.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { until } from '../../stack/until.ts';
import { insertText, inSession, LENIENT, REFUSED, said, setTopic, startTailing, sweepBed } from './sweep-bed.ts';

const UNDER_LOAD_MS = full(4_000, 30_000);

test('S14 keys that a collation takes for one are pairs of their own, and so is each row without a key', async () => {
  await using bed = await sweepBed({
    topics: { orders: 1, keyless: 1 },
    config: { failures: { deadLetterTopic: 'there-is-no-such-topic' } },
  });
  const { topic } = bed.servers;
  await bed.sql('ALTER TABLE outbox MODIFY aggregate_id VARCHAR(128) COLLATE utf8mb4_0900_ai_ci NULL');
  const relay = await startTailing(bed);
  const orders = topic('orders');
  await bed.sql(insertText([{ topic: orders, key: 'order-a', also: REFUSED }]));
  await until(async () => (await bed.count('outbox', 'attempts > 1')) === 1, {
    withinMs: 20_000,
    what: 'two attempts',
  });
  await bed.sql(insertText(['order-a', 'Order-A', 'ORDER-á', 'order-a '].map((key) => ({ topic: orders, key }))));
  const sameBytes = "CAST(aggregate_id AS BINARY) = 'order-a'";
  await bed.retired('outbox', { where: `NOT ${sameBytes}` });
  expect(await bed.count('outbox', `${sameBytes} AND status <> 'published'`)).toBe(2);
  await bed.sql(insertText([{ topic: orders, key: 'ORDER-á', also: REFUSED }]));
  const parked = async (): Promise<string[]> => {
    return (await bed.sql('SELECT key_bytes FROM cdc_relay_parked')).map(({ key_bytes: key }) => String(key)).sort();
  };
  await until(async () => (await parked()).length === 2, { withinMs: 20_000, what: 'two pairs parked' });
  expect(await parked()).toEqual(['ORDER-á', 'order-a']);

  const keyless = topic('keyless');
  await bed.sql(
    `INSERT INTO outbox (topic, payload, created_at) VALUES ('${keyless}', '{"n": 1}', ${REFUSED.created_at}),
       ('${keyless}', '{"n": 2}', UTC_TIMESTAMP(6)), ('${keyless}', '{"n": 3}', UTC_TIMESTAMP(6))`,
  );
  await bed.retired('outbox', { where: `topic = '${keyless}' AND payload->'$.n' > 1` });
  expect(await bed.records([keyless])).toBe(2);
  for (const name of ['orders', 'keyless']) await setTopic(bed, name, LENIENT);
  await bed.retired();
  expect(await bed.records([keyless])).toBe(3);
  const where = `topic = '${orders}'`;
  expect(await bed.expectDelivered({ where, topics: [orders] })).toMatchObject({
    committed: 6,
    delivered: 6,
    duplicates: 0,
  });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('S21 three thousand rows of a topic that is not there stand in front: rows behind them are found all the same', async () => {
  await using bed = await sweepBed({ config: { sweep: { batchRows: 200 } } });
  const { pool, topic } = bed.servers;
  const relay = await startTailing(bed);
  await insertRows(pool, { topic: topic('nope'), count: 3_000, aggregates: 500 });
  await relay.waitFor('scope-parked', { fields: { scope: 'topic' } });
  const also = { available_at: 'UTC_TIMESTAMP(6) + INTERVAL 1 SECOND' };
  await bed.sql(
    insertText(Array.from({ length: 30 }, (_, n) => ({ topic: topic('orders'), key: `late-${n % 5}`, also }))),
  );
  const late = "aggregate_id LIKE 'late-%'";
  // Looking through them takes its time: a hundredth of all time, at most, is spent on looks.
  await bed.retired('outbox', { where: late, withinMs: 40_000 });
  expect(await bed.count('outbox', "status = 'pending'")).toBe(3_000);
  await bed.servers.createTopics({ nope: 2 });
  await bed.retired();
  const topics = [...bed.topics, topic('nope')];
  expect(await bed.expectDelivered({ topics })).toMatchObject({ committed: 3_030, delivered: 3_030, duplicates: 0 });
});

test(
  'S5 S29 S30 under load the tail gives everything to the sweep and takes it back again and again: once, in order',
  { timeout: UNDER_LOAD_MS + 240_000 },
  async () => {
    await using bed = await sweepBed({ topics: { orders: 3 }, config: { sweep: { intervalMs: 20 } } });
    const topic = bed.servers.topic('orders');
    const relay = await startTailing(bed);
    const load = new Load(bed.servers.pool, { topic, pauseMs: 5 });
    await inSession(bed, async (statements) => {
      await statements.query("SET SESSION binlog_format = 'STATEMENT'");
      const endMs = performance.now() + UNDER_LOAD_MS;
      const handedBack = (): number => said(relay, 'scope-released');
      for (let n = 0; performance.now() < endMs; n++) {
        const before = handedBack();
        await statements.query(insertText([{ topic, key: `statement-${n % 3}` }]));
        await bed.sql(insertText([{ topic, key: `statement-${n % 3}` }]));
        // Every other one comes while the one before is still handed over.
        if (n % 2 === 0)
          await until(() => handedBack() > before, { withinMs: 20_000, what: 'a hand-over', everyMs: 5 });
      }
    });
    await load.stop();
    expect(load.failed).toBe(0);
    await bed.retired();
    expect(said(relay, 'scope-released')).toBeGreaterThan(5);
    const figures = await bed.expectDelivered();
    expect(figures).toMatchObject({ committed: figures.delivered, duplicates: 0 });
    expect(figures.committed).toBeGreaterThan(500);
    expect((await relay.kill('SIGTERM')).code).toBe(0);
  },
);
