import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const at = (path: string): string => new URL(`../../../${path}`, import.meta.url).pathname;
const sources = (directory: string): string =>
  readdirSync(at(directory))
    .map((name) => readFileSync(at(`${directory}/${name}`), 'utf8'))
    .join('\n');

/** Those whose names are made of the settings that they are about. */
const MADE = ['mysql wait-timeout', 'mysql net-write-timeout'].concat(
  ['sync-binlog', 'innodb-flush-log-at-trx-commit'].map((check) => `binlog ${check}`),
);
const written = [...sources('src/check').matchAll(/findingsOf\('(\w+)', '([\w-]+)'\)/g)];
const checks = [...new Set([...written.map(([, area, check]) => `${area} ${check}`), ...MADE])].sort();

test('docs/check.md names every check', () => {
  const rows = [...readFileSync(at('docs/check.md'), 'utf8').matchAll(/^\| `(\w+)` +\| (`[a-z].*?) +\|/gm)];
  const named = rows.flatMap(([, area, cell]) =>
    [...cell.matchAll(/`([\w-]+)`/g)].map(([, check]) => `${area} ${check}`),
  );
  expect(named.sort()).toEqual(checks);
});

test('every check has told of something on a real server', () => {
  const tests = sources('test/integration/check');
  const untold = checks.filter((each) => !new RegExp(`(error|warning|unknown) ${each.split(' ')[1]}: `).test(tests));
  expect(untold).toEqual([]);
});
