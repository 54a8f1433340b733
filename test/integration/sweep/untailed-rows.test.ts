import { expect, test } from 'vitest';
import { expectDelivered } from '../../stack/invariants.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { type RelayBed } from '../../stack/relay-bed.ts';
import type { LogLine } from '../../stack/log-tail.ts';
import { until } from '../../stack/until.ts';
import { inSession, insertText, released, said, startTailing, sweepBed } from './sweep-bed.ts';

/** Header ids of the rows in the order of their numbers in the payload. */
async function idsByNumber(bed: RelayBed): Promise<string[]> {
  const rows = await bed.sql(
    'SELECT BIN_TO_UUID(idempotency_key) AS id FROM outbox ORDER BY CAST(payload->"$.n" AS UNSIGNED)',
  );
  return rows.map((row) => String(row['id']));
}

function numbered(topic: string, key: string, n: number): string {
  return insertText([{ topic, key, payload: JSON.stringify({ n }) }]);
}

test('A1 REPLACE of a published row: what it is now goes out once; REPLACE that changes nothing: nothing', async () => {
  await using bed = await sweepBed({ topics: { orders: 1, again: 2 } });
  const { topic } = bed.servers;
  const relay = await startTailing(bed);
  const key = { idempotency_key: "X'000102030405060708090a0b0c0d0e0f'" };
  await bed.sql(insertText([{ topic: topic('orders'), key: 'a', also: key }]));
  await insertRows(bed.servers.pool, { topic: topic('orders'), count: 3 });
  await bed.retired();
  const [before] = await bed.sql('SELECT MIN(id) AS id FROM outbox');

  await bed.sql(insertText([{ topic: topic('again'), key: 'a', payload: '{"v": 2}', also: key }], 'REPLACE'));
  await relay.waitFor('rows-left-pending', { fields: { why: 'replaced', rows: 1 } });
  expect(await bed.count('outbox', `id <= ${String(before['id'])}`)).toBe(0);
  await bed.retired();
  const again = { where: `topic = '${topic('again')}'`, topics: [topic('again')] };
  expect(await bed.expectDelivered(again)).toMatchObject({ committed: 1, duplicates: 0 });

  await bed.sql('REPLACE INTO outbox SELECT * FROM outbox');
  await insertRows(bed.servers.pool, { topic: topic('again'), count: 3, prefix: 'after' });
  await bed.retired();
  expect(await bed.expectDelivered(again)).toMatchObject({ committed: 4, duplicates: 0 });
  expect(await bed.records()).toBe(8);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('A6 S5 S17 XA: what is rolled back never goes out, what is committed goes out once, in order with its siblings', async () => {
  await using bed = await sweepBed({ topics: { orders: 1 } });
  const { database, topic } = bed.servers;
  const row = (n: number): string => numbered(topic('orders'), 'a', n);
  const prepare = (xid: string, n: number): Promise<void> =>
    inSession(bed, async (session) => {
      const name = `'${database}-${xid}'`;
      await session.query(`XA START ${name}; ${row(n)}; XA END ${name}; XA PREPARE ${name}`);
    });
  const end = (verb: string, xid: string): Promise<unknown> => bed.sql(`XA ${verb} '${database}-${xid}'`);
  const published = (n: number): Promise<void> => bed.retired('outbox', { where: `payload->'$.n' = ${n}` });

  const first = await startTailing(bed);
  await bed.sql(row(1));
  await prepare('dropped', 999);
  await prepare('committed', 3);
  await bed.sql(row(2)); // committed before
  await published(2);
  await end('ROLLBACK', 'dropped');
  await end('COMMIT', 'committed');
  await bed.sql(row(4));
  await bed.retired();
  expect(await bed.records()).toBe(4);

  await prepare('restart', 6);
  await bed.sql(row(5));
  await published(5);
  expect((await first.kill('SIGTERM')).code).toBe(0);
  await bed.start();
  await bed.sql(row(5.5));
  await published(5.5);
  await end('COMMIT', 'restart');
  await bed.sql(row(7));

  await prepare('while it is down', 9);
  await bed.sql(row(8));
  await bed.retired();
  expect((await bed.relays.at(-1)!.kill('SIGTERM')).code).toBe(0);
  await end('COMMIT', 'while it is down');
  await bed.sql(row(10));
  await bed.start();
  await bed.retired();

  const rows = { table: 'outbox' };
  const commitOrder = (
    await bed.sql('SELECT BIN_TO_UUID(idempotency_key) AS id FROM outbox ORDER BY CAST(payload->"$.n" AS DECIMAL(6,1))')
  ).map(({ id }) => String(id));
  expect(await expectDelivered(bed.servers, { topics: bed.topics, rows, commitOrder })).toMatchObject({
    committed: 11,
    delivered: 11,
    duplicates: 0,
  });
  expect(await bed.count('outbox', "payload->'$.n' = 999")).toBe(0);
});

test('A7 S5 rows in statement format among others of their aggregates: in order, told with file and position, not with SQL', async () => {
  await using bed = await sweepBed({ topics: { orders: 2 } });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  await inSession(bed, async (statements) => {
    await statements.query("SET SESSION binlog_format = 'STATEMENT'");
    for (let n = 0; n < 120; n++) {
      const key = `a-${n % 3}`;
      const isStatement = n % 20 >= 18;
      const text = insertText(
        [{ topic, key, payload: JSON.stringify({ n, secret: 'hunter2' }) }],
        n === 38 ? 'REPLACE' : 'INSERT',
      );
      if (isStatement) await statements.query(text);
      else await bed.sql(text);
    }
  });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 120, delivered: 120, duplicates: 0 });
  const left = relay.lines().filter(({ event }) => event === 'transaction-left-to-sweep');
  expect(left.length).toBeGreaterThan(0);
  for (const line of left) {
    expect(line).toMatchObject({ level: 'warn' });
    expect(line['position']).toMatch(/^binlog\.\d+:\d+$/);
  }
  expect(relay.stderr()).not.toMatch(/hunter2|INSERT INTO|REPLACE INTO/);
  // And then the tail has it again: nothing is left to the sweep.
  await until(async () => Number((await bed.sql('SELECT COUNT(*) AS n FROM cdc_relay_parked'))[0]['n']) === 0, {
    withinMs: 20_000,
    what: 'nothing parked',
  });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('C1 compressed transactions of a session, between others', async () => {
  await using bed = await sweepBed();
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  const left = (line: LogLine): boolean => line.event === 'transaction-left-to-sweep';
  await inSession(bed, async (session) => {
    await session.query('SET SESSION binlog_transaction_compression = ON');
    for (let n = 0; n < 10; n++) {
      await insertRows(bed.servers.pool, { topic, count: 7 });
      await session.query(insertText(Array.from({ length: 40 }, (_, i) => ({ topic, key: `aggregate-${i % 10}` }))));
    }
  });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 470, delivered: 470, duplicates: 0 });
  expect(relay.lines().some(left)).toBe(false);
});

