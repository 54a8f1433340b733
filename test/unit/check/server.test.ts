import { describe, expect, test } from 'vitest';
import { capacityFindings } from '../../../src/check/capacity.ts';
import { logFilterFindings } from '../../../src/check/log-filters.ts';
import { logSettingFindings, periodText } from '../../../src/check/log-settings.ts';
import { httpFindings } from '../../../src/check/http-address.ts';
import { connectionFindings } from '../../../src/check/mysql-connection.ts';
import { serverRoleFindings } from '../../../src/check/server-role.ts';
import { parseVersion, versionFindings } from '../../../src/check/server-version.ts';
import { type SessionSetting, sessionSettingFindings } from '../../../src/check/session-settings.ts';
import { DENIED, goodServer, settings, told } from './facts.ts';

test.each([
  ['8.4.3', 'mysql', 8, 4, 3, true],
  ['9.7.4-2', 'mysql', 9, 7, 4, true],
  ['8.0.19-log', 'mysql', 8, 0, 19, false],
  ['5.7.44', 'mysql', 5, 7, 44, false],
  ['10.11.14-MariaDB-0+deb12u2', 'mariadb', 10, 11, 14, true],
  ['5.5.5-10.11.14-MariaDB-log', 'mariadb', 10, 11, 14, true],
  ['5.5.5-10.5.9-MariaDB', 'mariadb', 10, 5, 9, false],
  ['11.4.2-MariaDB', 'mariadb', 11, 4, 2, true],
  ['nonsense', 'mysql', 0, 0, 0, false],
] as const)('J1 the version %s', (text, flavour, major, minor, patch, isSupported) => {
  const version = parseVersion(text);
  expect(version).toEqual({ flavour, major, minor, patch, text });
  expect(versionFindings(version)[0].severity).toBe(isSupported ? 'good' : 'error');
});

test('nothing is said of a server that nothing is wrong with', () => {
  const facts = goodServer();
  expect(
    told([
      ...logSettingFindings(facts),
      ...logFilterFindings(facts, settings()),
      ...serverRoleFindings(facts, settings()),
      ...capacityFindings(facts),
      ...versionFindings(facts.version),
      ...connectionFindings(settings().mysql),
    ]),
  ).toEqual([]);
});

describe('J2 settings of the log', () => {
  test.each([
    ['log_bin', 'OFF', 'error log-bin: log_bin is OFF: the server writes no binlog'],
    ['binlog_format', 'MIXED', 'error binlog-format: binlog_format is MIXED'],
    ['binlog_format', 'STATEMENT', 'error binlog-format: binlog_format is STATEMENT'],
    ['binlog_row_image', 'MINIMAL', 'warning binlog-row-image: binlog_row_image is MINIMAL'],
    ['binlog_row_metadata', 'MINIMAL', 'warning binlog-row-metadata: binlog_row_metadata is MINIMAL'],
    [
      'binlog_expire_logs_seconds',
      '3600',
      'warning binlog-expiry: binlogs are kept for 1 h (binlog_expire_logs_seconds = 3600)',
    ],
    ['sync_binlog', '0', 'warning sync-binlog: sync_binlog is 0'],
    [
      'innodb_flush_log_at_trx_commit',
      '2',
      'warning innodb-flush-log-at-trx-commit: innodb_flush_log_at_trx_commit is 2',
    ],
    ['gtid_mode', 'OFF', 'warning gtid-mode: gtid_mode is OFF'],
    ['binlog_order_commits', 'OFF', 'error binlog-order-commits: binlog_order_commits is OFF'],
  ])('%s = %s', (name, value, expected) => {
    const found = logSettingFindings(goodServer({}, { [name]: value }));
    expect(told(found)).toEqual([expected]);
    const [{ effect, fix }] = found.filter(({ severity }) => severity !== 'good');
    expect([effect, fix]).not.toContain(null);
  });

  test('logs that never expire, and those of MariaDB that expire by days', () => {
    expect(told(logSettingFindings(goodServer({}, { binlog_expire_logs_seconds: '0' })))).toEqual([]);
    const kept = { binlog_expire_logs_seconds: '3600', binlog_expire_logs_auto_purge: 'OFF' };
    expect(told(logSettingFindings(goodServer({}, kept)))).toEqual([]);
    expect(told(logSettingFindings(goodServer({}, { basedir: '/rdsdbbin/mysql-8.0.39/' })))).toEqual([
      'unknown binlog-expiry: for how long binlogs are kept is not in the variables of Amazon RDS and Aurora',
    ]);
    const limited = logSettingFindings(goodServer({}, { binlog_space_limit: '1000000' }));
    expect(told(limited)).toEqual([
      'warning binlog-expiry: binlogs are purged when they are larger than 1000000 bytes in all (binlog_space_limit)',
    ]);
    const days = { binlog_expire_logs_seconds: '0', expire_logs_days: '0.5' };
    const mariadb = goodServer({ version: parseVersion('10.11.14-MariaDB') }, days);
    expect(told(logSettingFindings(mariadb))).toEqual([
      'warning binlog-expiry: binlogs are kept for 12 h (binlog_expire_logs_seconds = 43200)',
    ]);
  });

  test('the fix for MariaDB does not say PERSIST', () => {
    const mariadb = goodServer({ version: parseVersion('10.11.14-MariaDB') }, { binlog_format: 'MIXED' });
    expect(logSettingFindings(mariadb).find(({ check }) => check === 'binlog-format')?.fix).toMatch(
      /^SET GLOBAL binlog_format = 'ROW'; and the same in the option file/,
    );
  });

  test('periods', () => {
    expect([0, 59, 90, 3_600, 5_400, 86_400, 100_000, 604_800].map(periodText)).toEqual([
      '0 s',
      '59 s',
      '1 m 30 s',
      '1 h',
      '1 h 30 m',
      '1 d',
      '1 d 3 h',
      '7 d',
    ]);
  });
});

