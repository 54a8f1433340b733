import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { outboxMigrations, relayMigrations } from '../../../src/store/migrations.ts';
import { type Finished, runProgram } from '../../e2e/built-cli.ts';
import type { DatabaseServer } from '../../stack/handles.ts';
import { startMariadb } from '../../stack/stack.ts';
import { until } from '../../stack/until.ts';
import { type Address, MigrateBed } from './migrate-bed.ts';

/** From its sources: what is tested here is not the build. */
const CLI = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url));
/** In the order of their files. */
const RELAY_TABLES = [
  'cdc_relay_migrations',
  'cdc_relay_offsets',
  'cdc_relay_parked',
  'cdc_relay_actions',
  'cdc_relay_limits',
  'cdc_relay_jobs',
  'cdc_relay_canary',
];
/** Two of them change a table that another one has made. */
const RELAY_FILES = RELAY_TABLES.length + 2;
let mariadb: DatabaseServer;

beforeAll(async () => {
  mariadb = await startMariadb();
}, 120_000);

afterAll(() => mariadb.dispose());

describe.each<[string, () => Address]>([
  ['MySQL', () => inject('mysql')],
  ['MariaDB', () => mariadb],
])('on %s', (_, server) => {
  test('what is missing is created, names quoted; the second time there is nothing to do', async () => {
    await using bed = await MigrateBed.open(server());
    const settings = bed.settings([{ table: '`ou``t.box`' }, { table: 'fixed', topic: { fixed: 'orders' } }]);
    expect(await bed.migrate(settings)).toEqual([
      ...RELAY_TABLES.map((table) => ({ table: bed.table(table), as: 'created' })),
      { table: bed.table('ou`t.box'), as: 'created' },
      { table: bed.table('fixed'), as: 'created' },
    ]);
    expect(await bed.tables()).toEqual([...RELAY_TABLES.toSorted(), 'fixed', 'ou`t.box']);
    expect((await bed.migrate(settings)).map(({ as }) => as)).toEqual(
      [...RELAY_TABLES, 'ou`t.box', 'fixed'].map(() => 'kept'),
    );
    await expect(bed.sql(`INSERT INTO ${bed.table('ou`t.box')} (aggregate_id) VALUES ('a')`)).rejects.toThrow(/topic/);
    await bed.sql(`INSERT INTO ${bed.table('fixed')} (aggregate_id) VALUES ('a')`);
  });

  test('rows have defaults: a key of their own each, pending, due now in UTC whatever the session’s zone', async () => {
    await using bed = await MigrateBed.open(server());
    await bed.migrate(bed.settings([{ table: 'outbox' }]));
    await bed.sql("SET time_zone = '+05:30'");
    const outbox = bed.table('outbox');
    await bed.sql(
      `INSERT INTO ${outbox} (topic, aggregate_id, payload) VALUES ('t', 'a', '{}'), ('t', 'a', NULL), ('t', 'b ', '1')`,
    );
    await bed.sql(`INSERT INTO ${outbox} (topic, aggregate_id) SELECT topic, aggregate_id FROM ${outbox}`);
    const [row] = await bed.sql(
      `SELECT COUNT(*) AS \`rows\`, COUNT(DISTINCT idempotency_key) AS \`keys\`, MIN(LENGTH(idempotency_key)) AS length,
         SUM(idempotency_key = REPEAT(CHAR(0), 16)) AS zero, SUM(status = 'pending') AS pending,
         SUM(available_at <= UTC_TIMESTAMP(6) AND available_at > UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE) AS due,
         SUM(created_at > UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE) AS fresh FROM ${outbox}`,
    );
    const numbers = Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number(value)]));
    expect(numbers).toEqual({ rows: 6, keys: 6, length: 16, zero: 0, pending: 6, due: 6, fresh: 6 });
  });

  test('two at once: one creates, the other finds everything there', async () => {
    await using bed = await MigrateBed.open(server());
    const settings = bed.settings([{ table: 'outbox' }]);
    const outcomes = await Promise.all(Array.from({ length: 4 }, () => bed.migrate(settings)));
    const made = outcomes.filter((tables) => tables.some(({ as }) => as === 'created'));
    expect(made).toHaveLength(1);
    expect(new Set(made[0].map(({ as }) => as))).toEqual(new Set(['created']));
    const [row] = await bed.sql(`SELECT COUNT(*) AS \`rows\` FROM ${bed.table('cdc_relay_migrations')}`);
    expect(Number(row['rows'])).toBe(RELAY_FILES + 1);
  });

  test('tables of others are left alone: one that exists, one with columns of its own', async () => {
    await using bed = await MigrateBed.open(server());
    await bed.sql(`CREATE TABLE ${bed.table('theirs')} (id INT PRIMARY KEY)`);
    const settings = bed.settings([{ table: 'theirs' }, { table: 'own', columns: { id: 'event_id' } }]);
    expect((await bed.migrate(settings)).slice(RELAY_TABLES.length)).toEqual([
      { table: bed.table('theirs'), as: 'kept' },
      { table: bed.table('own'), as: 'absent' },
    ]);
    const [row] = await bed.sql(`SELECT COUNT(*) AS \`rows\` FROM ${bed.table('cdc_relay_migrations')}`);
    expect(Number(row['rows'])).toBe(RELAY_FILES);
    expect(await bed.tables()).toEqual([...RELAY_TABLES.toSorted(), 'theirs']);
  });

  test('a table that was dropped is made anew; what a newer version recorded is ignored', async () => {
    await using bed = await MigrateBed.open(server());
    const settings = bed.settings([{ table: 'outbox' }]);
    await bed.migrate(settings);
    await bed.sql(`INSERT INTO ${bed.table('cdc_relay_migrations')} (name) VALUES ('9999_from_the_future')`);
    await bed.sql(`DROP TABLE ${bed.table('outbox')}`);
    expect((await bed.migrate(settings)).filter(({ as }) => as !== 'kept')).toEqual([
      { table: bed.table('outbox'), as: 'created' },
    ]);
    expect((await bed.migrate(settings)).every(({ as }) => as === 'kept')).toBe(true);
  });

  test('a table of the version before gets its new columns, also when the record of them was lost', async () => {
    await using bed = await MigrateBed.open(server());
    const settings = bed.settings([{ table: 'outbox' }]);
    await bed.migrate(settings);
    const offsets = bed.table('cdc_relay_offsets');
    const unrecord = `DELETE FROM ${bed.table('cdc_relay_migrations')} WHERE name = '0006_last_transaction'`;
    await bed.sql(unrecord);
    expect((await bed.migrate(settings)).every(({ as }) => as === 'kept')).toBe(true);
    await bed.sql(unrecord);
    await bed.sql(`ALTER TABLE ${offsets} DROP COLUMN last_file, DROP COLUMN last_begin, DROP COLUMN last_begin_us`);
    await bed.sql(`INSERT INTO ${offsets} (name, file, position) VALUES ('r', 'binlog.000001', 4)`);
    expect((await bed.migrate(settings)).filter(({ as }) => as !== 'kept')).toEqual([
      { table: offsets, as: 'changed' },
    ]);
    expect(await bed.sql(`SELECT last_file, last_begin, last_begin_us FROM ${offsets}`)).toMatchObject([
      { last_file: null, last_begin: null, last_begin_us: null },
    ]);
  });

  test('what --print says, applied by other means, leaves nothing to do', async () => {
    await using bed = await MigrateBed.open(server());
    const outboxes = [{ table: 'outbox' }, { table: "it's" }];
    const printed = await cli(bed, outboxes, ['migrate', '--print']);
    const connection = await bed.connect();
    await connection.query(printed.stdout);
    // Of a version before: it is run again as a whole, and adds what is missing.
    await bed.sql(`ALTER TABLE ${bed.table('cdc_relay_offsets')} DROP COLUMN paused_at, DROP COLUMN paused_by`);
    await bed.sql(`ALTER TABLE ${bed.table('cdc_relay_offsets')} DROP COLUMN rested_epoch`);
    await bed.sql(`DROP TABLE ${bed.table('cdc_relay_canary')}`);
    await connection.query(printed.stdout);
    await connection.query(`SELECT rested_epoch FROM ${bed.table('cdc_relay_offsets')}`);
    expect((await bed.migrate(bed.settings(outboxes))).every(({ as }) => as === 'kept')).toBe(true);
    const [row] = await bed.sql(`SELECT COUNT(*) AS \`rows\` FROM ${bed.table('cdc_relay_migrations')}`);
    expect(Number(row['rows'])).toBe(RELAY_FILES + 2);
  });

  test('S25 a lock that somebody holds is waited for in short tries, and told once; then the work goes on', async () => {
    await using bed = await MigrateBed.open(server());
    await bed.migrate(bed.settings([{ table: 'own', columns: { id: 'event_id' } }]));
    const holder = await bed.connect();
    await holder.query(`LOCK TABLES ${bed.table('cdc_relay_migrations')} READ`);
    const settings = bed.settings([{ table: 'outbox' }]);
    const migrating = bed.migrate(settings);
    await until(() => (bed.logged.length > 0 ? true : undefined), { withinMs: 20_000, what: 'the wait to be told' });
    expect(bed.logged).toEqual([
      { event: 'migration-waits', fields: { doing: `recording 0001_outbox ${bed.table('outbox')}`, atMostMs: 60_000 } },
    ]);
    await holder.query('UNLOCK TABLES');
    expect((await migrating).at(-1)).toEqual({ table: bed.table('outbox'), as: 'created' });
    expect(bed.logged).toHaveLength(1);
  });

  test('a lock that is never let go ends it; no table is left without its record, and it can be run again', async () => {
    await using bed = await MigrateBed.open(server());
    await bed.migrate(bed.settings([{ table: 'own', columns: { id: 'event_id' } }]));
    const holder = await bed.connect();
    await holder.query(`LOCK TABLES ${bed.table('cdc_relay_migrations')} READ`);
    const settings = bed.settings([{ table: 'outbox' }]);
    await expect(bed.migrate(settings, 0)).rejects.toMatchObject({ fault: { code: 'MYSQL_LOCK_WAIT' } });
    expect(await bed.tables()).toEqual(RELAY_TABLES.toSorted());
    await holder.query('UNLOCK TABLES');
    expect((await bed.migrate(settings)).at(-1)?.as).toBe('created');
  });

  test('not permitted: exit code 4, and the GRANT that helps does help', async () => {
    await using bed = await MigrateBed.open(server());
    const login = await bed.user('SELECT');
    const denied = await cli(bed, [{ table: 'outbox' }], ['migrate'], login);
    expect({ code: denied.code, stdout: denied.stdout }).toEqual({ code: 4, stdout: '' });
    expect(denied.stderr).not.toContain(login.password);
    expect(denied.stderr).toMatch(
      /^error: applying 0000_migrations to .*\(MYSQL_ACCESS_DENIED\)\n {2}server {3}\S+:\d+ \(/,
    );
    const grant = /^ {2}fix {6}(GRANT .*;)$/m.exec(denied.stderr)![1];
    await bed.sql(grant);
    const granted = await cli(bed, [{ table: 'outbox' }], ['migrate'], login);
    expect(granted).toMatchObject({ code: 0, stderr: '' });
    const names = [...RELAY_TABLES, 'outbox'];
    expect(granted.stdout).toBe(names.map((name) => `created ${bed.table(name)}\n`).join(''));
    expect((await cli(bed, [{ table: 'outbox' }], ['migrate'], login)).stdout).toBe('nothing to do\n');
  });

  test('with nothing to do it needs no right to create', async () => {
    await using bed = await MigrateBed.open(server());
    await bed.migrate(bed.settings([{ table: 'outbox' }]));
    const login = await bed.user('SELECT');
    const settings = bed.settings([{ table: 'outbox' }], login);
    expect((await bed.migrate(settings)).every(({ as }) => as === 'kept')).toBe(true);
  });

  test('a schema that does not exist: exit code 1, and how to create it', async () => {
    await using bed = await MigrateBed.open(server());
    const { code, stderr } = await cli(bed, [{ table: 'outbox' }], ['migrate', '--set', 'mysql.database=no such']);
    expect(code).toBe(1);
    expect(stderr).toContain('CREATE DATABASE `no such`;');
  });

  test('an outbox table with columns of its own is named on stderr', async () => {
    await using bed = await MigrateBed.open(server());
    const { code, stderr } = await cli(bed, [{ table: 'own', columns: { id: 'event_id' } }], ['migrate']);
    expect(code).toBe(0);
    expect(stderr).toBe(`${bed.table('own')} does not exist; its columns are its own, so migrate does not create it\n`);
    const quiet = await cli(bed, [{ table: 'own', columns: { id: 'event_id' } }], ['migrate', '--quiet']);
    expect(quiet).toMatchObject({ code: 0, stdout: 'nothing to do\n', stderr: '' });
  });
});

test('every file holds one statement on the table that it is recorded for', async () => {
  await using bed = await MigrateBed.open(inject('mysql'));
  const settings = bed.settings([{ table: 'outbox' }]);
  for (const { sql, table, name } of [...relayMigrations(settings), ...settings.outboxes.flatMap(outboxMigrations)]) {
    const statements = sql.replaceAll(/^--.*$/gm, '').split(/;\s*$/m);
    expect(
      statements.filter((text) => text.trim() !== ''),
      name,
    ).toHaveLength(1);
    expect(sql).toContain(table);
  }
});

async function cli(
  bed: MigrateBed,
  outboxes: readonly object[],
  args: readonly string[],
  login: { user?: string; password?: string } = {},
): Promise<Finished> {
  const cwd = mkdtempSync(`${tmpdir()}/cdc-relay-migrate-`);
  try {
    return await runProgram(process.execPath, [CLI, ...args], { cwd, environment: bed.environment(outboxes, login) });
  } finally {
    rmSync(cwd, { recursive: true });
  }
}
