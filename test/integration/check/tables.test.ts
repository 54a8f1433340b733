import { expect, inject, test } from 'vitest';
import { capacityFindings } from '../../../src/check/capacity.ts';
import { readLongTransactions, readServerFacts } from '../../../src/check/server-facts.ts';
import { Session } from '../../../src/store/session.ts';
import { until } from '../../stack/until.ts';
import { CheckBed, SILENT, told } from './check-bed.ts';

const TABLE_CHECKS = [
  ...['relay-tables', 'outbox-table', 'outbox-engine', 'outbox-columns', 'outbox-primary-key', 'state-columns'],
  ...['waiting-index', 'waiting-rows', 'start', 'future-rows'],
];

function open(...tables: readonly string[]): Promise<CheckBed> {
  return CheckBed.open({
    mysql: inject('mysql'),
    brokers: inject('brokers'),
    outboxes: tables.map((table) => ({ table })),
  });
}

test('outboxes that are wrong, each in its way', async () => {
  const tables = ['fine', 'gone', 'viewed', 'myisam', 'renamed', 'unindexed', 'narrow', 'settled', 'unkeyed'];
  await using bed = await open(...tables);
  await bed.sql(`
    DROP TABLE gone, viewed; CREATE VIEW viewed AS SELECT * FROM fine;
    ALTER TABLE myisam ENGINE = MyISAM;
    ALTER TABLE renamed RENAME COLUMN payload TO body;
    ALTER TABLE unindexed ALTER INDEX waiting INVISIBLE;
    ALTER TABLE narrow MODIFY status ENUM ('pending', 'published') NOT NULL DEFAULT 'pending',
      MODIFY claimed_by BINARY(8) NULL, MODIFY attempts VARCHAR(3) NOT NULL DEFAULT '0', MODIFY published_at DATE NULL;
    ALTER TABLE settled ALTER COLUMN status SET DEFAULT 'published';
    ALTER TABLE unkeyed DROP PRIMARY KEY, ADD PRIMARY KEY (idempotency_key), ADD KEY (id)`);
  const report = await bed.check();
  const name = bed.database;
  expect(told(report, TABLE_CHECKS).map((line) => line.replaceAll(name, 'db'))).toEqual([
    'error outbox-table: there is no table db.gone',
    'error outbox-table: db.viewed is a view',
    'error outbox-engine: db.myisam is a table of engine MyISAM',
    'error outbox-columns: db.renamed has no column payload',
    'error waiting-index: db.unindexed has no index that finds its pending rows',
    "error state-columns: column status of db.narrow is enum('pending','published'): it cannot hold the words pending, processing, published, failed",
    'error state-columns: column claimed_by of db.narrow is binary(8): it cannot hold 16 bytes',
    'error state-columns: column attempts of db.narrow is varchar(3): it cannot hold whole numbers',
    'error state-columns: column published_at of db.narrow is date: it cannot hold times',
    'error outbox-primary-key: the primary key of db.unkeyed is idempotency_key, not id',
    'warning state-columns: column status of db.settled has the default published',
    expect.stringMatching(/^unknown waiting-rows: rows of db.gone could not be looked at: /),
  ]);
  // The statements that are given do mend it.
  const fixes = report.findings.filter(
    ({ check, fix }) => TABLE_CHECKS.includes(check) && /^(ALTER|CREATE)/.test(fix ?? ''),
  );
  for (const { fix, fact } of fixes) {
    if (fact.includes('.unkeyed')) continue; // which column is meant is for a person to say
    await bed.sql(fix!.replace('INDEX waiting', 'INDEX waiting_2'));
  }
  expect(told(await bed.check(), ['outbox-engine', 'waiting-index', 'state-columns'])).toEqual([]);
});

test('tables of the relay that are missing, and migrations that are', async () => {
  await using bed = await open('outbox');
  await bed.sql("DELETE FROM cdc_relay_migrations WHERE name = '0006_last_transaction'");
  expect(told(await bed.check(), TABLE_CHECKS)).toEqual([
    `error relay-tables: migrations have not been applied in ${bed.database}: 0006_last_transaction`,
  ]);
  await bed.sql('DROP TABLE cdc_relay_canary, cdc_relay_jobs');
  const report = await bed.check();
  expect(told(report, [...TABLE_CHECKS, 'canary'])).toEqual([
    `error relay-tables: tables of the relay are missing in ${bed.database}: cdc_relay_jobs, cdc_relay_canary`,
    expect.stringMatching(/^unknown canary: no canary: writing a row of cdc_relay_canary failed: /),
  ]);
});

