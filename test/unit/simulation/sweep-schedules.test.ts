import { describe, expect, test, vi } from 'vitest';
import { A, atEach, C, commit, delayed, E, FLOWING_MS, refused, runSchedule } from './run-schedule.ts';

vi.setConfig({ testTimeout: 60_000 });

/** One row in a batch, one batch at a time: what lies behind another can be seen. */
const ONE_BY_ONE = { batchRecords: 1, flushRows: 4, sweepRows: 4, poolBuffers: 8 };

describe('the sweep', () => {
  test('S29, S30: rows visible and not yet routed are the tail’s', async () => {
    const outcomes = await atEach({ from: 0, to: 50, step: 5 }, (afterMs) => ({
      writes: [commit(FLOWING_MS + afterMs, [A]), commit(3, [A]), commit(3, [A, C])],
      faults: [{ kind: 'slow', atMs: FLOWING_MS, forMs: 600, call: 'stream', byMs: 250 }],
    }));
    for (const { swept, deliveries } of outcomes) {
      expect(swept).toEqual([]);
      expect(deliveries).toEqual([1, 1, 1, 1]);
    }
  });

  test('S31, M7: the log cannot be read any more with rows in lanes, and then it can', async () => {
    const outcomes = await atEach({ from: 101, to: 151, step: 2 }, (atMs) => ({
      sizes: ONE_BY_ONE,
      writes: [commit(FLOWING_MS, [A, A, C, A]), commit(20, [A]), commit(30, [A])],
      faults: [
        { kind: 'partition', atMs: 90, forMs: 200, topic: 0, partition: 0, how: 'refused' },
        { kind: 'log', atMs, forMs: 300 },
      ],
    }));
    for (const { order, deliveries } of outcomes) {
      expect(order.filter((number) => number !== 2)).toEqual([0, 1, 3, 4, 5]);
      expect(deliveries).toEqual([1, 1, 1, 1, 1, 1]);
    }
    expect(outcomes.every(({ says }) => says('sweep-only'))).toBe(true);
  });

  test('M1: the last pass of a hand-over waits in vain for the tail', async () => {
    const outcomes = await atEach({ from: 101, to: 131, step: 3 }, (atMs) => ({
      writes: [commit(FLOWING_MS, [A], { kind: 'undecodable' }), commit(12, [A]), commit(0, [A])],
      faults: [{ kind: 'slow', atMs, forMs: 200, call: 'stream', byMs: 7_000 }],
    }));
    for (const { order } of outcomes) expect(order).toEqual([0, 1, 2]);
  });

  test('M2: a row that is routed and held while the pass has it among its candidates', async () => {
    for (const call of ['look', 'log end', 'claim', 'barrier'] as const) {
      const outcomes = await atEach({ from: 1, to: 121, step: 6 }, (afterMs) => ({
        writes: [commit(FLOWING_MS, [refused(A), A]), commit(afterMs, [A]), commit(9, [A])],
        faults: [{ kind: 'slow', atMs: FLOWING_MS, forMs: 300, call, byMs: 30 }],
      }));
      for (const { order, deliveries } of outcomes) {
        expect(order).toEqual([0, 1, 2, 3]);
        expect(deliveries).toEqual([1, 1, 1, 1]);
      }
    }
  });

  test('M3: rows held for one scope, and a wider one that is parked meanwhile', async () => {
    const outcomes = await atEach({ from: 100, to: 240, step: 7 }, (atMs) => ({
      sizes: ONE_BY_ONE,
      writes: [commit(FLOWING_MS, [refused(A), A]), ...Array.from({ length: 8 }, () => commit(15, [A, E]))],
      faults: [
        { kind: 'slow', atMs: FLOWING_MS, forMs: 300, call: 'barrier', byMs: 40 },
        { kind: 'partition', atMs, forMs: 50, topic: 0, partition: 0, how: 'forbidden' },
      ],
    }));
    for (const { deliveries } of outcomes) expect(deliveries).toEqual(deliveries.map(() => 1));
  });

  test('M4: a row in a lane must be retried when a pass has claimed the next one', async () => {
    const outcomes = await atEach({ from: 20, to: 200, step: 10 }, (forMs) => ({
      sizes: ONE_BY_ONE,
      writes: [commit(FLOWING_MS, [E, refused(A)]), commit(1, [A], { kind: 'undecodable' }), commit(10, [A])],
      faults: [{ kind: 'partition', atMs: 90, forMs, topic: 0, partition: 0, how: 'refused' }],
    }));
    for (const { order } of outcomes) expect(order.filter((number) => number > 0)).toEqual([1, 2, 3]);
  });

  test('M5: the application holds the first of two rows', async () => {
    const { order, swept } = await runSchedule({
      writes: [commit(FLOWING_MS, [A], { kind: 'undecodable' }), commit(0, [A], { kind: 'undecodable' })],
      faults: [{ kind: 'hold', atMs: FLOWING_MS + 1, forMs: 500, row: 0 }],
    });
    expect(order).toEqual([0, 1]);
    expect(swept).toContain(0);
  });

  test('M6: a round that was dropped begins where it began', async () => {
    const { order } = await runSchedule({
      sizes: { ...ONE_BY_ONE, sweepRows: 1 },
      writes: [commit(FLOWING_MS, [delayed(A, 1_100)]), commit(20, [delayed(A, 1_100)]), commit(1_000, [C])],
      faults: [{ kind: 'slow', atMs: 1_100, forMs: 200, call: 'stream', byMs: 6_000 }],
    });
    expect(order.filter((number) => number < 2)).toEqual([0, 1]);
  });
});
