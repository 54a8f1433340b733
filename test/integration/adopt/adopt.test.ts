import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { adoptSchema } from '../../../src/commands/adopt-report.ts';
import { verifySchema } from '../../../src/commands/verify-report.ts';
import { startCli } from '../../stack/relay-process.ts';
import { until } from '../../stack/until.ts';
import { AdoptBed } from './adopt-bed.ts';

test('S6 a table of Debezium is adopted under load: nothing of its history is sent, nothing new is lost', async () => {
  await using bed = await AdoptBed.open();
  for (let i = 0; i < 30; i++) await bed.insert(`aggregate-${i % 3}`);
  const dry = await bed.cli(['adopt', 'outboxevent', '--dry-run']);
  expect(dry.code, dry.stderr).toBe(0);
  expect(dry.stdout).toContain('for the configuration, under outboxes:');
  expect(dry.stdout).toContain('aggregateId: aggregateid');
  expect(await bed.sql("SHOW COLUMNS FROM outboxevent LIKE 'status'")).toEqual([]);

  const history = new Set((await bed.sql('SELECT id FROM outboxevent')).map((row) => String(row['id'])));
  const committed: string[] = [];
  let isOver = false;
  let slowestMs = 0;
  const writers = Array.from({ length: 3 }, async (_, writer) => {
    while (!isOver) {
      const startedMs = performance.now();
      committed.push(await bed.insert(`writer-${writer}`));
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
      await sleep(2);
    }
  });
  const report = await bed.adopt();
  const adoptedAt = committed.length;
  await until(() => committed.length >= adoptedAt + 30, { withinMs: 20_000, what: 'rows behind the cut' });
  isOver = true;
  await Promise.all(writers);
  expect(slowestMs).toBeLessThan(10_000);
  expect(report.statements).toHaveLength(3);
  expect(report.config).toMatchObject({ columns: { aggregateId: 'aggregateid', idempotencyKey: 'id' } });
  expect(report.start).toMatch(/^\S+:\d+$/);

  const sent = await bed.deliver(report.config);
  expect(new Set(sent).size).toBe(sent.length);
  expect(sent.filter((id) => history.has(id))).toEqual([]);
  // What was committed after the command had ended is news whatever the cut.
  expect(committed.slice(adoptedAt).filter((id) => !sent.includes(id))).toEqual([]);
  // Exactly what was never published is history.
  const never = await bed.sql('SELECT id FROM outboxevent WHERE published_at IS NULL');
  expect(new Set([...sent, ...never.map((row) => String(row['id']))])).toEqual(new Set([...history, ...committed]));
  expect(never.length + sent.length).toBe(history.size + committed.length);
  const verified = await bed.cli(['verify', '--json'], report.config);
  expect(verifySchema.parse(JSON.parse(verified.stdout))).toMatchObject({ ok: true, rows: sent.length });

  // Again: there is nothing to do.
  const again = await bed.adopt([], report.config);
  expect(again).toMatchObject({ statements: [], configured: true, start: null });
});

test('S25 an open transaction holds the cut up; what it commits is history, and writers go on', async () => {
  await using bed = await AdoptBed.open();
  const open = await bed.servers.pool.getConnection();
  await open.beginTransaction();
  await open.query("INSERT INTO outboxevent VALUES ('in-flight', 'order', 'a', 't', '1')");
  await using adopting = await startCli(['adopt', bed.table, '--yes', '--json'], { config: bed.config() });
  // The first try has given up.
  await adopting.waitFor('adoption-waits');
  await bed.insert('meanwhile');
  await open.commit();
  open.release();
  expect((await adopting.exited).code, adopting.stderr()).toBe(0);
  const report = adoptSchema.parse(JSON.parse(adopting.stdout()));
  const news = await bed.insert();
  expect(await bed.deliver(report.config)).toEqual([news]);
  expect(await bed.sql("SELECT status FROM outboxevent WHERE id = 'in-flight'")).toEqual([{ status: 'published' }]);
});

