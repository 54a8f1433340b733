import { expect, inject, test } from 'vitest';
import { startMariadb } from '../../stack/stack.ts';
import { CheckBed, told } from './check-bed.ts';

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
  expect(second.findings.filter(({ severity }) => severity === 'unknown')).toEqual([]);
  expect(second.canary?.afterMs).toBeGreaterThan(0);
});
