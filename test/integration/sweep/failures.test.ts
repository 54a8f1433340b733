import { expect, test } from 'vitest';
import { failedListSchema } from '../../../src/http/failed-view.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { readRecords } from '../../stack/read-records.ts';
import type { RelayBed } from '../../stack/relay-bed.ts';
import { until } from '../../stack/until.ts';
import {
  command,
  insertText,
  inSession,
  LENIENT,
  REFUSED,
  type Row,
  setTopic,
  startTailing,
  sweepBed,
} from './sweep-bed.ts';

const PUBLISHED = { where: "status = 'published'" };

function failedRows(bed: RelayBed): ReturnType<RelayBed['sql']> {
  return bed.sql("SELECT id, aggregate_id, attempts, last_error FROM outbox WHERE status = 'failed' ORDER BY id");
}

async function attempts(bed: RelayBed): Promise<number> {
  const [row] = await bed.sql('SELECT MAX(attempts) AS most FROM outbox');
  return Number(row['most']);
}

test.for(['tail', 'sweep'])(
  'D6 an outbox that checks its JSON fails what is none, by the %s; all others flow',
  async (mode) => {
    await using bed = await sweepBed({
      outboxes: [{ table: 'outbox', retire: 'mark', validateJson: true }],
      config: { sweep: { mode } },
    });
    const topic = bed.servers.topic('orders');
    await bed.sql('ALTER TABLE outbox MODIFY payload LONGTEXT');
    const relay = await bed.launch();
    await relay.waitFor('relay-state', { fields: { to: 'flowing' } });
    const payloads = ['{"good": 1}', '{bad', '{"good": 2}', '"text"', '', '{"a": 1} x', 'null', '[1, 2,]'];
    const rows = payloads.flatMap((payload, n): Row[] => [
      { topic, key: `a-${n}`, payload },
      { topic, key: `a-${n}`, payload: '{"behind": true}' },
    ]);
    await bed.sql(insertText(rows));
    await bed.retired();
    const failed = await failedRows(bed);
    expect(failed.map(({ aggregate_id: key }) => String(key))).toEqual(['a-1', 'a-4', 'a-5', 'a-7']);
    for (const row of failed) expect(String(row['last_error'])).toMatch(/^ROW_/);
    expect(await bed.expectDelivered(PUBLISHED)).toMatchObject({ committed: 12, delivered: 12, duplicates: 0 });
    expect(relay.stderr()).not.toContain('{bad');
  },
);

test('F2 a row whose topic no broker can have: it is tried as often as is said, then failed; its siblings flow', async () => {
  await using bed = await sweepBed({
    topics: { orders: 1 },
    config: { failures: { maxAttempts: 3, backOffMs: 1, backOffCapMs: 50 } },
  });
  const topic = bed.servers.topic('orders');
  const relay = await bed.launch();
  await relay.waitFor('relay-state', { fields: { to: 'flowing' } });
  await bed.sql(insertText([topic, 'no topic!', topic].map((name): Row => ({ topic: name, key: 'a', payload: '{}' }))));
  await bed.retired();
  const [failed, ...others] = await failedRows(bed);
  expect(others).toEqual([]);
  expect(failed).toMatchObject({ attempts: 3 });
  expect(String(failed['last_error'])).toMatch(/^KAFKA_INVALID_TOPIC_EXCEPTION: /);
  expect(await bed.expectDelivered(PUBLISHED)).toMatchObject({ committed: 2, delivered: 2, duplicates: 0 });
});

