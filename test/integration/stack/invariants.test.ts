import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type ExpectedRow, expectedRows } from '../../stack/expected-rows.ts';
import { expectDelivered } from '../../stack/invariants.ts';
import { readRecords } from '../../stack/read-records.ts';
import { type TestBed, testBed } from '../../stack/test-bed.ts';

const ROWS = 2000;

let bed: TestBed;
let topic: string;

beforeAll(async () => {
  bed = await testBed();
});

afterAll(() => bed[Symbol.asyncDispose]());

beforeEach(async ({ task }) => {
  topic = bed.topic(task.id);
  await bed.createTopics({ [task.id]: 3 });
  await bed.pool.query(
    `DROP TABLE IF EXISTS outbox;
     CREATE TABLE outbox (
       id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, topic VARCHAR(249) NOT NULL, aggregate_id VARCHAR(128) NOT NULL,
       event_type VARCHAR(128) NULL, payload JSON NULL, headers JSON NULL,
       idempotency_key BINARY(16) NOT NULL DEFAULT (UUID_TO_BIN(UUID())),
       created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)));
     INSERT INTO outbox (topic, aggregate_id, event_type, payload, headers)
       WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 999)
       SELECT ?, CONCAT('kunde-ä-', n % 50), IF(n % 2 = 0, 'placed', NULL),
         IF(n % 7 = 0, NULL, JSON_OBJECT('n', n, 'text', 'ünïcode', 'decimal', CAST(1.50 AS DECIMAL(5, 2)))),
         IF(n % 3 = 0, NULL, JSON_OBJECT('plain', 'a "quoted" b', 'number', n, 'nested', JSON_OBJECT('a', JSON_ARRAY(1, '},'))))
       FROM numbers;
     INSERT INTO outbox (topic, aggregate_id, event_type, payload, headers)
       SELECT topic, aggregate_id, event_type, payload, headers FROM outbox`,
    [topic],
  );
});

/** Publishes rows with a producer of kafkajs, as the relay should. */
async function publish(rows: readonly ExpectedRow[]): Promise<void> {
  const producer = bed.kafka.producer();
  await producer.connect();
  const messages = rows.map(({ key, value, timestampMs, headers }) => ({
    ...{ key, value, timestamp: String(timestampMs) },
    headers: Object.fromEntries(headers as [string, Buffer][]),
  }));
  await producer.send({ topic, messages });
  await producer.disconnect();
}

test('a row is worth what MySQL shows of it', async () => {
  const rows = await expectedRows(bed.pool, { table: 'outbox', where: 'id = 2' });
  const [shown] = (await bed.pool.query(
    'SELECT BIN_TO_UUID(idempotency_key) AS uuid, CAST(payload AS CHAR) AS text FROM outbox WHERE id = 2',
  )) as unknown as [{ uuid: string; text: string }[]];
  expect(rows).toHaveLength(1);
  expect(rows[0]).toMatchObject({ id: '2', topic, eventId: shown[0].uuid });
  expect([String(rows[0].key), String(rows[0].value)]).toEqual(['kunde-ä-1', shown[0].text]);
  expect(shown[0].text).toContain('1.50');
  expect(rows[0].headers.map(([name, value]) => [name, String(value)])).toEqual([
    ['id', shown[0].uuid],
    ['plain', 'a "quoted" b'],
    ['nested', '{"a": [1, "},"]}'],
    ['number', '1'],
  ]);
});

test('what is out as it should be passes, once, and is missed when it is not there', async () => {
  const rows = await expectedRows(bed.pool, { table: 'outbox' });
  await publish(rows);
  const whole = { topics: [topic], rows: { table: 'outbox' } };
  const good = { committed: ROWS, delivered: ROWS, lost: 0, reordered: 0, altered: 0, duplicates: 0 };
  expect(await expectDelivered(bed, whole)).toEqual(good);
  await bed.pool.query('INSERT INTO outbox (topic, aggregate_id) VALUES (?, ?)', [topic, 'one more']);
  await expect(expectDelivered(bed, whole)).rejects.toThrow(/"lost":1.*\n {2}lost: row \d+ .*one more\) is not out/);
  await publish(rows.slice(0, 2));
  await expect(expectDelivered(bed, { ...whole, rows })).rejects.toThrow('"duplicates":2');
  expect(await expectDelivered(bed, { ...whole, rows, faultInjected: true })).toEqual({ ...good, duplicates: 2 });
});

test('reading ends at the ends of the call, and with nothing there', async () => {
  expect(await readRecords(bed.kafka, [topic])).toEqual([]);
  const rows = await expectedRows(bed.pool, { table: 'outbox', where: 'id <= 10' });
  await publish(rows);
  const records = await readRecords(bed.kafka, [topic]);
  expect(records).toHaveLength(10);
  expect(new Set(records.map(({ headers }) => String(headers['id'])))).toEqual(
    new Set(rows.map(({ eventId }) => eventId)),
  );
});
