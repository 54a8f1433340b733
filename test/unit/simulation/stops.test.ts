import { expect, test, vi } from 'vitest';
import { A, atEach, C, commit, delayed, FLOWING_MS, refused, runSchedule } from './run-schedule.ts';

vi.setConfig({ testTimeout: 60_000 });

const BUSY = [commit(FLOWING_MS, [A, C, delayed(A, 200)]), ...Array.from({ length: 12 }, () => commit(5, [A, C]))];

test.each([true, false])(
  'I3: told to stop at any moment, the next relay waiting (%s): nothing is sent twice, nothing overtakes',
  async (isAwaited) => {
    const outcomes = await atEach({ from: 90, to: 190, step: 4 }, (atMs) => ({
      delaysMs: [3, 1, 7],
      writes: BUSY,
      faults: [{ kind: 'stop', atMs, restMs: 10, isAwaited }],
    }));
    for (const { deliveries, says } of outcomes) {
      expect(says('"to":"stopped"')).toBe(true);
      expect(deliveries).toEqual(deliveries.map(() => 1));
    }
  },
);

test('told to stop while no broker can be reached: it stops without a fault, and what waited is sent by the next', async () => {
  const { deliveries, says } = await runSchedule({
    writes: [commit(FLOWING_MS, [A, C])],
    faults: [
      { kind: 'kafka', atMs: FLOWING_MS, forMs: 6_000 },
      { kind: 'stop', atMs: FLOWING_MS + 20, restMs: 10, isAwaited: false },
    ],
  });
  expect(says('relay 1 says relay-state {"from":"stopping","to":"stopped"}')).toBe(true);
  expect(deliveries).toEqual([1, 1]);
});

test('rows are sent again while the log is purged and the term ends, whenever it is: none is left out of the job', async () => {
  const outcomes = await atEach({ from: 1_400, to: 1_600, step: 5 }, (atMs) => ({
    delaysMs: [0, 1, 1, 24],
    sizes: { batchRecords: 1, flushRows: 1, sweepRows: 1, poolBuffers: 4 },
    writes: [commit(0, [refused(A)])],
    faults: [
      { kind: 'republish', atMs: 182, aggregate: -1, cancelMs: null },
      { kind: 'lock', atMs: 950 },
      { kind: 'purge', atMs },
    ],
  }));
  for (const { world } of outcomes) {
    expect(world.server.jobs.map(({ state, progress }) => [state, progress])).toEqual([
      ['done', expect.objectContaining({ sent: 1 })],
    ]);
  }
});

test('I2: rows are sent again while more of their aggregate come: nobody sees them mixed', async () => {
  const outcomes = await atEach({ from: 0, to: 40, step: 4 }, (beforeMs) => ({
    delaysMs: [3, 1, 7],
    writes: [
      commit(FLOWING_MS, [A, A, C]),
      commit(900 - beforeMs, [A]),
      ...Array.from({ length: 20 }, () => commit(4, [A])),
    ],
    faults: [{ kind: 'republish', atMs: 500, aggregate: -1, cancelMs: null }],
  }));
  for (const { deliveries, order, world } of outcomes) {
    expect(world.server.jobs.map(({ state }) => state)).toEqual(['done']);
    expect(deliveries).toEqual(deliveries.map(() => 1));
    expect(order.filter((number) => number !== 2)).toEqual([0, 1, ...order.slice(3)]);
  }
});