test('a first start that nobody has decided on, and what waits', async () => {
  await using bed = await open('outbox');
  await bed.sql("INSERT INTO outbox (topic, aggregate_id) VALUES ('a', '1'), ('b', '2'), ('a', '3')");
  await bed.sql("INSERT INTO outbox (topic, aggregate_id, status) VALUES ('z', '4', 'published')");
  await bed.sql('ANALYZE TABLE outbox');
  const report = await bed.check();
  expect(told(report, ['start'])).toEqual([
    `warning start: it would be the first start, with start: head, and ${bed.database}.outbox has 3 pending rows`,
  ]);
  expect(told(await bed.check({ start: 'pending' }), ['start'])).toEqual([]);
  expect(report.findings.find(({ check }) => check === 'waiting-rows')?.fact).toBe(
    `${bed.database}.outbox has ~4 rows, 3 of them pending`,
  );
  // Topics of pending rows are looked at, others are not.
  expect(told(report, ['topic'])).toEqual([
    'error topic: topic a does not exist',
    'error topic: topic b does not exist',
  ]);
  const { relay, ...settings } = bed.settings();
  const { check } = await import('../../../src/check/check.ts');
  const undecided = await check({ ...settings, relay: { ...relay, start: null } }, SILENT);
  expect(told(undecided, ['start'])).toEqual([
    `error start: it would be the first start, ${bed.database}.outbox has rows already (3 pending), and start is not set`,
  ]);
  await bed.sql("INSERT INTO cdc_relay_offsets (name, file, position) VALUES ('check-test', 'b.1', 4)");
  expect(told(await check({ ...settings, relay: { ...relay, start: null } }, SILENT), ['start'])).toEqual([]);
});

test('S34 rows of an application that writes its local time', async () => {
  await using bed = await open('outbox');
  await bed.sql(
    "INSERT INTO outbox (topic, aggregate_id, available_at) VALUES ('a', '1', UTC_TIMESTAMP(6) + INTERVAL 40 MINUTE)",
  );
  expect(told(await bed.check(), ['future-rows'])).toEqual([]);
  await bed.sql("SET time_zone = '+05:00'");
  await bed.sql("INSERT INTO outbox (topic, aggregate_id, available_at) VALUES ('a', '2', NOW(6)), ('a', '3', NOW(6))");
  expect(told(await bed.check(), ['future-rows'])).toEqual([
    `warning future-rows: 2 of 3 pending rows of ${bed.database}.outbox (of the farthest 1,000) look like local time: due in 4 h 59 m`,
  ]);
});

test('S34 rows that are due in a year', async () => {
  await using bed = await open('outbox');
  const later = 'UTC_TIMESTAMP(6) + INTERVAL 500001 MINUTE';
  await bed.sql(`INSERT INTO outbox (topic, aggregate_id, available_at) VALUES ('a', '1', ${later})`);
  expect(told(await bed.check(), ['future-rows'])).toEqual([
    expect.stringMatching(/^warning future-rows: 1 pending row of .* are due later, the last in 347 d 5 h$/),
  ]);
});

test('S32 a transaction that is open for long is found by its thread', async () => {
  await using bed = await open('outbox');
  const session = await Session.open(bed.settings().mysql, SILENT);
  const application = await bed.connect();
  try {
    await application.query(`USE ${bed.database}`);
    await application.query('BEGIN');
    await application.query("INSERT INTO outbox (topic, aggregate_id) VALUES ('a', '1')");
    const isOurs = async () =>
      (await readLongTransactions(session, 1)).find(({ thread }) => thread === application.threadId) ?? null;
    // The server renews what it shows only when nobody has asked for a tenth of a second.
    const found = await until(isOurs, { withinMs: 20_000, everyMs: 500, what: 'a transaction that is a second old' });
    const facts = { ...(await readServerFacts(session)), longTransactions: { known: true, value: [found] } } as const;
    expect(told({ findings: capacityFindings(facts) }, ['long-transactions'])).toEqual([
      `warning long-transactions: a transaction is open for a long time: the oldest for ${found.seconds} s (thread ${application.threadId})`,
    ]);
    expect(found.seconds).toBeLessThan(60);
  } finally {
    application.destroy();
    session.destroy();
  }
});

test('the canary leaves nothing behind, and takes what others have left', async () => {
  await using bed = await open('outbox');
  await bed.sql(
    "INSERT INTO cdc_relay_canary (aggregate_id, idempotency_key, created_at) VALUES ('x', '1', '2020-01-01'), ('x', '2', UTC_TIMESTAMP(6))",
  );
  const { canary } = await bed.check();
  expect(canary?.afterMs).toBeGreaterThan(0);
  expect(
    (await bed.sql('SELECT HEX(idempotency_key) AS k FROM cdc_relay_canary')).map(({ k }) => String(k).slice(0, 2)),
  ).toEqual(['32']);
});
