import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { DatabaseServer } from '../../stack/handles.ts';
import { startMysql } from '../../stack/stack.ts';
import { CheckBed, told } from './check-bed.ts';

/** Wrong in all that one server can be wrong in at a time. */
const WRONG = [
  ...['--binlog-format=STATEMENT', '--binlog-row-image=MINIMAL', '--binlog-row-metadata=MINIMAL'],
  ...['--binlog-expire-logs-seconds=3600', '--gtid-mode=OFF', '--binlog-order-commits=OFF', '--binlog-ignore-db=app'],
  ...['--wait-timeout=5', '--net-write-timeout=2', '--max-connections=11', '--skip-log-replica-updates'],
  ...['--skip-replica-start', '--autocommit=OFF', '--plugin-load-add=group_replication.so'],
  ...['--loose-group-replication-group-name=8a94f357-aab4-11df-86ab-c80aa9429562'],
  ...['--loose-group-replication-single-primary-mode=OFF'],
];
const SERVER_ID = 77;

describe('J2 a server with the wrong settings', () => {
  let server: DatabaseServer;
  let bed: CheckBed;
  beforeAll(async () => {
    server = await startMysql({ flags: WRONG, serverId: SERVER_ID });
    bed = await CheckBed.open({ mysql: server, brokers: inject('brokers'), outboxSchema: 'app' });
    await bed.sql("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1");
    await bed.sql('CHANGE REPLICATION FILTER REPLICATE_DO_DB = (shop)');
  });
  afterAll(async () => {
    await bed[Symbol.asyncDispose]();
    await server.dispose();
  });

  test('each is found, and the canary with them', async () => {
    const report = await bed.check({ mysql: { serverId: SERVER_ID } });
    const found = told(report).map((line) => line.replace(/: \d+ of 11/, ': N of 11'));
    expect(found).toEqual([
      'error single-primary: the server is in a group of several primaries (group_replication_single_primary_mode is OFF)',
      'error server-id: mysql.serverId 77 is also the id of the server itself',
      'error binlog-format: binlog_format is STATEMENT',
      'error binlog-order-commits: binlog_order_commits is OFF',
      'error binlog-filters: changes in schema app are not logged (binlog_ignore_db = app)',
      'error replica: the server is a replica of 127.0.0.1:1 and log_replica_updates is OFF',
      expect.stringMatching(
        /^error canary: a row written .* could not be read: .* is in the log as text; .* \(BINLOG_UNSUPPORTED\)$/,
      ),
      'warning wait-timeout: wait_timeout is 5 s',
      'warning net-write-timeout: net_write_timeout is 2 s',
      'warning connections: N of 11 connections are free (max_connections); a relay uses up to 12',
      'warning binlog-row-image: binlog_row_image is MINIMAL',
      'warning binlog-row-metadata: binlog_row_metadata is MINIMAL',
      'warning binlog-expiry: binlogs are kept for 1 h (binlog_expire_logs_seconds = 3600)',
      'warning sync-binlog: sync_binlog is 0',
      'warning innodb-flush-log-at-trx-commit: innodb_flush_log_at_trx_commit is 2',
      'warning gtid-mode: gtid_mode is OFF',
      'warning replica: the server is a replica of 127.0.0.1:1 with filters: Replicate_Do_DB=shop',
    ]);
    for (const { severity, effect, fix } of report.findings) {
      if (severity === 'error' || severity === 'warning') expect([effect, fix]).not.toContain(null);
    }
    expect(report.canary).toBeNull();
  });

  test('J2 MIXED is found too, by its name and by the canary, which is written as applications write', async () => {
    await bed.sql("SET GLOBAL binlog_format = 'MIXED'");
    expect(told(await bed.check(), ['binlog-format', 'canary'])).toEqual([
      'error binlog-format: binlog_format is MIXED',
      expect.stringMatching(
        /^error canary: a row written .* could not be read: .* is in the log as text; .* \(BINLOG_UNSUPPORTED\)$/,
      ),
    ]);
  });

  test('sessions of a pool that keep what was the default; the canary flies where the log does not name its columns', async () => {
    const pooled = await bed.user(`ALL ON app.*`);
    const application = await bed.connect(pooled);
    try {
      await bed.sql("SET GLOBAL binlog_format = 'ROW', GLOBAL binlog_row_image = 'FULL'");
      await bed.sql("SET SESSION binlog_format = 'STATEMENT', SESSION sql_log_bin = OFF");
      const report = await bed.check();
      const who = (user: string) => new RegExp(`^warning session-settings: a session of ${user}@\\S+ has `);
      const found = told(report, ['binlog-format', 'binlog-row-image', 'session-settings', 'canary']);
      expect(found.map((line) => line.replace(/ of \S+ | \(thread \d+\)/g, ' ').trim()).sort()).toEqual([
        'warning session-settings: a session has binlog_format = MIXED',
        'warning session-settings: a session has binlog_format = STATEMENT',
        'warning session-settings: a session has binlog_row_image = MINIMAL',
        'warning session-settings: a session has sql_log_bin = OFF',
      ]);
      expect(found.filter((line) => who(pooled.user).test(line))).toHaveLength(2);
      expect(report.canary?.afterMs).toBeGreaterThan(0);
    } finally {
      application.destroy();
      await bed.sql("SET SESSION binlog_format = 'ROW', SESSION sql_log_bin = ON");
    }
  });

  test('J2 the canary finds that nothing of its schema is logged', async () => {
    const own = await CheckBed.open({ mysql: server, brokers: inject('brokers') });
    try {
      // The same server; its relay writes where nothing is logged.
      await bed.sql('CREATE TABLE app.cdc_relay_canary LIKE ??.cdc_relay_canary', [own.database]);
      const report = await own.check({ mysql: { database: 'app', connectTimeoutMs: 1_000 } });
      expect(told(report, ['binlog-filters', 'canary'])).toEqual([
        'error canary: a row written into cdc_relay_canary did not come by in the binlog within 6 s',
        "warning binlog-filters: changes in schema app, the relay's own, are not logged (binlog_ignore_db = app)",
      ]);
    } finally {
      await own[Symbol.asyncDispose]();
    }
  });

  test('a server that takes no writes', async () => {
    await bed.sql('SET GLOBAL super_read_only = ON');
    try {
      expect(told(await bed.check(), ['read-only', 'canary'])).toEqual([
        'error read-only: super_read_only is ON',
        expect.stringMatching(
          /^unknown canary: no canary: writing a row of cdc_relay_canary failed: .*ER_OPTION_PREVENTS/,
        ),
      ]);
    } finally {
      await bed.sql('SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF');
    }
  });
});

test('J2 a server without a log, without an id, with few connections for each user', async () => {
  await using server = await startMysql({ flags: ['--skip-log-bin', '--server-id=0', '--max-user-connections=6'] });
  await using bed = await CheckBed.open({ mysql: server, brokers: inject('brokers') });
  const report = await bed.check();
  expect(told(report).filter((line) => !line.includes('flush-log') && !line.includes('sync-binlog'))).toEqual([
    'error server-id: server_id is 0',
    'error log-bin: log_bin is OFF: the server writes no binlog',
    'warning connections: max_user_connections is 6; a relay uses up to 12',
  ]);
  expect(report.findings.filter(({ stopsTail }) => stopsTail).map(({ check }) => check)).toEqual([
    'server-id',
    'log-bin',
  ]);
  // Where the log is not read its settings are nobody's business.
  const swept = await bed.check({ sweep: { mode: 'sweep' } });
  expect(swept.findings.filter(({ area }) => area === 'binlog')).toEqual([]);
});
