import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/model/clock.ts';
import type { LogFields } from '../../../src/model/log.ts';
import { Retention } from '../../../src/retention/retention.ts';
import { MysqlStore } from '../../../src/store/mysql-store.ts';
import { until } from '../../stack/until.ts';
import { CommandBed, numbers } from '../commands/command-bed.ts';
import { silent } from '../store/store-bed.ts';

const HOUR_MS = 3_600_000;
const OUTBOX = { table: 'outbox', retention: { afterMs: HOUR_MS } };

/** `rows` rows published so long before now. */
async function published(bed: CommandBed, rows: number, ago: string): Promise<void> {
  await bed.sql(
    `INSERT INTO outbox (topic, aggregate_id, payload, status, published_at)
     SELECT 'topic', n % 50, JSON_OBJECT('n', n), 'published',
       UTC_TIMESTAMP(6) - INTERVAL ${ago} FROM ${numbers(rows)}`,
  );
}

/** The commit time of the saved checkpoint. */
async function checkpoint(bed: CommandBed, ago: string | null): Promise<void> {
  const micros = ago === null ? 'NULL' : `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6) - INTERVAL ${ago})`;
  await bed.sql(
    `INSERT INTO cdc_relay_offsets (name, epoch, last_commit_us) VALUES ('command-test', 1, ${micros})
     ON DUPLICATE KEY UPDATE last_commit_us = VALUES(last_commit_us)`,
  );
}

async function count(bed: CommandBed, where = 'TRUE', table = 'outbox'): Promise<number> {
  const [row] = await bed.sql(`SELECT COUNT(*) AS n FROM ${table} WHERE ${where}`);
  return Number(row['n']);
}

/** Rounds as fast as they can be; everything else by the real clock. */
const hurried: Clock = {
  nowMs: () => systemClock.nowMs(),
  after: (delayMs, call) => systemClock.after(delayMs >= 60_000 ? 20 : delayMs, call),
};

interface AtWork {
  readonly logged: readonly { event: string; fields: LogFields | undefined }[];
  /** Resolves with what it ended with; undefined when it was stopped. */
  readonly ended: Promise<unknown>;
}

/** A leader's retention at work while `work` runs. */
async function atWork(bed: CommandBed, work: (retention: AtWork) => Promise<void>, clock = hurried): Promise<unknown> {
  const settings = bed.settings();
  const store = new MysqlStore(settings, systemClock, silent);
  const { serverUuid } = await store.serverFacts();
  const leader = await store.lead(AbortSignal.timeout(60_000), () => undefined);
  const logged: { event: string; fields: LogFields | undefined }[] = [];
  const note = (event: string, fields?: LogFields): void => void logged.push({ event, fields });
  const log = { ...silent, info: note, warn: note };
  const stop = new AbortController();
  const ended = new Retention({ settings, leader, serverUuid, clock, log }).run(stop.signal).then(
    () => undefined,
    (error: unknown) => error,
  );
  try {
    await work({ logged, ended });
  } finally {
    stop.abort();
    await ended;
    await leader.release();
    await store.close();
  }
  return ended;
}

test('S33 only rows published long enough ago and before the checkpoint’s last commit go; the rest stays', async () => {
  await using bed = await CommandBed.open([OUTBOX]);
  await checkpoint(bed, '2 HOUR');
  await published(bed, 2_500, '3 HOUR');
  await published(bed, 10, '119 MINUTE');
  await published(bed, 10, '1 MINUTE');
  for (const status of ['pending', 'processing', 'failed']) {
    await bed.insert({ topic: 't', aggregate_id: 'a', status, published_at: '2020-01-01 00:00:00' });
  }
  await bed.insert({ topic: 't', aggregate_id: 'a', status: 'published' });
  await atWork(bed, async () => {
    await until(async () => (await count(bed)) === 24, { withinMs: 20_000, what: 'old rows to go' });
    // The checkpoint passes those of 119 minutes ago: now they may go, too.
    await checkpoint(bed, '1 MINUTE');
    await until(async () => (await count(bed)) === 14, { withinMs: 20_000, what: 'passed rows to go' });
  });
  expect(await count(bed, "status = 'published' AND published_at IS NOT NULL")).toBe(10);
  expect(await count(bed, "status <> 'published' OR published_at IS NULL")).toBe(4);
});

test('S33 without a commit that the checkpoint has passed nothing goes', async () => {
  await using bed = await CommandBed.open([OUTBOX]);
  await checkpoint(bed, null);
  await published(bed, 10, '3 HOUR');
  expect(await bed.cli(['purge', '--yes'])).toMatchObject({ code: 0 });
  expect(await count(bed)).toBe(10);
});

