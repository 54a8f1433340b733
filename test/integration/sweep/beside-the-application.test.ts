import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolConnection } from 'mysql2/promise';
import { expect, test } from 'vitest';
import { full } from '../../stack/full.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { until } from '../../stack/until.ts';
import {
  command,
  insertText,
  inSession,
  RelayUser,
  REFUSED,
  setTopic,
  LENIENT,
  startTailing,
  sweepBed,
} from './sweep-bed.ts';

const STRESS_MS = full(6_000, 60_000);
/** A machine that stands still for a moment adds up to this; who waits for a lock waits for a second, and fails. */
const INSERT_MS = 500;

test.for(['tail', 'sweep'])(
  `H1 four writers beside claims and flushes (%s): no INSERT fails, or waits`,
  { timeout: STRESS_MS + 240_000 },
  async (mode) => {
    await using bed = await sweepBed({ config: { sweep: { mode, intervalMs: 10 } } });
    const topic = bed.servers.topic('orders');
    const relay = await bed.launch();
    await relay.waitFor('relay-state', { fields: { to: 'flowing' } });
    // What the machine takes for an INSERT that nothing of the relay's can hold up.
    await bed.sql('CREATE TABLE beside (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)');
    const took: number[] = [];
    const tookBeside: number[] = [];
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
          const insertedMs = performance.now();
          took.push(insertedMs - beganMs);
          await session.query('INSERT INTO beside (n) VALUES (1), (2), (3)');
          tookBeside.push(performance.now() - insertedMs);
          if (n % 50 === 40) await session.query("SET SESSION binlog_format = 'ROW'");
          await sleep(5);
        }
      });
    await Promise.all([0, 1, 2, 3].map(write));
    expect(took.length).toBeGreaterThan(STRESS_MS / 100);
    // What this machine does beside it may hold up one or two.
    expect(percentile(took)).toBeLessThan(INSERT_MS + percentile(tookBeside));
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
  const also = { available_at: 'UTC_TIMESTAMP(6) + INTERVAL 3 SECOND' };
  await inSession(bed, async (application) => {
    await bed.sql(
      insertText([
        { topic, key: 'a', also },
        { topic, key: 'a', also },
        { topic, key: 'b', also },
      ]),
    );
    // The row is held before it is due.
    await application.beginTransaction();
    await application.query("SELECT id FROM outbox WHERE aggregate_id = 'a' ORDER BY id LIMIT 1 FOR UPDATE");
    await bed.retired('outbox', { where: "aggregate_id = 'b'" });
    await insertRows(bed.servers.pool, { topic, count: 50, perTransaction: 1 });
    await bed.retired('outbox', { where: "aggregate_id LIKE 'aggregate%'" });
    // The second one may be claimed for a moment, before it is seen that the first one is not.
    expect(await bed.count('outbox', "aggregate_id = 'a' AND status IN ('pending', 'processing')")).toBe(2);
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
  expect(Number(late['ms'])).toBeLessThan(10_000);
  const tries = async (): Promise<number> => Number((await bed.sql('SELECT SUM(attempts) AS n FROM outbox'))[0]['n']);
  const before = { selects: await user.statements('select'), tries: await tries(), atMs: performance.now() };
  await sleep(3_000);
  const retried = (await tries()) - before.tries;
  const selects = (await user.statements('select')) - before.selects;
  // A busy machine sleeps longer.
  const seconds = (performance.now() - before.atMs) / 1_000;
  process.stderr.write(`H3: ${selects} SELECTs and ${retried} attempts in ${seconds.toFixed(1)} s\n`);
  // By its back-off each row is tried three or four times in such a while; what runs hot tries and asks without end.
  expect(retried / 100).toBeLessThan(2 + Math.log2(1 + seconds));
  expect(selects).toBeLessThan(2 * retried + 60 * seconds);
  expect(await bed.count('outbox', "status = 'failed'")).toBe(0);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  await setTopic(bed, 'orders', LENIENT);
  await bed.launch({ mysql: user.mysql, failures: { ...failures, backOffCapMs: 1_000 } });
  expect(await bed.expectDelivered({ where: good })).toMatchObject({ committed: 10, duplicates: 0 });
});

test('S26 H1 the application deletes by status and by key, old rows are purged: no INSERT and no DELETE by key fails', async () => {
  await using bed = await sweepBed({ topics: { orders: 3, passing: 3 } });
  const orders = bed.servers.topic('orders');
  const passing = bed.servers.topic('passing');
  const old = { status: "'published'", published_at: 'UTC_TIMESTAMP(6) - INTERVAL 2 DAY' };
  for (let n = 0; n < 10; n++) {
    await bed.sql(insertText(Array.from({ length: 1_000 }, () => ({ topic: passing, key: 'old', also: old }))));
  }
  const relay = await startTailing(bed, { start: 'head' });
  await insertRows(bed.servers.pool, { topic: orders, count: 1 });
  await bed.retired();
  let victims = 0;
  const beside = (endMs: number, each: (session: PoolConnection, n: number) => Promise<void>): Promise<void> =>
    inSession(bed, async (session) => {
      await session.query('SET SESSION innodb_lock_wait_timeout = 5');
      for (let n = 0; performance.now() < endMs; n++) {
        await each(session, n);
        await sleep(5);
      }
    });
  const deleteByStatus = async (session: PoolConnection): Promise<void> => {
    try {
      await session.query(`DELETE FROM outbox WHERE status = 'published' AND topic = '${passing}' LIMIT 20`);
    } catch (error) {
      // A deadlock is the application's to repeat: it took the index and the rows in the other order.
      expect((error as { code?: unknown }).code).toMatch(/^ER_LOCK_(DEADLOCK|WAIT_TIMEOUT)$/);
      victims++;
    }
  };
  const deleteByKey = async (session: PoolConnection): Promise<void> => {
    const [row] = await bed.sql(
      `SELECT MAX(id) AS id FROM outbox WHERE topic = '${passing}' AND status = 'published' AND aggregate_id <> 'old'`,
    );
    await session.query('DELETE FROM outbox WHERE id = ?', [row['id'] ?? 0]);
  };
  const purged = command(bed, 'purge', '--older-than', '1d', '--yes');
  // One after the other: what the application does to itself is not the relay's.
  for (const deletes of [deleteByStatus, deleteByKey]) {
    const endMs = performance.now() + full(2_500, 20_000);
    const write = (topic: string, writer: number): Promise<void> =>
      beside(endMs, async (session, n) => {
        await session.query(insertText([{ topic, key: `writer-${writer}-${n % 5}` }]));
      });
    const writers = [write(orders, 1), write(orders, 2), write(passing, 3), write(passing, 4)];
    await Promise.all([...writers, beside(endMs, deletes)]);
  }
  expect((await purged).exit.code).toBe(0);
  process.stderr.write(`S26: the application was the victim ${victims} times\n`);
  await bed.retired();
  expect(await bed.count('outbox', "aggregate_id = 'old'")).toBe(0);
  const delivered = await bed.expectDelivered({ where: `topic = '${orders}'`, topics: [orders] });
  expect(delivered).toMatchObject({ duplicates: 0 });
  expect(delivered.committed).toBeGreaterThan(100);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

/** 98 % took no longer: a machine that stands still for a moment holds up one INSERT of each writer. */
function percentile(took: readonly number[]): number {
  return took.toSorted((a, b) => a - b)[Math.floor(took.length * 0.98)];
}
