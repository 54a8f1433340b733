import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { cacheDirectory, cached } from '../../stack/cache.ts';

let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'cdc-relay-cache-'));
  vi.stubEnv('XDG_CACHE_HOME', home);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(home, { recursive: true });
});

test('of several at once one fills it, and all get the same', async () => {
  const fill = vi.fn(async (directory: string) => {
    await writeFile(join(directory, 'half'), '');
    await new Promise((resolve) => setImmediate(resolve));
    await writeFile(join(directory, 'whole'), 'x');
  });
  const directories = await Promise.all([1, 2, 3].map(() => cached('thing', fill)));
  expect(fill).toHaveBeenCalledTimes(1);
  expect(new Set(directories)).toEqual(new Set([join(home, 'cdc-relay', 'thing')]));
  expect(await readFile(join(directories[0], 'whole'), 'utf8')).toBe('x');
  expect(await readdir(cacheDirectory())).toEqual(['thing']);
});

test('what fails leaves nothing, and the next attempt fills it', async () => {
  await expect(cached('thing', () => Promise.reject(new Error('no network')))).rejects.toThrow('no network');
  expect(await readdir(cacheDirectory())).toEqual([]);
  await cached('thing', (directory) => writeFile(join(directory, 'a'), ''));
  expect(await readdir(join(cacheDirectory(), 'thing'))).toEqual(['a']);
});

test('what a killed process left unfinished is removed by the next', async () => {
  const left = await cached('.unfinished-thing-abc', () => Promise.resolve());
  await cached('thing', () => Promise.resolve());
  await expect(readdir(left)).rejects.toThrow('ENOENT');
});
