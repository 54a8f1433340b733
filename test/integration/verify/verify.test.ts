import type { RowDataPacket } from 'mysql2/promise';
import { expect, test } from 'vitest';
import { insertRows } from '../../stack/outbox-rows.ts';
import { topicOffsets } from '../../stack/patient-admin.ts';
import { readRecords } from '../../stack/read-records.ts';
import { RelayBed, type RelayBedOptions } from '../../stack/relay-bed.ts';
import { until } from '../../stack/until.ts';
import { countsOf, runWith, verifyJson } from './verify-bed.ts';

/** A relay that has delivered some rows, and has been stopped. */
async function delivered(count: number, options: RelayBedOptions = {}): Promise<RelayBed> {
  const bed = await RelayBed.open(options);
  const relay = await bed.start();
  await insertRows(bed.servers.pool, { topic: bed.topics[0], count });
  await bed.retired();
  await relay.kill('SIGTERM');
  return bed;
}

async function rowsOf(bed: RelayBed): Promise<RowDataPacket[]> {
  return bed.sql(
    'SELECT id, LOWER(HEX(idempotency_key)) AS idempotency, aggregate_id, payload FROM outbox ORDER BY id',
  );
}

/** Sends a record of a row once more, as a plain producer. */
async function sendAgain(bed: RelayBed, n: number, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  const rows = await rowsOf(bed);
  const id = String(rows[n]['idempotency']).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  const found = (await readRecords(bed.servers.kafka, bed.topics)).find((each) => String(each.headers['id']) === id)!;
  const producer = bed.servers.kafka.producer();
  await producer.connect();
  const { topic, partition, key, value } = found;
  await producer.send({ topic, messages: [{ partition, key, value, headers: { ...found.headers, ...headers } }] });
  await producer.disconnect();
}

test('what was delivered is all there, whichever way the relay compresses', async () => {
  for (const compression of ['gzip', 'zstd']) {
    await using bed = await delivered(400, { config: { kafka: { compression } } });
    await bed.sql("UPDATE outbox SET status = 'failed' WHERE id = 7");
    const { code, report, stderr } = await verifyJson(bed);
    expect(countsOf(report)).toEqual({ version: 1, rows: 399, found: 399, records: 400, otherRecords: 1 });
    expect(code, stderr).toBe(0);
    const text = await runWith(bed.config(), ['verify', '--since', '1h']);
    expect(text.stdout).toMatch(
      /^verify: 399 rows published between \S+Z and \S+Z: all in Kafka, 0 missing, 0 altered, 0 reordered, 0 duplicates\n$/,
    );
    expect(text.stdout).toMatch(/^[\x20-\x7e\n]*$/);
  }
});

test('every kind of finding is found, told by row and place, and without its payload', async () => {
  await using bed = await delivered(60);
  const [topic] = bed.topics;
  const rows = await rowsOf(bed);
  // Missing: it says that it is published, and never was.
  await bed.sql(
    `INSERT INTO outbox (topic, aggregate_id, payload, status, published_at)
     VALUES (?, 'never', '{"secret": 1}', 'published', UTC_TIMESTAMP(6))`,
    [topic],
  );
  // Altered: value, headers, key.
  await bed.sql(`UPDATE outbox SET payload = '{"n": -1}' WHERE id = ?`, [rows[3]['id']]);
  await bed.sql(`UPDATE outbox SET headers = '{"x": "y"}' WHERE id = ?`, [rows[4]['id']]);
  await bed.sql(`UPDATE outbox SET aggregate_id = 'other' WHERE id = ?`, [rows[5]['id']]);
  // Reordered: two rows of aggregate-6 change places.
  for (const [to, from] of [
    [6, 16],
    [16, 6],
  ]) {
    await bed.sql('UPDATE outbox SET payload = ?, idempotency_key = UNHEX(?) WHERE id = ?', [
      rows[from]['payload'],
      `${to}`.padStart(32, 'f'),
      rows[to]['id'],
    ]);
  }
  await bed.sql('UPDATE outbox SET idempotency_key = UNHEX(?) WHERE id = ?', [rows[16]['idempotency'], rows[6]['id']]);
  await bed.sql('UPDATE outbox SET idempotency_key = UNHEX(?) WHERE id = ?', [rows[6]['idempotency'], rows[16]['id']]);
  await sendAgain(bed, 8);
  await sendAgain(bed, 8);
  await sendAgain(bed, 9, { 'cdc-relay-replay': '12' });

  const { code, report, stdout } = await verifyJson(bed);
  expect(code).toBe(1);
  expect(report.ok).toBe(false);
  const { findings } = report;
  expect(countsOf(report)).toMatchObject({
    ...{ rows: 61, found: 60, missing: 1, altered: 3, reordered: 1, duplicates: 2, replayed: 1 },
  });
  const of = (kind: string) => findings.filter((finding) => finding.kind === kind);
  expect(of('missing').map(({ key, places }) => [key, places])).toEqual([['never', []]]);
  expect(of('altered').map(({ id, parts }) => [id, parts])).toEqual(
    expect.arrayContaining([
      [String(rows[3]['id']), ['value']],
      [String(rows[4]['id']), ['headers']],
      [String(rows[5]['id']), ['key']],
    ]),
  );
  expect(of('reordered').map(({ id, key }) => [id, key])).toEqual([[String(rows[16]['id']), 'aggregate-6']]);
  const [duplicate] = of('duplicate');
  expect(duplicate).toMatchObject({ id: String(rows[8]['id']), key: 'aggregate-8', topic });
  expect(duplicate.places).toHaveLength(3);
  expect(stdout).not.toContain('secret');

  const text = await runWith(bed.config(), ['verify']);
  expect(text.code).toBe(1);
  expect(text.stdout.split('\n')[0]).toMatch(
    /^verify: 61 rows published up to \S+Z: 1 NOT in Kafka, 1 missing, 3 altered, 1 reordered, 2 duplicates$/,
  );
  // Only what is asked for.
  const some = await verifyJson(bed, ['--from-id', String(rows[7]['id']), '--to-id', String(rows[9]['id'])]);
  expect(some.code).toBe(0);
  expect(countsOf(some.report)).toMatchObject({ rows: 3, found: 3, duplicates: 2, replayed: 1 });
  const none = await verifyJson(bed, ['--topic', 'another']);
  expect([none.code, none.report.rows]).toEqual([0, 0]);
});

