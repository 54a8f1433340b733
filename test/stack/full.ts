/** Length of a long test: a tenth in `npm test`, the whole in `npm run test:full`. */
export function full<T>(aTenth: T, whole: T): T {
  return process.env['CDC_RELAY_TEST_FULL'] === '1' ? whole : aTenth;
}

/** True in `npm test`, for `skipIf`: what a shorter test shows in a small way there runs in `npm run test:full` alone. */
export const isTenth = process.env['CDC_RELAY_TEST_FULL'] !== '1';
