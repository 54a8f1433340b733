import { expect, test } from 'vitest';
import { failedCommand, nowAndMost, shellWord, shown, utcText } from '../../../src/page/words.ts';

test.each([
  ['81', '81'],
  ['0195c1f8-9a6e-7b3c', '0195c1f8-9a6e-7b3c'],
  ['', "''"],
  ['a b', "'a b'"],
  ['-x', "'-x'"],
  ["it's; rm -rf $HOME `x`", `'it'\\''s; rm -rf $HOME \`x\`'`],
])('the id %j is one word of a shell: %s', (id, word) => {
  expect(shellWord(id)).toBe(word);
});

test('a command names the outbox where there are several, and takes no id for an option', () => {
  expect(failedCommand('retry', '81', null)).toBe('cdc-relay failed retry 81');
  expect(failedCommand('discard', '-1', 'app.outbox')).toBe("cdc-relay failed discard --outbox app.outbox -- '-1'");
});

test('times are UTC, with the date where it is another day', () => {
  const noon = Date.UTC(2026, 10, 30, 12, 0, 5);
  expect(utcText(noon, noon)).toBe('12:00:05 UTC');
  expect(utcText(noon, noon + 86_400_000)).toBe('2026-11-30 12:00:05 UTC');
});

test.each([
  [[], 'Nothing is known yet.'],
  [[null, null], 'Nothing is known.'],
  [[1, 5, null], 'not known now, 5 s at most'],
  [[1, 5, 2], '2 s now, 5 s at most'],
])('a chart of %j says: %s', (values, words) => {
  expect(nowAndMost(values, (value) => `${value} s`)).toBe(words);
});

test('what would turn around what follows is shown as an escape', () => {
  expect(shown('a\u202eb\u0007')).toBe('a\\u{202e}b\\x07');
});
