import { expect, test } from 'vitest';
import { History, STEP_MS } from '../../../src/observability/history.ts';

const DATE_MS = Date.UTC(2026, 0, 1);

/** A history that is told something every second. */
class Told {
  readonly history = new History();
  nowMs = 50_000;
  rows = 1_000;

  seconds(count: number, rowsEach: number, lagMs: number | null = 0): void {
    for (let second = 0; second < count; second++) {
      this.nowMs += 1_000;
      this.rows += rowsEach;
      this.history.note(this.nowMs, { rows: this.rows, lagMs, state: 'FLOWING' }, DATE_MS + this.nowMs);
    }
  }
}

test('a point for each step: rows of that step, the greatest lag in it, the state at its end', () => {
  const told = new Told();
  told.seconds(1, 0);
  told.seconds(3, 10, 200);
  told.seconds(1, 10, 9_000);
  told.seconds(1, 10, 100);
  told.history.note(60_999, { rows: told.rows + 7, lagMs: null, state: 'STUCK' }, DATE_MS + 60_999);
  expect(told.history.points()).toEqual([{ atMs: DATE_MS + 56_000, rows: 50, lagMs: 9_000, state: 'FLOWING' }]);
  told.history.note(61_000, { rows: told.rows + 7, lagMs: null, state: 'STUCK' }, DATE_MS + 61_000);
  expect(told.history.points().at(-1)).toEqual({ atMs: DATE_MS + 61_000, rows: 7, lagMs: null, state: 'STUCK' });
});

test('of 15 minutes, and no more; rows that were there at first count nowhere', () => {
  const told = new Told();
  told.seconds(1 + 3_600, 3);
  const points = told.history.points();
  expect(points.length).toBe((15 * 60_000) / STEP_MS);
  expect(points[0].atMs).toBe(DATE_MS + told.nowMs - 15 * 60_000 + STEP_MS);
  expect(points.every(({ rows }) => rows === 15)).toBe(true);
});

test('a time without looks has no points; what was acknowledged in it counts once', () => {
  const told = new Told();
  told.seconds(6, 1);
  told.nowMs += 59_000;
  told.seconds(1, 100);
  expect(told.history.points().map(({ rows }) => rows)).toEqual([5, 100]);
});

test('the rate now is of the last seconds, the other of 15 minutes at most', () => {
  const told = new Told();
  expect(told.history.rate()).toEqual({ nowRowsPerSecond: 0, over15MinRowsPerSecond: 0 });
  told.seconds(1, 500);
  expect(told.history.rate()).toEqual({ nowRowsPerSecond: 0, over15MinRowsPerSecond: 0 });
  told.seconds(60, 100);
  expect(told.history.rate()).toEqual({ nowRowsPerSecond: 100, over15MinRowsPerSecond: 100 });
  told.seconds(60, 0);
  expect(told.history.rate()).toEqual({ nowRowsPerSecond: 0, over15MinRowsPerSecond: 50 });
  told.seconds(3_600, 0);
  expect(told.history.rate().over15MinRowsPerSecond).toBe(0);
});
