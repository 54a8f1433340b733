import { expect, test, vi } from 'vitest';
import { CALLS } from './plan.ts';
import { A, atEach, C, commit, delayed, FLOWING_MS, runSchedule } from './run-schedule.ts';

vi.setConfig({ testTimeout: 60_000 });

/** The relay asks about once a second. */
const ASKED_MS = 1_000;

test('I3: paused with rows on their way, whenever it is: nothing is sent twice, nothing overtakes', async () => {
  const outcomes = await atEach({ from: 0, to: 40, step: 4 }, (beforeMs) => ({
    writes: [commit(ASKED_MS - beforeMs, [A, C]), ...Array.from({ length: 20 }, () => commit(3, [A]))],
    faults: [{ kind: 'pause', atMs: 500, forMs: 3_000 }],
  }));
  for (const { order, deliveries, says } of outcomes) {
    expect(says('"to":"paused"')).toBe(true);
    expect(deliveries).toEqual(deliveries.map(() => 1));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  }
});

test.each(['plain', 'undecodable'] as const)(
  'I3: rows that the application holds are waited for (%s): the next term does not send them again',
  async (kind) => {
    const outcomes = await atEach({ from: 2, to: 20, step: 2 }, (afterMs) => ({
      writes: [commit(FLOWING_MS, [A, A, C], { kind })],
      faults: [
        { kind: 'hold', atMs: FLOWING_MS + afterMs, forMs: 4_000, row: 1 },
        { kind: 'pause', atMs: 500, forMs: 6_000 },
      ],
    }));
    for (const { deliveries } of outcomes) expect(deliveries).toEqual([1, 1, 1]);
    expect(outcomes.some(({ world }) => world.watch.swept.size > 0)).toBe(kind === 'undecodable');
  },
);

test('I3: a row that failed is held by the application: that it failed is written before the relay rests', async () => {
  const failing = { ...A, poison: { code: 'MESSAGE_TOO_LARGE', times: Infinity } } as const;
  const outcomes = await atEach({ from: 2, to: 40, step: 2 }, (afterMs) => ({
    hasDeadLetters: true,
    writes: [commit(FLOWING_MS, [failing, C])],
    faults: [
      { kind: 'hold', atMs: FLOWING_MS + afterMs, forMs: 4_000, row: 0 },
      { kind: 'pause', atMs: 500, forMs: 6_000 },
    ],
  }));
  for (const { lines } of outcomes) expect(lines.filter((line) => line.includes('appended to dead'))).toHaveLength(1);
});

const ANSWERED_BY_MYSQL = CALLS.filter((call) => !['topic', 'stream', 'read rows'].includes(call));

test.each(ANSWERED_BY_MYSQL)(
  'MySQL does not answer (%s) just as the relay comes to rest: it rests all the same, and goes on',
  async (call) => {
    // With slow answers one of them is mostly awaited when the relay asks whether it is to rest.
    const outcomes = await atEach({ from: 0, to: 1_500, step: 10 }, (atMs) => ({
      delaysMs: [44, 30],
      writes: [commit(0, [A, delayed(C, 200)]), commit(300, [A, C])],
      faults: [
        { kind: 'pause', atMs, forMs: 4_000 },
        { kind: 'mysql', atMs: FLOWING_MS, forMs: 2_000, call, done: false },
      ],
    }));
    for (const { says } of outcomes) {
      expect(says('"to":"halted"')).toBe(false);
      expect(says('"to":"paused"')).toBe(true);
    }
  },
);

test('S12: the leader dies while it is paused: the next one is paused too, then goes on where it was', async () => {
  const { order, deliveries, lines } = await runSchedule({
    writes: [commit(FLOWING_MS, [A]), commit(2_000, [A, C]), commit(500, [A])],
    faults: [
      { kind: 'pause', atMs: 500, forMs: 5_000 },
      { kind: 'crash', atMs: 3_000, downMs: 0 },
    ],
  });
  expect(order).toEqual([0, 1, 2, 3]);
  expect(deliveries).toEqual([1, 1, 1, 1]);
  expect(lines.filter((line) => line.includes('"to":"paused"')).map((line) => /relay \d/.exec(line)?.[0])).toEqual([
    'relay 1',
    'relay 2',
  ]);
  // It did not begin before.
  const states = lines.filter((line) => line.includes('relay 2 says relay-state'));
  expect(states.map((line) => /"to":"(\w+)"/.exec(line)?.[1]).slice(0, 3)).toEqual(['leading', 'paused', 'leading']);
});
