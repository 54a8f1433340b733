import { expect, test } from 'vitest';
import { neededRights } from '../../../src/check/needed-rights.ts';
import { ConfigDir, settings, VALID } from '../config/config-dir.ts';
import { readPages } from './pages.ts';

test('docs/mysql.md names every right that check asks for', () => {
  using dir = new ConfigDir();
  const limits = 'limits: {pendingRows: 5, policy: refuse}';
  const marked = neededRights(settings(dir.load(`${VALID}    ${limits}\n`)));
  const deleted = neededRights(settings(dir.load(`${VALID}    retire: delete\n`)));
  const { text } = readPages().find(({ path }) => path === 'docs/mysql.md')!;
  const cells = text.split('\n').flatMap((line) => /^\| (`[A-Z].*?) +\|/.exec(line)?.[1] ?? []);
  const missing = [...marked, ...deleted].flatMap(({ table, privileges }) => {
    const named = table === 'outbox' ? 'on the outbox' : `\`${table}\``;
    const said = cells.filter((cell) => cell.includes(named));
    return privileges.filter((privilege) => !said.some((cell) => saysFor(cell, named).includes(privilege)));
  });
  expect(cells.length).toBeGreaterThan(8);
  expect(missing).toEqual([]);
});

/** The privileges of a cell that stand before the name: `` `INSERT` on `a`, `SELECT` on `b` ``. */
function saysFor(cell: string, named: string): string {
  const before = cell.slice(0, cell.indexOf(named));
  return before.slice(Math.max(0, before.lastIndexOf('`, `SELECT`'), before.lastIndexOf('`, `INSERT`')));
}
