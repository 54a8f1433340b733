import { expect, inject, test } from 'vitest';
import { startMariadb } from '../../stack/stack.ts';
import { checkServer } from '../../../src/check/check-mysql.ts';
import { Session } from '../../../src/store/session.ts';
import { CheckBed, SILENT, told } from './check-bed.ts';

const DISGUISE = '5.5.5-10.11.14-MariaDB-log';

test('J1 a MariaDB in the disguise for old clients, with what it sets by itself', async () => {
  await using server = await startMariadb({
    flags: [`--version=${DISGUISE}`, '--binlog-format=MIXED', '--binlog-row-metadata=NO_LOG', '--expire-logs-days=0.5'],
  });
  await using bed = await CheckBed.open({ mysql: server, brokers: inject('brokers') });
  const report = await bed.check();
  expect(report.server?.version).toBe(DISGUISE);
  expect(report.findings.find(({ check }) => check === 'server-version')).toMatchObject({
    severity: 'good',
    fact: `MariaDB ${DISGUISE}`,
  });
  expect(told(report).filter((line) => !/sync-binlog|flush-log/.test(line))).toEqual([
    'error binlog-format: binlog_format is MIXED',
    'warning binlog-row-metadata: binlog_row_metadata is NO_LOG',
    'warning binlog-expiry: binlogs are kept for 12 h (binlog_expire_logs_seconds = 43200)',
    'unknown session-settings: binlog_format of sessions could not be looked at: MariaDB does not tell',
  ]);
  expect(report.canary?.afterMs).toBeGreaterThan(0);

  // Every GRANT that is given helps, and there are as many as the product has names for.
  const login = await bed.user();
  const first = await bed.check({ mysql: login });
  const fixes = first.findings.filter(({ area, severity }) => area === 'rights' && severity !== 'good');
  const rights = fixes
    .map(({ fix }) => /^GRANT ([A-Z ,]+) ON \*\.\* /.exec(fix!)?.[1])
    .filter((name) => name !== undefined);
  expect(rights).toEqual(['REPLICATION SLAVE', 'BINLOG MONITOR', 'BINLOG ADMIN', 'PROCESS']);
  const others = first.findings.filter(
    ({ severity, fix }) => severity === 'unknown' && fix?.startsWith('GRANT ') === true,
  );
  for (const { fix } of [...fixes, ...others]) await bed.sql(fix!);
  const second = await bed.check({ mysql: login });
  expect(second.findings.filter(({ area, severity }) => area === 'rights' && severity !== 'good')).toEqual([]);
  expect(told(second).filter((line) => line.startsWith('unknown'))).toHaveLength(1);
  expect(second.canary?.afterMs).toBeGreaterThan(0);
});

test('J1 J2 one that is too old, a node of a Galera cluster, and logs one schema only', async () => {
  await using server = await startMariadb({
    flags: ['--version=5.5.5-10.5.9-MariaDB', '--wsrep-on=ON', '--wsrep-provider=none', '--binlog-do-db=shop'],
  });
  await using bed = await CheckBed.open({ mysql: server, brokers: inject('brokers'), outboxSchema: 'app' });
  const session = await Session.open(bed.settings().mysql, SILENT);
  try {
    const { findings } = await checkServer(session, bed.settings());
    expect(told({ findings }, ['server-version', 'single-primary', 'binlog-filters'])).toEqual([
      'error server-version: the server is MariaDB 5.5.5-10.5.9-MariaDB',
      'error single-primary: the server is a node of a Galera cluster (wsrep_on)',
      'error binlog-filters: changes in schema app are not logged (binlog_do_db = shop)',
      `warning binlog-filters: changes in schema ${bed.database}, the relay's own, are not logged (binlog_do_db = shop)`,
    ]);
  } finally {
    session.destroy();
  }
});
