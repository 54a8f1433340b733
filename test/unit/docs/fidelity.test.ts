import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');

/** The lines of the tables, without their heads: the outcome, and the titles of the tests. */
const lines = readFileSync(join(ROOT, 'docs/fidelity.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\|.*[a-z]/.test(line))
  .map((line) => line.split('|').slice(1, -1))
  .filter((cells) => cells[2]?.trim() !== 'Tests')
  .map(([what, , tests]) => ({
    what: what.trim(),
    titles: [...tests.matchAll(/`([^`]+)`/g)].map(([, title]) => title),
  }));

const sources = globSync('test/{unit,integration,fault,e2e}/**/*.test.ts', { cwd: ROOT })
  .filter((file) => !file.includes('unit/docs/'))
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n');

test('there are lines', () => {
  expect(lines.length).toBeGreaterThan(35);
});

test.each(lines)('docs/fidelity.md, $what: its tests are there', ({ titles }) => {
  expect(titles).not.toEqual([]);
  const quoted = (title: string) => ["'", '"', '`'].some((mark) => sources.includes(`${mark}${title}${mark}`));
  expect(titles.filter((title) => !quoted(title))).toEqual([]);
});
