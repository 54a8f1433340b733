import { expect, test } from 'vitest';
import { configurePage, documentedKeys, meanings } from './configure-page.ts';

test('docs/configure.md says what the schema has', async () => {
  await expect(await configurePage()).toMatchFileSnapshot('../../../docs/configure.md');
});

test('every key has a meaning in config/cdc-relay.example.yaml', () => {
  const meant = meanings();
  const keys = documentedKeys().map(({ pattern }) => pattern);
  expect(keys.length).toBeGreaterThan(90);
  expect(keys.filter((key) => !meant.has(key))).toEqual([]);
});