test('G1 ids in another order than commits: what was open is delivered when it is committed, by tail and by sweep', async () => {
  await using bed = await sweepBed({ topics: { orders: 1 } });
  const topic = bed.servers.topic('orders');
  for (const [mode, n] of [
    ['tail', 0],
    ['sweep', 10],
  ] as const) {
    const relay = await bed.launch({ sweep: { mode } });
    await relay.waitFor('relay-state', { fields: { to: 'flowing' } });
    if (mode === 'tail') await released(relay, 'everything');
    await inSession(bed, async (open) => {
      await open.beginTransaction();
      await open.query(numbered(topic, 'a', n + 2));
      await bed.sql(numbered(topic, 'a', n + 1));
      await bed.retired('outbox', { where: `payload->'$.n' = ${n + 1}` });
      // Longer than many rounds: nobody may conclude that the lower id will not come any more.
      const before = await bed.sql('SELECT NOW(6) AS at');
      await until(
        async () =>
          Number((await bed.sql('SELECT TIMESTAMPDIFF(MICROSECOND, ?, NOW(6)) AS us', [before[0]['at']]))[0]['us']) >
          1_000_000,
        { withinMs: 20_000, what: 'a second', everyMs: 100 },
      );
      await open.commit();
    });
    await bed.sql(numbered(topic, 'a', n + 3));
    await bed.retired();
    expect((await relay.kill('SIGTERM')).code).toBe(0);
  }
  const commitOrder = await idsByNumber(bed);
  const rows = { table: 'outbox' };
  expect(await expectDelivered(bed.servers, { topics: bed.topics, rows, commitOrder })).toMatchObject({
    committed: 6,
    delivered: 6,
    duplicates: 0,
  });
});

test('S34 delayed rows go out when they are due, within a second; later rows of their aggregates do not wait for them', async () => {
  await using bed = await sweepBed({ config: { sweep: { intervalMs: 1_000 } } });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  for (let n = 0; n < 10; n++) {
    const available_at = `UTC_TIMESTAMP(6) + INTERVAL ${2_000 + 150 * n} * 1000 MICROSECOND`;
    await bed.sql(insertText([{ topic, key: `late-${n}`, also: { available_at } }]));
  }
  await bed.sql(
    insertText([{ topic, key: 'much-later', also: { available_at: 'UTC_TIMESTAMP(6) + INTERVAL 1 HOUR' } }]),
  );
  await insertRows(bed.servers.pool, { topic, count: 20 });
  await bed.retired('outbox', { where: "aggregate_id LIKE 'aggregate%'" });
  await bed.retired('outbox', { where: "aggregate_id <> 'much-later'" });
  const rows = await bed.sql(
    `SELECT TIMESTAMPDIFF(MICROSECOND, available_at, published_at) / 1000 AS late_ms
     FROM outbox WHERE aggregate_id LIKE 'late-%' ORDER BY late_ms`,
  );
  const lateMs = rows.map((row) => Number(row['late_ms']));
  expect(lateMs[0]).toBeGreaterThanOrEqual(0);
  // Most of them: a machine that stands still for a moment delays those that are due then.
  expect(lateMs[5]).toBeLessThan(3_000);
  expect(lateMs[9]).toBeLessThan(10_000);
  expect(await bed.count('outbox', "status = 'pending'")).toBe(1);
  expect(await bed.expectDelivered({ where: "aggregate_id <> 'much-later'" })).toMatchObject({
    committed: 30,
    duplicates: 0,
  });
  expect(relay.lines()).toContainEqual(expect.objectContaining({ event: 'rows-left-pending', why: 'delayed' }));
  expect(said(relay, 'scope-parked')).toBe(0);
});
