import { expect, test, vi } from 'vitest';
import { A, atEach, C, commit, FLOWING_MS, P, runSchedule } from './run-schedule.ts';

vi.setConfig({ testTimeout: 60_000 });

test('kept rows: no broker can be reached for long when their topic is met first: they wait, and nothing halts', async () => {
  const { order, deliveries, says } = await runSchedule({
    retire: 'keep',
    writes: [commit(FLOWING_MS, [A, P]), commit(20, [A, C])],
    faults: [{ kind: 'kafka', atMs: FLOWING_MS - 1, forMs: 30_000 }],
  });
  expect(says('"to":"halted"')).toBe(false);
  expect(order.filter((number) => number !== 1 && number !== 3)).toEqual([0, 2]);
  expect(deliveries).toEqual([1, 1, 1, 1]);
});

test('S12: the leader dies with kept rows on their way, whenever it is: none is left out, none overtakes', async () => {
  const outcomes = await atEach({ from: FLOWING_MS, to: FLOWING_MS + 60, step: 2 }, (atMs) => ({
    retire: 'keep',
    delaysMs: [3, 1, 7],
    writes: [commit(FLOWING_MS, [A, C]), ...Array.from({ length: 8 }, () => commit(5, [A, C]))],
    faults: [{ kind: 'crash', atMs, downMs: 0 }],
  }));
  for (const { order } of outcomes) {
    const ofA = order.filter((number) => number % 2 === 0);
    expect(ofA).toEqual(ofA.toSorted((a, b) => a - b));
    expect(order).toHaveLength(18);
  }
});
