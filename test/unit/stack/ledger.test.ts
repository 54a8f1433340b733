import { expect, test } from 'vitest';
import type { ExpectedRow } from '../../stack/expected-rows.ts';
import { Ledger, type RowKind, type WrittenTransaction } from '../../stack/ledger.ts';

function transaction(committingMs: number, committedMs: number): WrittenTransaction {
  return { committingMs, committedMs, fate: 'committed' };
}

function ledger(...rows: [eventId: string, kind: RowKind, transaction: WrittenTransaction][]): Ledger {
  const made = new Ledger();
  for (const row of rows) made.row(...row);
  return made;
}

const row = (id: number, eventId: string): ExpectedRow => ({
  ...{ id: String(id), eventId, topic: 't', key: Buffer.from('a'), value: null, timestampMs: null, headers: [] },
});

/** Event ids of the rows that have been passed, of rows delivered in this order. */
function passed(ledger: Ledger, ...rows: [id: number, eventId: string][]): string[] {
  const order = ledger.laneOrder();
  return rows.filter(([id, eventId]) => order.passed(row(id, eventId)) !== null).map(([, eventId]) => eventId);
}

test('a row must be first when commits and ids both say so', () => {
  const both = ledger(['a', 'plain', transaction(1, 2)], ['b', 'plain', transaction(2, 3)]);
  expect(passed(both, [10, 'b'], [9, 'a'])).toEqual(['a']);
  expect(passed(both, [9, 'a'], [10, 'b'])).toEqual([]);
  expect(passed(both, [9, 'b'], [10, 'a'])).toEqual([]);
  expect(passed(both, [10, 'a'], [9, 'b'])).toEqual([]);
});

test('a row is passed by any of those before it, not only by the last', () => {
  const three = ledger(
    ['a', 'plain', transaction(1, 2)],
    ['b', 'plain', transaction(3, 4)],
    ['c', 'plain', transaction(0, 9)],
  );
  expect(passed(three, [2, 'b'], [3, 'c'], [1, 'a'])).toEqual(['a']);
});

test('nothing is known of commits that overlap, or whose answer never came', () => {
  const overlapping = ledger(['a', 'plain', transaction(1, 5)], ['b', 'plain', transaction(4, 6)]);
  expect(passed(overlapping, [2, 'b'], [1, 'a'])).toEqual([]);
  const unanswered = ledger(['a', 'plain', transaction(1, Infinity)], ['b', 'plain', transaction(4, 6)]);
  expect(passed(unanswered, [2, 'b'], [1, 'a'])).toEqual([]);
});

test('rows of one transaction go by id', () => {
  const one = transaction(1, Infinity);
  const some = ledger(['a', 'plain', one], ['b', 'plain', one], ['c', 'plain', transaction(8, 9)]);
  expect(passed(some, [2, 'b'], [3, 'c'], [1, 'a'])).toEqual(['a']);
});

test('a delayed row passes and is passed', () => {
  const some = ledger(
    ['a', 'plain', transaction(1, 2)],
    ['b', 'delayed', transaction(3, 4)],
    ['c', 'plain', transaction(5, 6)],
  );
  expect(passed(some, [3, 'c'], [2, 'b'])).toEqual([]);
  expect(passed(some, [2, 'b'], [1, 'a'])).toEqual([]);
  expect(passed(some, [3, 'c'], [2, 'b'], [1, 'a'])).toEqual(['a']);
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