describe('J2 what sessions have for themselves', () => {
  const session = (thread: number, value: string, name = 'binlog_format'): SessionSetting => {
    return { name, value, client: 'app@10.0.0.7', thread };
  };
  const of = (value: readonly SessionSetting[], over: object = {}) =>
    sessionSettingFindings({ known: true, value }, goodServer(), settings(over));

  test('by client and value, with the threads; worse where nothing else would send the rows', () => {
    const sessions = [
      ...[1, 2, 3, 4, 5, 6].map((thread) => session(thread, 'MIXED')),
      session(7, 'OFF', 'sql_log_bin'),
    ];
    const found = of([...sessions, session(8, 'MINIMAL', 'binlog_row_image'), session(9, 'ROW')]);
    expect(told(found)).toEqual([
      'warning session-settings: 6 sessions of app@10.0.0.7 have binlog_format = MIXED (thread 1, 2, 3, 4, 5, …)',
      'warning session-settings: a session of app@10.0.0.7 has sql_log_bin = OFF (thread 7)',
      'warning session-settings: a session of app@10.0.0.7 has binlog_row_image = MINIMAL (thread 8)',
    ]);
    expect(found[1].fix).toBe('reconnect them, or see who sets it: KILL 7;');
    const kept = of([session(1, 'MIXED')], { outboxes: [{ table: 'app.outbox', retire: 'keep' }] });
    expect(kept.map(({ severity }) => severity)).toEqual(['error']);
    expect(told(of([]))).toEqual([]);
  });

  test('who may not look, and a server that does not tell', () => {
    const [denied] = sessionSettingFindings(DENIED, goodServer(), settings());
    expect(denied).toMatchObject({
      severity: 'unknown',
      fix: "GRANT SELECT ON performance_schema.variables_by_thread TO 'relay'@'%';\nGRANT SELECT ON performance_schema.threads TO 'relay'@'%';",
    });
    expect(told(sessionSettingFindings(null, goodServer(), settings()))).toHaveLength(1);
  });
});

describe('J2 filters and replicas', () => {
  const log = (doDb: string[], ignoreDb: string[]) => {
    return goodServer({ log: { known: true, value: { file: 'b.1', offset: 4, doDb, ignoreDb } } });
  };

  test('binlog_do_db without the outbox', () => {
    const own = settings({ mysql: { host: 'h', user: 'u', password: '', database: 'relay' } });
    expect(told(logFilterFindings(log(['relay', 'other'], []), own))).toEqual([
      'error binlog-filters: changes in schema app are not logged (binlog_do_db = relay, other)',
    ]);
    expect(told(logFilterFindings(log(['app'], []), own))).toEqual([
      "warning binlog-filters: changes in schema relay, the relay's own, are not logged (binlog_do_db = app)",
    ]);
    expect(told(logFilterFindings(log(['app', 'relay'], ['app']), own))).toEqual([]);
  });

  test('binlog_ignore_db with it', () => {
    expect(told(logFilterFindings(log([], ['app']), settings()))).toEqual([
      'error binlog-filters: changes in schema app are not logged (binlog_ignore_db = app)',
      "warning binlog-filters: changes in schema app, the relay's own, are not logged (binlog_ignore_db = app)",
    ]);
  });

  test('a replica, one with filters, one that does not log what it replicates', () => {
    const channel = { source: 'db0:3306', filters: [] as string[] };
    const replica = (filters: string[], updates = 'ON') => {
      const channels = { known: true, value: [{ ...channel, filters }] } as const;
      return logFilterFindings(goodServer({ channels }, { log_replica_updates: updates }), settings());
    };
    expect(told(replica([]))).toEqual(['warning replica: the server is a replica of db0:3306']);
    expect(told(replica(['Replicate_Do_DB=shop']))).toEqual([
      'warning replica: the server is a replica of db0:3306 with filters: Replicate_Do_DB=shop',
    ]);
    expect(told(replica([], 'OFF'))).toEqual([
      'error replica: the server is a replica of db0:3306 and log_replica_updates is OFF',
    ]);
  });

  test('what may not be asked is said, with the GRANT', () => {
    const found = logFilterFindings(goodServer({ log: DENIED, channels: DENIED }), settings());
    expect(found.map(({ severity, check, fix }) => [severity, check, fix])).toEqual([
      ['unknown', 'binlog-filters', "GRANT REPLICATION CLIENT ON *.* TO 'relay'@'%';"],
      ['unknown', 'replica', "GRANT REPLICATION CLIENT ON *.* TO 'relay'@'%';"],
    ]);
  });
});

