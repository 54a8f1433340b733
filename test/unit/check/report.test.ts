import { expect, test } from 'vitest';
import type { CheckReport } from '../../../src/check/check.ts';
import { findingsOf, sorted } from '../../../src/check/finding.ts';
import { checkText } from '../../../src/commands/check-report.ts';

const findings = sorted([
  findingsOf('topics', 'topic').good('topic orders has 6 partitions'),
  findingsOf('topics', 'topic').error({
    fact: 'topic evil\u001b[31m does not exist',
    effect: 'its rows will be parked',
  }),
  findingsOf('mysql', 'long-transactions').unknown({
    fact: 'not looked for: that needs PROCESS',
    fix: 'GRANT PROCESS',
  }),
  findingsOf('rows', 'start').error({
    fact: 'start is not set',
    effect: 'run refuses',
    fix: 'start: head\nstart: pending',
  }),
  findingsOf('binlog', 'sync-binlog').warning({
    fact: 'sync_binlog is 0',
    effect: 'after a crash',
    fix: 'SET PERSIST',
  }),
]);

const report: CheckReport = {
  version: 1,
  name: 'orders',
  server: { address: 'db1:3306', uuid: '3f0c', version: '8.4.3', account: 'relay@%' },
  kafka: true,
  counts: { errors: 2, warnings: 1, unknown: 1, good: 1 },
  findings,
  canary: { writtenAt: '2026-11-29T10:02:11.482Z', afterMs: 3.14 },
};

test('the verdict, the worst first, the canary; what is good when asked for; nothing that a terminal obeys', () => {
  expect(checkText(report, false).split('\n')).toEqual([
    'cdc-relay check: 2 errors, 1 warning, 1 not checked, 1 good   (--all shows the good ones)',
    'orders on db1:3306 (8.4.3) as relay@%',
    'ERROR  start is not set',
    '       why: run refuses',
    '       fix: start: head',
    '            start: pending',
    'ERROR  topic evil\\x1b[31m does not exist',
    '       why: its rows will be parked',
    'WARN   sync_binlog is 0',
    '       why: after a crash',
    '       fix: SET PERSIST',
    'SKIP   not looked for: that needs PROCESS',
    '       fix: GRANT PROCESS',
    'canary OK: a row written at 10:02:11.482 came by after 3.1 ms',
  ]);
  expect(checkText(report, true)).toContain('\ngood   topic orders has 6 partitions\n');
});