test('an archive gets the rows as they are, in the transaction that deletes them', async () => {
  await using bed = await CommandBed.open([{ table: 'outbox', retention: { afterMs: HOUR_MS, archive: 'archive' } }]);
  await checkpoint(bed, '0 SECOND');
  await bed.sql('ALTER TABLE outbox ADD COLUMN doubled INT AS (attempts * 2) VIRTUAL, ADD COLUMN note TEXT');
  await bed.sql('CREATE TABLE archive LIKE outbox');
  await published(bed, 1_500, '2 HOUR');
  await bed.sql(
    "UPDATE outbox SET note = 'ü', headers = '{\"a\": 1.0}', last_error = 'x', attempts = 4 WHERE id % 3 = 0",
  );
  await bed.sql('CREATE TABLE copy AS SELECT * FROM outbox');
  const faults = await atWork(bed, async () => {
    await until(async () => (await count(bed)) === 0, { withinMs: 20_000, what: 'old rows to go' });
  });
  expect(faults).toBeUndefined();
  const sum = async (table: string) =>
    bed.sql(`SELECT COUNT(*) AS n, SUM(CRC32(CONCAT_WS('|', id, topic, aggregate_id, payload, COALESCE(headers, '-'),
      HEX(idempotency_key), status, available_at, attempts, COALESCE(last_error, '-'), created_at, published_at, doubled,
      COALESCE(note, '-')))) AS crc FROM ${table}`);
  expect(await sum('archive')).toEqual(await sum('copy'));
});

test.each([
  ['CREATE TABLE archive (id INT PRIMARY KEY)', 'has another type for id'],
  ['CREATE TABLE archive LIKE outbox; ALTER TABLE archive DROP COLUMN payload', 'lacks payload'],
  [
    'CREATE TABLE archive LIKE outbox; ALTER TABLE archive MODIFY last_error VARCHAR(10)',
    'another type for last_error',
  ],
  ['SELECT 1', 'does not exist'],
])('an archive that cannot hold the rows takes none, and none is lost: %s', async (sql, problem) => {
  await using bed = await CommandBed.open([{ table: 'outbox', retention: { afterMs: HOUR_MS, archive: 'archive' } }]);
  await checkpoint(bed, '0 SECOND');
  await published(bed, 5, '2 HOUR');
  await bed.sql(sql);
  const purged = await bed.cli(['purge', '--yes']);
  expect(purged.code).toBe(1);
  expect(purged.stderr).toContain(problem);
  await atWork(bed, async ({ logged }) => {
    const told = () =>
      logged.some(({ event, fields }) => event === 'retention-failed' && String(fields?.['detail']).includes(problem));
    await until(told, { withinMs: 20_000, what: 'the fault to be told' });
  });
  expect(await count(bed)).toBe(5);
});

test('held rows are left, the application waits for nothing, and they go when they are let go', async () => {
  await using bed = await CommandBed.open([OUTBOX]);
  await checkpoint(bed, '0 SECOND');
  await published(bed, 3_000, '2 HOUR');
  const [first] = await bed.sql('SELECT MIN(id) AS id FROM outbox');
  const application = await bed.connect();
  await application.beginTransaction();
  await application.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [first['id']]);
  await application.query("INSERT INTO outbox (topic, aggregate_id) VALUES ('t', 'a')");
  // What it waits for a lock would be an error.
  const writer = await bed.connect();
  await writer.query('SET SESSION innodb_lock_wait_timeout = 1');
  let inserted = 0;
  await atWork(bed, async ({ logged }) => {
    await until(
      async () => {
        await writer.query("INSERT INTO outbox (topic, aggregate_id) VALUES ('t', 'a')");
        inserted++;
        return (await count(bed, "status = 'published'")) === 1;
      },
      { withinMs: 20_000, what: 'rows to go around the one that is held', everyMs: 1 },
    );
    await application.commit();
    await until(async () => (await count(bed, "status = 'published'")) === 0, { withinMs: 20_000, what: 'the last' });
    expect(logged.filter(({ event }) => event === 'retention-failed')).toEqual([]);
  });
  expect(await count(bed)).toBe(inserted + 1);
});

test('a relay that leads no longer removes nothing', async () => {
  await using bed = await CommandBed.open([OUTBOX]);
  await checkpoint(bed, '0 SECOND');
  const error = await atWork(bed, async ({ ended }) => {
    await bed.sql('UPDATE cdc_relay_offsets SET epoch = epoch + 1');
    await published(bed, 10, '2 HOUR');
    expect(await ended).toBeDefined();
  });
  expect(error).toMatchObject({ fault: { code: 'LEADERSHIP_LOST' } });
  expect(await count(bed)).toBe(10);
});