test('rows that were delayed or retried are told apart from those out of order', async () => {
  await using bed = await RelayBed.open();
  const [topic] = bed.topics;
  const insert = (columns: string, values: string) =>
    bed.sql(`INSERT INTO outbox (topic, aggregate_id, payload${columns}) VALUES (?, 'a', '1'${values})`, [topic]);
  const relay = await bed.start();
  await insert(', available_at', ', UTC_TIMESTAMP(6) + INTERVAL 2 SECOND');
  await insert('', '');
  await bed.retired();
  await relay.kill('SIGTERM');
  const { code, report } = await verifyJson(bed);
  expect(countsOf(report)).toMatchObject({ rows: 2, found: 2, outOfTurn: 1 });
  expect([code, report.reordered]).toEqual([0, 0]);
});

test('rows older than what the topic still holds are counted apart, and what is younger is still judged', async () => {
  await using bed = await RelayBed.open({ topics: { orders: 1 } });
  const [topic] = bed.topics;
  const relay = await bed.start();
  await bed.sql(
    `INSERT INTO outbox (topic, aggregate_id, payload, created_at) VALUES ${Array.from({ length: 20 }, () => "(?, 'a', '1', UTC_TIMESTAMP(6) - INTERVAL 2 HOUR)").join(', ')}`,
    Array<string>(20).fill(topic),
  );
  await bed.retired();
  await insertRows(bed.servers.pool, { topic, count: 20 });
  await bed.retired();
  await relay.kill('SIGTERM');
  const admin = bed.servers.kafka.admin();
  await admin.connect();
  // The library knows leaders only of topics that it was asked about.
  await topicOffsets(admin, topic);
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '20' }] });
  await admin.disconnect();
  const expired = await verifyJson(bed);
  expect(countsOf(expired.report)).toEqual({ version: 1, rows: 40, found: 20, expired: 20, records: 20 });
  expect(expired.code).toBe(0);
  await bed.sql(
    "INSERT INTO outbox (topic, aggregate_id, status, created_at, published_at) VALUES (?, 'x', 'published', UTC_TIMESTAMP(6) + INTERVAL 5 MINUTE, UTC_TIMESTAMP(6))",
    [topic],
  );
  expect((await verifyJson(bed)).report).toMatchObject({ ok: false, expired: 20, missing: 1 });
  // Their key belongs to a partition now that there was not then, and that has never held anything.
  await admin.connect();
  await admin.createPartitions({ topicPartitions: [{ topic, count: 16 }] });
  await admin.disconnect();
  expect((await verifyJson(bed)).report).toMatchObject({ ok: false, expired: 20, missing: 1 });
});

test('on a live system: rows come in and go out while it looks', async () => {
  await using bed = await RelayBed.open();
  await bed.start();
  let isOver = false;
  const writing = (async () => {
    for (let n = 0; !isOver; n++) {
      await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 20, prefix: `writer-${n % 7}` });
    }
  })();
  try {
    for (let i = 0; i < 3; i++) {
      const { report, code } = await verifyJson(bed);
      expect(report.findings).toEqual([]);
      expect(code).toBe(0);
    }
  } finally {
    isOver = true;
    await writing;
  }
  await bed.retired();
  const { report } = await verifyJson(bed);
  expect(report.ok).toBe(true);
  expect(report.found).toBe(await bed.count('outbox'));
});

test('retire: keep is verified up to the checkpoint; retire: delete cannot be, and says so', async () => {
  await using bed = await RelayBed.open({ outboxes: [{ table: 'kept', retire: 'keep' }] });
  const [topic] = bed.topics;
  const insert = (agoMinutes: number, aggregate: string) =>
    bed.sql(
      `INSERT INTO kept (topic, aggregate_id, payload, created_at) VALUES (?, ?, '1', UTC_TIMESTAMP(6) - INTERVAL ? MINUTE)`,
      [topic, aggregate, agoMinutes],
    );
  await insert(60, 'before');
  const relay = await bed.start();
  for (let i = 0; i < 5; i++) await insert(5, 'a');
  await until(async () => (await bed.records()) === 5, { withinMs: 20_000, what: 'five records' });
  await relay.kill('SIGTERM');
  await insert(0, 'not yet');
  const { code, report } = await verifyJson(bed);
  expect(code).toBe(1);
  expect(countsOf(report)).toMatchObject({ rows: 7, found: 5, missing: 1, undelivered: 1 });
  expect(report.findings.map(({ key }) => key)).toEqual(['before']);
  const config = bed.config();
  const deleted = await runWith({ ...config, outboxes: [{ table: 'kept', retire: 'delete' }] }, ['verify']);
  expect(deleted).toMatchObject({ code: 2, stdout: '' });
  expect(deleted.stderr).toContain('rows are deleted when they are sent');
});
