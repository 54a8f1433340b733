import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { full } from '../../stack/full.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { until } from '../../stack/until.ts';
import { insertText, inSession, RelayUser, REFUSED, setTopic, LENIENT, startTailing, sweepBed } from './sweep-bed.ts';

const STRESS_MS = full(6_000, 60_000);
const INSERT_MS = 100;

test.for(['tail', 'sweep'])(
  `H1 four writers beside claims and flushes (%s): no INSERT fails, or waits`,
  { timeout: STRESS_MS + 60_000 },
  async (mode) => {
    await using bed = await sweepBed({ config: { sweep: { mode, intervalMs: 10 } } });
    const topic = bed.servers.topic('orders');
    const relay = await bed.launch();
    await relay.waitFor('relay-state', { fields: { to: 'flowing' } });
    const took: number[] = [];
    const endMs = performance.now() + STRESS_MS;
    const write = (writer: number): Promise<void> =>
      inSession(bed, async (session) => {
        await session.query('SET SESSION innodb_lock_wait_timeout = 1');
        // A part of it has to be swept, so that claims come beside flushes.
        for (let n = 0; performance.now() < endMs; n++) {
          if (n % 50 === 40) await session.query("SET SESSION binlog_format = 'STATEMENT'");
          const row = { topic, key: `writer-${writer}-${n % 5}` };
          const beganMs = performance.now();
          await session.query(insertText([row, row, row]));
          took.push(performance.now() - beganMs);
          if (n % 50 === 40) await session.query("SET SESSION binlog_format = 'ROW'");
          await sleep(5);
        }
      });
    await Promise.all([0, 1, 2, 3].map(write));
    took.sort((a, b) => a - b);
    expect(took.length).toBeGreaterThan(STRESS_MS / 25);
    // What this machine does beside it may hold up one or two.
    expect(took[Math.floor(took.length * 0.995)]).toBeLessThan(INSERT_MS);
    await bed.retired();
    const rows = 3 * took.length;
    expect(await bed.expectDelivered()).toMatchObject({ committed: rows, delivered: rows, duplicates: 0 });
    expect((await relay.kill('SIGTERM')).code).toBe(0);
  },
);

test('M5 a row that the application holds keeps later rows of its aggregate out of the round; nobody else waits', async () => {
  await using bed = await sweepBed({ topics: { orders: 1 } });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  const also = { available_at: 'UTC_TIMESTAMP(6) + INTERVAL 1 SECOND' };
  await bed.sql(
    insertText([
      { topic, key: 'a', also },
      { topic, key: 'a', also },
      { topic, key: 'b', also },
    ]),
  );
  await inSession(bed, async (application) => {
    await application.beginTransaction();
    await application.query("SELECT id FROM outbox WHERE aggregate_id = 'a' ORDER BY id LIMIT 1 FOR UPDATE");
    await bed.retired('outbox', { where: "aggregate_id = 'b'" });
    await insertRows(bed.servers.pool, { topic, count: 50, perTransaction: 1 });
    await bed.retired('outbox', { where: "aggregate_id LIKE 'aggregate%'" });
    expect(await bed.count('outbox', "aggregate_id = 'a' AND status = 'pending'")).toBe(2);
    await application.commit();
  });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 53, delivered: 53, duplicates: 0 });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('H3 a hundred rows in front that fail every time: ten good ones behind them go out at once, and nothing runs hot', async () => {
  const failures = { deadLetterTopic: 'there-is-no-such-topic', backOffMs: 1_000, backOffCapMs: 60_000 };
  await using bed = await sweepBed({
    topics: { orders: 1 },
    config: { failures, sweep: { mode: 'sweep', batchRows: 100, intervalMs: 500 } },
  });
  await using user = await RelayUser.create(bed, true);
  const topic = bed.servers.topic('orders');
  await bed.sql(insertText(Array.from({ length: 100 }, (_, n) => ({ topic, key: `poison-${n}`, also: REFUSED }))));
  const relay = await bed.launch({ start: 'pending', mysql: user.mysql });
  await until(async () => (await bed.count('outbox', 'attempts > 0')) === 100, {
    withinMs: 20_000,
    what: 'a hundred failures',
  });
  await bed.sql(insertText(Array.from({ length: 10 }, (_, n) => ({ topic, key: `good-${n}` }))));
  const good = "aggregate_id LIKE 'good-%'";
  await bed.retired('outbox', { where: good });
  const [late] = await bed.sql(
    `SELECT MAX(TIMESTAMPDIFF(MICROSECOND, created_at, published_at)) / 1000 AS ms FROM outbox WHERE ${good}`,
  );
  expect(Number(late['ms'])).toBeLessThan(1_500);
  const tries = async (): Promise<number> => Number((await bed.sql('SELECT SUM(attempts) AS n FROM outbox'))[0]['n']);
  const before = { selects: await user.statements('select'), tries: await tries() };
  await sleep(3_000);
  const selects = (await user.statements('select')) - before.selects;
  const retried = (await tries()) - before.tries;
  process.stderr.write(`H3: ${selects} SELECTs and ${retried} attempts in three seconds\n`);
  expect(selects).toBeLessThan(3 * 60);
  expect(retried).toBeLessThan(300);
  expect(await bed.count('outbox', "status = 'failed'")).toBe(0);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  await setTopic(bed, 'orders', LENIENT);
  await bed.launch({ mysql: user.mysql, failures: { ...failures, backOffCapMs: 1_000 } });
  expect(await bed.expectDelivered({ where: good })).toMatchObject({ committed: 10, duplicates: 0 });
});
