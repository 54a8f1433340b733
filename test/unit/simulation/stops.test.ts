import { expect, test, vi } from 'vitest';
import { A, atEach, C, commit, delayed, FLOWING_MS, refused, runSchedule } from './run-schedule.ts';

vi.setConfig({ testTimeout: 60_000 });

/** Nothing waits any more, however slow the start was: what comes goes by the tail. */
const BUSY_MS = 300;
const BUSY = [commit(BUSY_MS, [A, C, delayed(A, 200)]), ...Array.from({ length: 12 }, () => commit(5, [A, C]))];

test.each([true, false])(
  'I3: told to stop at any moment, the next relay waiting (%s): nothing is sent twice, nothing overtakes',
  async (isAwaited) => {
    const outcomes = await atEach({ from: BUSY_MS - 10, to: BUSY_MS + 110, step: 4 }, (atMs) => ({
      delaysMs: [3, 1, 7],
      writes: BUSY,
      faults: [{ kind: 'stop', atMs, restMs: 10, isAwaited }],
    }));
    for (const { deliveries, says } of outcomes) {
      expect(says('"to":"stopped"')).toBe(true);
      expect(deliveries).toEqual(deliveries.map(() => 1));
    }
    // Rows were on their way.
    expect(outcomes.filter(({ swept }) => swept.length < BUSY.length).length).toBeGreaterThan(20);
  },
);

test('told to stop while no broker can be reached: it stops without a fault, and what waited is sent by the next', async () => {
  const { deliveries, says } = await runSchedule({
    writes: [commit(FLOWING_MS, [A, C]), commit(200, [A, C])],
    faults: [
      // Longer than a process that is told to stop is left alone.
      { kind: 'kafka', atMs: FLOWING_MS + 199, forMs: 20_000 },
      { kind: 'stop', atMs: FLOWING_MS + 220, restMs: 10, isAwaited: false },
    ],
  });
  expect(says('relay 1 says lane-held')).toBe(true);
  expect(says('relay 1 says relay-state {"from":"stopping","to":"stopped"}')).toBe(true);
  expect(deliveries).toEqual([1, 1, 1, 1]);
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
    // A buffer takes one of the first rows: they do not all find room at once.
    sizes: { batchRecords: 2, flushRows: 4, sweepRows: 4, poolBuffers: 12 },
    writes: [
      commit(BUSY_MS, [...Array.from({ length: 18 }, () => ({ ...A, valueBytes: 12_000 })), C]),
      // The job sends them some 200 ms behind the look that finds it.
      commit(870 - beforeMs, [A]),
      ...Array.from({ length: 60 }, () => commit(9, [A])),
    ],
    faults: [{ kind: 'republish', atMs: 500, aggregate: -1, cancelMs: null }],
  }));
  for (const { deliveries, lines, world } of outcomes) {
    expect(world.server.jobs.map(({ state }) => state)).toEqual(['done']);
    expect(deliveries).toEqual(deliveries.map(() => 1));
    const rows = lines
      .filter((line) => line.includes(' appended to orders/0: '))
      .flatMap((line) => [...line.matchAll(/\br(\d+)( \(job)?/g)])
      .map(([, row, job]) => ({ row: Number(row), isJob: (job as string | undefined) !== undefined }));
    const first = rows.findIndex(({ isJob }) => isJob);
    const again = rows.slice(first, rows.findLastIndex(({ isJob }) => isJob) + 1);
    expect(again.every(({ isJob }) => isJob)).toBe(true);
    expect(again.map(({ row }) => row)).toEqual(again.map(({ row }) => row).toSorted((a, b) => a - b));
    // Rows of the tail came before and behind.
    expect(first).toBeGreaterThan(2);
    expect(first + again.length).toBeLessThan(rows.length);
  }
});