test('--from-debezium-offset: what Debezium had not sent is delivered first, in the order of its commits', async () => {
  await using bed = await AdoptBed.open();
  for (let i = 0; i < 5; i++) await bed.insert();
  const executed = async () => String((await bed.sql('SELECT @@global.gtid_executed AS gtids'))[0]['gtids']);
  // Other tests write into the same log.
  const { gtids, file, offset } = await until(
    async () => {
      const before = await executed();
      const head = await bed.head();
      return (await executed()) === before && { gtids: before, ...head };
    },
    { withinMs: 20_000, what: 'a moment in which nobody writes' },
  );
  const unsent: string[] = [];
  for (let i = 0; i < 20; i++) unsent.push(await bed.insert());
  const foreign = bed.offsetFile({ file, pos: offset, gtids: await executed() });
  const refused = await bed.cli(['adopt', 'outboxevent', '--yes', '--from-debezium-offset', foreign]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("the file is another server's");
  const path = bed.offsetFile({ file, pos: offset, gtids, row: 1, event: 2, ts_sec: 1 });
  const dry = await bed.cli(['adopt', 'outboxevent', '--dry-run', '--from-debezium-offset', path]);
  expect(dry.stdout).toContain('20 rows that inventory has not sent become pending');
  expect(dry.stdout).toContain('the part that it had sent is sent again');
  const report = await bed.adopt(['--from-debezium-offset', path]);
  expect(report.unsent).toEqual({ rows: 20, gone: 0 });
  const news = [await bed.insert(), await bed.insert()];
  expect(await bed.deliver(report.config)).toEqual([...unsent, ...news]);
});

test('--from-debezium-topic: the last offset of the connector counts; rows that are gone are said before anything is done', async () => {
  await using bed = await AdoptBed.open();
  await bed.servers.createTopics({ offsets: 2 });
  const { file, offset } = await bed.head();
  const gone = await bed.insert();
  const topic = bed.servers.topic('offsets');
  const producer = bed.servers.kafka.producer();
  await producer.connect();
  const key = JSON.stringify(['inventory', { server: 'shop' }]);
  const send = (value: object) => producer.send({ topic, messages: [{ key, value: JSON.stringify(value) }] });
  await send({ file: 'binlog.000000', pos: 4 });
  await send({ file, pos: offset });
  await producer.disconnect();
  // A source that sends exactly once writes its offsets in transactions; what it had sent with this one counts for nothing.
  const exact = bed.servers.kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true });
  await exact.connect();
  const transaction = await exact.transaction();
  const { offset: pos } = await bed.head();
  await transaction.send({ topic, messages: [{ key, value: JSON.stringify({ file, pos }) }] });
  await transaction.abort();
  await exact.disconnect();
  await bed.sql('DELETE FROM outboxevent WHERE id = ?', [gone]);
  const args = ['adopt', 'outboxevent', '--yes', '--from-debezium-topic', topic];
  const refused = await bed.cli(args);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('1 rows that Debezium has not sent are not in');
  expect(await bed.sql("SHOW COLUMNS FROM outboxevent LIKE 'status'")).toEqual([]);
  expect((await bed.cli([...args, '--connector', 'another'])).stderr).toContain('no offset of another');
});

test('what cannot be adopted is said at once, and nothing is done', async () => {
  await using bed = await AdoptBed.open(
    'events',
    'CREATE TABLE events (a INT, b INT, status INT, body TEXT, PRIMARY KEY (a, b))',
  );
  const entry = { table: 'events' };
  const { code, stderr } = await bed.cli(['adopt', 'events', '--yes'], entry);
  expect(code).toBe(2);
  for (const text of [
    'its primary key is a, b',
    'no column for columns.aggregateId',
    'no column for the topic',
    'its column status (int) is not for our states',
  ]) {
    expect(stderr).toContain(text);
  }
  expect(await bed.sql("SHOW COLUMNS FROM events LIKE 'attempts'")).toEqual([]);
  expect((await bed.cli(['adopt', 'nothing', '--yes'], entry)).stderr).toContain('there is no table');
});
