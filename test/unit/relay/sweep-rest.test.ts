import { expect, test } from 'vitest';
import { Scopes } from '../../../src/delivery/scopes.ts';
import type { Clock } from '../../../src/model/clock.ts';
import { newRelayStats } from '../../../src/model/stats.ts';
import { Sweeper, type SweeperDeps } from '../../../src/relay/sweeper.ts';
import { Turns } from '../../../src/relay/turns.ts';

/** A sweeper that finds nothing, each look of which takes as long as the test says; the times at which it looks. */
async function looks(lookMs: (n: number) => number, throughMs: number, dueMs: number | null = null): Promise<number[]> {
  let nowMs = 0;
  const stop = new AbortController();
  const clock: Clock = {
    nowMs: () => nowMs,
    after(delayMs, call) {
      nowMs += delayMs;
      if (nowMs > throughMs) stop.abort();
      queueMicrotask(call);
      return () => undefined;
    },
  };
  const at: number[] = [];
  const store = {
    dueRows() {
      at.push(nowMs);
      nowMs += lookMs(at.length);
      return Promise.resolve({ rows: [], next: null });
    },
    nextDueMs: () => Promise.resolve(dueMs),
  };
  const pass = {
    settleClaims: () => Promise.resolve(),
    uncovered: () => Promise.resolve({ settled: 0, isShort: false }),
  };
  const deps = {
    ...{
      store,
      pass,
      clock,
      heldClaims: { nextTryMs: Infinity },
      scopes: new Scopes({ baseMs: 1, capMs: 1 }),
      turns: new Turns(),
      keeps: [false],
    },
    settings: { mode: 'tail', intervalMs: 1_000, batchRows: 100 },
    stats: newRelayStats(),
    isTailing: () => true,
  };
  // What is not there is not asked for while nothing is parked and nothing found.
  await new Sweeper(deps as unknown as SweeperDeps).run(stop.signal);
  return at;
}

const rests = (at: readonly number[]): number[] => at.slice(1).map((ms, n) => ms - at[n]);

test('S28 looks that an old snapshot makes slow take a hundredth of the time at most', async () => {
  const slow = await looks((n) => Math.min(20 * n, 200), 600_000);
  expect(rests(slow).at(-1)).toBeGreaterThanOrEqual(200 * 100);
  expect(Math.min(...rests(slow))).toBeGreaterThanOrEqual(1_000);
});

test('S28 a row that becomes due does not make slow looks more frequent', async () => {
  expect(Math.min(...rests(await looks(() => 50, 60_000, 10)).slice(3))).toBeGreaterThanOrEqual(50 * 100);
});

test('S28 quick looks come with every interval, and one that was slow by accident holds nothing up', async () => {
  expect(rests(await looks(() => 1, 10_000))).toEqual(Array<number>(9).fill(1_001));
  const after = rests(await looks((n) => (n === 4 ? 60 : 1), 10_000));
  expect(Math.max(...after)).toBeLessThan(1_100);
});
