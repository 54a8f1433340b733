import fc from 'fast-check';
import { expect, test } from 'vitest';
import { identifierProblem, quoteIdentifier, quoteTable } from '../../../src/model/identifier.ts';

test('a name stands between backticks, its own backticks doubled', () => {
  expect(quoteIdentifier('outbox')).toBe('`outbox`');
  expect(quoteIdentifier('a`b')).toBe('`a``b`');
  expect(quoteIdentifier('`; DROP TABLE x; --')).toBe('```; DROP TABLE x; --`');
  expect(quoteTable('my.app', 'größe')).toBe('`my.app`.`größe`');
});

test.each(['', 'a\0b', 'x'.repeat(65), 'smile😀', 'lone\ud800', 'end '])('%j is refused', (name) => {
  expect(() => quoteIdentifier(name)).toThrow(RangeError);
  expect(identifierProblem(name)).not.toBeNull();
});

test('whatever is quoted reads back as itself and ends where the quote ends', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('`', 'a', ' ', ';', '\\', "'", 'é'), minLength: 1 }), (name) => {
      fc.pre(identifierProblem(name) === null);
      const quoted = quoteIdentifier(name);
      const inner = quoted.slice(1, -1);
      expect(inner.replaceAll('``', '')).not.toContain('`');
      expect(inner.replaceAll('``', '`')).toBe(name);
    }),
  );
});
