import { expect, test } from 'vitest';
import { type LimitState, nextState, reasonOf } from '../../../src/limits/limit-state.ts';

const limits = { pendingRows: 100, pendingAgeMs: 1_000, policy: 'refuse' } as const;
const start: LimitState = {
  outbox: 'app.outbox',
  pendingRows: null,
  oldestAgeMs: null,
  overRows: false,
  overAge: false,
};

/** What the rows were, one look after the other, and whether the limit counts as passed behind each. */
test.each<[number[], boolean[]]>([
  [
    [0, 100, 101, 81, 80, 100, 101],
    [false, false, true, true, false, false, true],
  ],
  [
    [500, 0],
    [true, false],
  ],
])('rows: %j', (counts, expected) => {
  let state = start;
  const over = counts.map((pendingRows) => {
    state = nextState(state, limits, { pendingRows, oldestAgeMs: null });
    return state.overRows;
  });
  expect(over).toEqual(expected);
});

test('age: nothing that waits is nothing too old', () => {
  const old = nextState(start, limits, { pendingRows: 1, oldestAgeMs: 1_001 });
  expect(old).toMatchObject({ overRows: false, overAge: true });
  expect(nextState(old, limits, { pendingRows: 1, oldestAgeMs: 801 }).overAge).toBe(true);
  expect(nextState(old, limits, { pendingRows: 0, oldestAgeMs: null }).overAge).toBe(false);
});

test('a limit that is not set is never passed', () => {
  const none = { pendingRows: null, pendingAgeMs: null, policy: 'none' } as const;
  expect(nextState(start, none, { pendingRows: 1e9, oldestAgeMs: 1e9 })).toMatchObject({
    overRows: false,
    overAge: false,
  });
});

test('the reason names the limits that are passed', () => {
  expect(reasonOf(start, limits)).toBeNull();
  expect(reasonOf({ ...start, overRows: true, overAge: true }, { ...limits, pendingRows: 100_000 })).toBe(
    'more than 100,000 rows are pending; a row is pending for more than 1,000 ms',
  );
});