test('what is young is not read again and again: a round behind a large table of young rows looks at little', async () => {
  await using bed = await CommandBed.open([OUTBOX]);
  await checkpoint(bed, '0 SECOND');
  await bed.sql("INSERT INTO outbox (topic, aggregate_id, status) VALUES ('t', 'a', 'failed')");
  await published(bed, 60_000, '1 MINUTE');
  const reads = async (): Promise<number> => {
    const [row] = await bed.sql(
      `SELECT SUM(COUNT_READ) AS n FROM performance_schema.table_io_waits_summary_by_index_usage
       WHERE OBJECT_SCHEMA = ? AND OBJECT_NAME = 'outbox' AND INDEX_NAME = 'PRIMARY'`,
      [bed.database],
    );
    return Number(row['n']);
  };
  const before = await reads();
  // By the real clock, the second round is a minute away.
  await atWork(
    bed,
    async () => {
      let last = 0;
      const still = async (): Promise<boolean> => {
        const seen = last;
        last = (await reads()) - before;
        return last >= 10_000 && last === seen;
      };
      await until(still, { withinMs: 20_000, what: 'the end of the first round', everyMs: 200 });
      expect(last).toBeLessThan(12_000);
    },
    systemClock,
  );
});

test('purge: a dry run counts, without a terminal it needs --yes, then it deletes beside a live leader', async () => {
  await using bed = await CommandBed.open([{ table: 'outbox' }]);
  await checkpoint(bed, '0 SECOND');
  await published(bed, 4_200, '8 DAY');
  await published(bed, 100, '6 DAY');
  const unclear = await bed.cli(['purge']);
  expect(unclear.code).toBe(2);
  expect(unclear.stderr).toContain('how old?');
  const dry = await bed.cli(['purge', '--older-than', '7d', '--dry-run', '--json']);
  expect(dry.code).toBe(0);
  expect(JSON.parse(dry.stdout)).toMatchObject({
    version: 1,
    dryRun: true,
    interrupted: false,
    outboxes: [{ outbox: `${bed.database}.outbox`, rows: 4_200, held: 0, archive: null }],
  });
  const refused = await bed.cli(['purge', '--older-than', '7d']);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('there is no terminal to ask on');
  expect(await count(bed)).toBe(4_300);
  await atWork(bed, async () => {
    const { code, stdout } = await bed.cli(['purge', '--older-than', '7d', '--yes']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/outbox {2}deleted 4,200 rows published before \d{4}-\d\d-\d\dT\S+Z\n$/);
  });
  expect(await count(bed)).toBe(100);
});

test('purge: Ctrl-C ends behind a batch and says so; the next run does the rest', async () => {
  await using bed = await CommandBed.open([OUTBOX]);
  await checkpoint(bed, '0 SECOND');
  await published(bed, 20_000, '2 HOUR');
  const begun = until(async () => (await count(bed)) < 20_000, { withinMs: 20_000, what: 'a first batch', everyMs: 5 });
  const { code, stdout } = await bed.cli(['purge', '--yes'], begun);
  expect(code).toBe(130);
  expect(stdout).toContain('interrupted: what is told above is done; run it again for the rest');
  const left = await count(bed);
  expect(left).toBeGreaterThan(0);
  const said = Number(/deleted ([\d,]+) rows/.exec(stdout)![1].replaceAll(',', ''));
  expect(said + left).toBe(20_000);
  expect((await bed.cli(['purge', '--yes'])).code).toBe(0);
  expect(await count(bed)).toBe(0);
});

test('ids that are no numbers are walked, too', async () => {
  await using bed = await CommandBed.open([{ table: 'own', columns: { id: 'event_id' }, topic: { fixed: 'orders' } }]);
  await checkpoint(bed, '0 SECOND');
  await bed.sql(
    `CREATE TABLE own (event_id VARCHAR(40) PRIMARY KEY, aggregate_id VARCHAR(20), event_type VARCHAR(20), payload TEXT,
       headers TEXT, idempotency_key VARCHAR(64), status VARCHAR(20), available_at DATETIME(6), claimed_at DATETIME(6),
       claimed_by BINARY(16), attempts INT, last_error TEXT, created_at DATETIME(6), published_at DATETIME(6));
     INSERT INTO own (event_id, status, published_at)
     SELECT UUID(), IF(n % 5 = 0, 'pending', 'published'),
       UTC_TIMESTAMP(6) - INTERVAL 2 HOUR FROM ${numbers(2_500)}`,
  );
  const { code } = await bed.cli(['purge', '--older-than', '1h', '--yes']);
  expect(code).toBe(0);
  expect(await count(bed, 'TRUE', 'own')).toBe(500);
});
