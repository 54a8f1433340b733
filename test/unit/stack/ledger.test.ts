import { expect, test } from 'vitest';
import { Ledger, type RowKind, type WrittenTransaction } from '../../stack/ledger.ts';

function transaction(committingMs: number, committedMs: number): WrittenTransaction {
  return { committingMs, committedMs, fate: 'committed' };
}

function ledger(...rows: [eventId: string, kind: RowKind, transaction: WrittenTransaction][]): Ledger {
  const made = new Ledger();
  for (const row of rows) made.row(...row);
  return made;
}

const row = (id: number, eventId: string) => ({ id: String(id), eventId });

test('a row must be first when commits and ids both say so', () => {
  const both = ledger(['a', 'plain', transaction(1, 2)], ['b', 'plain', transaction(2, 3)]);
  expect(both.mustPrecede(row(9, 'a'), row(10, 'b'))).toBe(true);
  expect(both.mustPrecede(row(10, 'b'), row(9, 'a'))).toBe(false);
  expect(both.mustPrecede(row(10, 'a'), row(9, 'b'))).toBe(false);
});

test('nothing is known of commits that overlap, or whose answer never came', () => {
  const overlapping = ledger(['a', 'plain', transaction(1, 5)], ['b', 'plain', transaction(4, 6)]);
  expect(overlapping.mustPrecede(row(1, 'a'), row(2, 'b'))).toBe(false);
  const unanswered = ledger(['a', 'plain', transaction(1, Infinity)], ['b', 'plain', transaction(4, 6)]);
  expect(unanswered.mustPrecede(row(1, 'a'), row(2, 'b'))).toBe(false);
});

test('rows of one transaction go by id', () => {
  const one = transaction(1, Infinity);
  expect(ledger(['a', 'plain', one], ['b', 'plain', one]).mustPrecede(row(1, 'a'), row(2, 'b'))).toBe(true);
});

test('a delayed row passes and is passed', () => {
  const some = ledger(
    ['a', 'plain', transaction(1, 2)],
    ['b', 'delayed', transaction(3, 4)],
    [...(['c', 'plain', transaction(5, 6)] as const)],
  );
  expect(some.mustPrecede(row(1, 'a'), row(2, 'b'))).toBe(false);
  expect(some.mustPrecede(row(2, 'b'), row(3, 'c'))).toBe(false);
  expect(some.mustPrecede(row(1, 'a'), row(3, 'c'))).toBe(true);
});

test('a commit that fails leaves the fate of its transaction unknown', async () => {
  const some = new Ledger();
  const [good, bad] = [some.begin(), some.begin()];
  some.row('a', 'plain', good);
  some.row('b', 'poison', bad);
  await some.commit(good, () => Promise.resolve());
  await expect(some.commit(bad, () => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
  expect(good.committingMs).toBeLessThanOrEqual(good.committedMs);
  expect(bad).toMatchObject({ fate: 'unknown', committedMs: Infinity });
  expect(some.count()).toEqual({ plain: 1, delayed: 0, poison: 0, rolledBack: 0, unknown: 1 });
});