test.for(['tail', 'sweep'])(
  'F1 one record of 2 MB among 49 small ones, by the %s: it alone fails, and is listed',
  async (mode) => {
    await using bed = await sweepBed({ topics: { orders: 1 }, config: { sweep: { mode } } });
    const topic = bed.servers.topic('orders');
    const relay = await bed.launch();
    await relay.waitFor('relay-state', { fields: { to: 'flowing' } });
    const rows = Array.from({ length: 50 }, (_, n): Row => {
      const payload = JSON.stringify({ n, filler: n === 19 ? 'x'.repeat(2_000_000) : '' });
      return { topic, key: `a-${n % 3}`, payload };
    });
    await bed.sql(insertText(rows));
    await bed.retired();
    expect(await bed.expectDelivered(PUBLISHED)).toMatchObject({ committed: 49, delivered: 49, duplicates: 0 });
    const failed = await failedRows(bed);
    expect(failed).toHaveLength(1);
    expect(failed[0]).toMatchObject({ aggregate_id: 'a-1', attempts: 1 });
    expect(String(failed[0]['last_error'])).toMatch(/^KAFKA_MESSAGE_TOO_LARGE: .*20\d\d\d\d\d/);
    const { exit, stdout } = await command(bed, 'failed', 'list', '--json');
    expect(exit.code).toBe(0);
    const listed = failedListSchema.parse(JSON.parse(stdout));
    expect(listed.rows.map(({ id }) => id)).toEqual([String(failed[0]['id'])]);
  },
);

test('F1 a limit that was lowered behind the relay’s back: too large together is sent in parts, too large alone fails', async () => {
  await using bed = await sweepBed({ topics: { orders: 1 } });
  const topic = bed.servers.topic('orders');
  await startTailing(bed);
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.retired();
  await setTopic(bed, 'orders', { 'max.message.bytes': '60000' });
  await insertRows(bed.servers.pool, { topic, count: 60, payloadBytes: 5_000 });
  await bed.retired();
  expect(await failedRows(bed)).toEqual([]);
  await bed.sql(
    insertText(
      Array.from({ length: 40 }, (_, n) => {
        const bytes = n === 11 || n === 12 ? 70_000 : 4_000;
        return { topic, key: `aggregate-${n % 4}`, payload: JSON.stringify({ n, filler: 'y'.repeat(bytes) }) };
      }),
    ),
  );
  await bed.retired();
  expect((await failedRows(bed)).map(({ aggregate_id: key }) => String(key))).toEqual(['aggregate-3', 'aggregate-0']);
  expect(await bed.expectDelivered(PUBLISHED)).toMatchObject({ committed: 108, delivered: 108, duplicates: 0 });
});

/** The dead-letter topic is not there: what cannot be delivered cannot fail either, and is tried again and again. */
const NO_DEAD_LETTERS = { failures: { deadLetterTopic: 'there-is-no-such-topic' } };

test.for(['tail', 'sweep'])(
  'G2 S8 S9 a row that is tried again keeps the later ones of its aggregate behind it, by the %s; nobody else waits',
  async (mode) => {
    await using bed = await sweepBed({ topics: { orders: 1 }, config: { ...NO_DEAD_LETTERS, sweep: { mode } } });
    const topic = bed.servers.topic('orders');
    const first = await bed.launch();
    await first.waitFor('relay-state', { fields: { to: 'flowing' } });
    // One transaction, one batch: siblings are behind the row that is refused in its own lane.
    const others = ['b', 'c', 'd'].map((key) => ({ topic, key, also: { created_at: 'UTC_TIMESTAMP(6)' } }));
    const now = { created_at: 'UTC_TIMESTAMP(6)' };
    await bed.sql(
      insertText([...others, { topic, key: 'a', also: REFUSED }, ...others, { topic, key: 'a', also: now }, ...others]),
    );
    await bed.sql(insertText([{ topic, key: 'a', also: now }, ...others]));
    await bed.retired('outbox', { where: "aggregate_id <> 'a'" });
    await until(async () => (await attempts(bed)) >= 3, { withinMs: 20_000, what: 'three attempts' });
    await bed.sql(insertText([{ topic, key: 'a' }]));
    // A restart knows of it.
    expect((await first.kill('SIGTERM')).code).toBe(0);
    const second = await bed.launch();
    await bed.sql(insertText([{ topic, key: 'a' }]));
    const before = await attempts(bed);
    await until(async () => (await attempts(bed)) >= before + 2, { withinMs: 20_000, what: 'two more attempts' });
    expect(
      await bed.sql(
        "SELECT status, attempts FROM outbox WHERE aggregate_id = 'a' AND status <> 'pending' AND status <> 'processing'",
      ),
    ).toEqual([]);
    const waiting = await bed.sql("SELECT attempts, last_error FROM outbox WHERE aggregate_id = 'a' ORDER BY id");
    expect(String(waiting[0]['last_error'])).toMatch(/^KAFKA_INVALID_TIMESTAMP: /);
    expect(waiting).toHaveLength(5);
    for (const sibling of waiting.slice(1)) expect(sibling).toEqual({ attempts: 0, last_error: null });
    expect(await bed.records()).toBe(12);

    await setTopic(bed, 'orders', LENIENT);
    await bed.retired();
    expect(await bed.expectDelivered()).toMatchObject({ committed: 17, delivered: 17, duplicates: 0 });
    expect((await second.kill('SIGTERM')).code).toBe(0);
  },
);

