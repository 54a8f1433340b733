import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backOffMs } from '../../../src/delivery/back-off.ts';

test('back-off is spread over the whole interval, doubles, is capped and is never zero', () => {
  const backOff = { baseMs: 100, capMs: 5_000 };
  expect(backOffMs(backOff, 1, 0.5)).toBe(50);
  expect(backOffMs(backOff, 3, 0.5)).toBe(200);
  expect(backOffMs(backOff, 50, 0.999)).toBeLessThanOrEqual(5_000);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (attempt, random) => {
        const ms = backOffMs(backOff, attempt, random);
        return ms >= 1 && ms <= 5_000;
      },
    ),
  );
});