describe('the role of the server', () => {
  test.each([
    [{ wsrep_on: 'ON' }, 'error single-primary: the server is a node of a Galera cluster (wsrep_on)'],
    [
      { group_replication_group_name: 'g', group_replication_single_primary_mode: 'OFF' },
      'error single-primary: the server is in a group of several primaries (group_replication_single_primary_mode is OFF)',
    ],
    [{ read_only: 'ON', super_read_only: 'ON' }, 'error read-only: super_read_only is ON'],
    [{ read_only: 'NO_LOCK_NO_ADMIN' }, 'error read-only: read_only is ON'],
    [{ server_id: '0' }, 'error server-id: server_id is 0'],
    [{ server_id: '4000000000' }, 'error server-id: mysql.serverId 4000000000 is also the id of the server itself'],
  ])('%j', (variables, expected) => {
    expect(told(serverRoleFindings(goodServer({}, variables), settings()))).toEqual([expected]);
  });

  test('a group with one primary is good', () => {
    const group = { group_replication_group_name: 'g', group_replication_single_primary_mode: 'ON' };
    expect(told(serverRoleFindings(goodServer({}, group), settings()))).toEqual([]);
  });

  test('a replica with the relay’s id', () => {
    const replicaIds = { known: true, value: [7, 4_000_000_000] } as const;
    expect(told(serverRoleFindings(goodServer({ replicaIds }), settings()))).toEqual([
      'error server-id: mysql.serverId 4000000000 is also the id of a replica',
    ]);
    expect(told(serverRoleFindings(goodServer({ replicaIds: DENIED }), settings()))).toEqual([
      'unknown server-id: whether a replica has id 4000000000 too could not be asked: that needs REPLICATION SLAVE',
    ]);
  });
});

test('time-outs and connections', () => {
  const low = { wait_timeout: '5', net_write_timeout: '2', max_connections: '20' };
  expect(told(capacityFindings(goodServer({}, low)))).toEqual([
    'warning wait-timeout: wait_timeout is 5 s',
    'warning net-write-timeout: net_write_timeout is 2 s',
    'warning connections: 8 of 20 connections are free (max_connections); a relay uses up to 12',
  ]);
  expect(told(capacityFindings(goodServer({}, { max_user_connections: '4' })))).toEqual([
    'warning connections: max_user_connections is 4; a relay uses up to 12',
  ]);
});

test('S32 long transactions, and who may not look', () => {
  const longTransactions = {
    known: true,
    value: [
      { thread: 41, seconds: 900 },
      { thread: 7, seconds: 61 },
    ],
  } as const;
  const found = capacityFindings(goodServer({ longTransactions }));
  expect(told(found)).toEqual([
    'warning long-transactions: 2 transactions are open for a long time: the oldest for 900 s (thread 41)',
  ]);
  const denied = capacityFindings(goodServer({ longTransactions: DENIED }));
  expect(told(denied)).toEqual([
    'unknown long-transactions: transactions that are open for long could not be looked for: that needs PROCESS',
  ]);
  expect(denied.at(-1)?.fix).toBe("GRANT PROCESS ON *.* TO 'relay'@'%';");
});

test('connections without TLS are only fine on this machine', () => {
  const { mysql } = settings();
  expect(told(connectionFindings({ ...mysql, host: 'db1' }))).toEqual([
    'warning mysql-connection: connections to MySQL are not encrypted (mysql.tls is off)',
  ]);
  expect(told(connectionFindings({ ...mysql, host: 'db1', tls: { verify: true } }))).toEqual([]);
  expect(told(connectionFindings({ ...mysql, tls: { verify: false } }))).toEqual([
    'warning mysql-connection: the certificate of MySQL is not checked (mysql.tls.verify is false)',
  ]);
});

test('HTTP for everybody is warned of', () => {
  const { http } = settings();
  const of = (over: Partial<typeof http>) => told(httpFindings({ ...http, ...over }));
  expect(of({})).toEqual([]);
  expect(of({ host: '0.0.0.0', port: 9465 })).toEqual([
    'warning http-host: HTTP is served on 0.0.0.0:9465 to everybody who can reach it: http.token is not set',
  ]);
  expect(of({ host: '0.0.0.0', token: 'secret' })).toEqual([]);
  expect(of({ host: '0.0.0.0', port: 0 })).toEqual([]);
});