test('G2 A in statement format, found by the sweep and refused; B by the tail waits behind it', async () => {
  await using bed = await sweepBed({ topics: { orders: 1 }, config: NO_DEAD_LETTERS });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  await inSession(bed, async (session) => {
    await session.query("SET SESSION binlog_format = 'STATEMENT'");
    await session.query(insertText([{ topic, key: 'a', also: REFUSED }]));
  });
  await bed.sql(
    insertText([
      { topic, key: 'a' },
      { topic, key: 'b' },
    ]),
  );
  await until(async () => (await attempts(bed)) >= 2, { withinMs: 20_000, what: 'two attempts' });
  await bed.sql(
    insertText([
      { topic, key: 'a' },
      { topic, key: 'b' },
    ]),
  );
  await bed.retired('outbox', { where: "aggregate_id = 'b'" });
  expect(await bed.count('outbox', "aggregate_id = 'a' AND status = 'published'")).toBe(0);
  await setTopic(bed, 'orders', LENIENT);
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 5, delivered: 5, duplicates: 0 });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('S10 a hot key: its pair is handed back to the tail while rows of it keep coming', async () => {
  await using bed = await sweepBed({ topics: { orders: 1 }, config: NO_DEAD_LETTERS });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  await bed.sql(insertText([{ topic, key: 'hot', also: REFUSED }]));
  await until(async () => (await attempts(bed)) >= 2, { withinMs: 20_000, what: 'two attempts' });
  let isOver = false;
  let rows = 0;
  const writing = (async () => {
    for (; !isOver; rows++) await bed.sql(insertText([{ topic, key: 'hot' }]));
  })();
  try {
    await until(() => rows > 10, { withinMs: 20_000, what: 'rows behind it' });
    await setTopic(bed, 'orders', LENIENT);
    await relay.waitFor('scope-released', { fields: { scope: 'pair' } });
  } finally {
    isOver = true;
  }
  await writing;
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: rows + 1, delivered: rows + 1, duplicates: 0 });
});

test('S10 block: a failed row keeps its pair until somebody retries or discards it', async () => {
  await using bed = await sweepBed({ topics: { orders: 1 }, config: { failures: { onExhausted: 'block' } } });
  const topic = bed.servers.topic('orders');
  const first = await startTailing(bed);
  const now = { created_at: 'UTC_TIMESTAMP(6)' };
  const live = ['a', 'b', 'c'].map((key) => ({ topic, key, also: now }));
  await bed.sql(insertText([...live, { topic, key: 'a', also: REFUSED }, { topic, key: 'b', also: REFUSED }, ...live]));
  await until(async () => (await failedRows(bed)).length === 2, { withinMs: 20_000, what: 'two failed rows' });
  const [a, b] = (await failedRows(bed)).map(({ id }) => String(id));
  await bed.retired('outbox', { where: "aggregate_id = 'c'" });
  // Nothing of it is pending but these, and comes by the tail, before and after a restart.
  await bed.sql(insertText(live));
  await bed.retired('outbox', { where: "aggregate_id = 'c'" });
  expect((await first.kill('SIGTERM')).code).toBe(0);
  const relay = await bed.start();
  await bed.sql(insertText(live));
  await bed.retired('outbox', { where: "aggregate_id = 'c'" });
  expect(await bed.count('outbox', "aggregate_id IN ('a', 'b') AND status = 'pending'")).toBe(6);
  expect(await bed.records()).toBe(6);

  expect((await command(bed, 'failed', 'discard', b, '--yes')).exit.code).toBe(0);
  await bed.retired('outbox', { where: "aggregate_id = 'b'" });
  expect(await bed.count('outbox', "aggregate_id = 'a' AND status = 'pending'")).toBe(3);

  await setTopic(bed, 'orders', LENIENT);
  expect((await command(bed, 'failed', 'retry', a, '--yes')).exit.code).toBe(0);
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: 13, delivered: 13, duplicates: 0 });
  const after = relay.lines().length;
  await bed.sql(insertText(live));
  await bed.retired();
  expect(
    relay
      .lines()
      .slice(after)
      .some(({ event }) => event === 'scope-parked'),
  ).toBe(false);
  expect(await bed.expectDelivered()).toMatchObject({ committed: 16, duplicates: 0 });
});

test('a failed row: its record in the dead-letter topic, later rows go on; retried after the cause is mended it is delivered', async () => {
  await using bed = await sweepBed({ topics: { orders: 1, dead: 1 } });
  const { kafka, topic } = bed.servers;
  await startTailing(bed, { failures: { deadLetterTopic: topic('dead') } });
  const row = (n: number, created_at: string): Row => {
    return { topic: topic('orders'), key: 'a', payload: JSON.stringify({ n }), also: { created_at } };
  };
  const now = 'UTC_TIMESTAMP(6)';
  await bed.sql(insertText([row(1, now), row(2, REFUSED.created_at), row(3, now)]));
  await bed.retired();
  const [failed] = await failedRows(bed);
  const orders = { topics: [topic('orders')] };
  expect(await bed.expectDelivered({ ...PUBLISHED, ...orders })).toMatchObject({ committed: 2, duplicates: 0 });
  const letters = await readRecords(kafka, [topic('dead')]);
  expect(letters).toHaveLength(1);
  const [letter] = letters;
  expect({ key: String(letter.key), value: String(letter.value) }).toEqual({ key: 'a', value: '{"n": 2}' });
  const told = ['dlq-code', 'dlq-row-id', 'dlq-attempts', 'dlq-topic'].map((name) => String(letter.headers[name]));
  expect(told).toEqual(['KAFKA_INVALID_TIMESTAMP', String(failed['id']), '1', topic('orders')]);

  await setTopic(bed, 'orders', LENIENT);
  expect((await command(bed, 'failed', 'retry', '--all', '--yes')).exit.code).toBe(0);
  await bed.retired();
  expect(await bed.count('outbox', "status = 'published'")).toBe(3);
  expect(await readRecords(kafka, [topic('dead')])).toHaveLength(1);
  // It comes behind what went on without it: that is what release means.
  const records = await readRecords(kafka, [topic('orders')]);
  expect(records.map(({ value }) => String(value))).toEqual(['{"n": 1}', '{"n": 3}', '{"n": 2}']);
});

test('a dead-letter topic that comes later: the row waits for it, and its letter says since when', async () => {
  await using bed = await sweepBed({ topics: { orders: 1 } });
  const { kafka, topic } = bed.servers;
  const failures = { deadLetterTopic: topic('dead') };
  const relay = await startTailing(bed, { failures });
  await bed.sql(insertText([{ topic: topic('orders'), key: 'a', also: REFUSED }]));
  await until(async () => (await attempts(bed)) >= 2, { withinMs: 20_000, what: 'a second attempt' });
  // What is known of the first failure outlives the leader.
  await relay.kill('SIGKILL');
  const restartedMs = Date.now();
  await bed.servers.createTopics({ dead: 1 });
  await bed.launch({ failures });
  await bed.retired();
  expect(await failedRows(bed)).toHaveLength(1);
  const [letter] = await readRecords(kafka, [topic('dead')]);
  const [first, last] = ['first', 'last'].map((name) => Date.parse(String(letter.headers[`dlq-${name}-failure`])));
  expect(first).toBeLessThan(restartedMs);
  expect(last).toBeGreaterThan(restartedMs);
});
