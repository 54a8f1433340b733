import { afterEach, expect, test, vi } from 'vitest';
import type { Clock } from '../../../src/model/clock.ts';
import { fault } from '../../../src/model/fault.ts';
import type { Source, TransactionGroup } from '../../../src/model/source.ts';
import { from, termOf } from './term-of.ts';

afterEach(() => vi.restoreAllMocks());

const group: TransactionGroup = {
  transactions: [],
  reached: from.position,
  last: null,
  skipped: [],
  worthSaving: false,
};

test('I3 a stream that is lost as soon as it is there is begun again less and less often; after a good one, soon', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(1);
  let nowMs = 0;
  const waits: number[] = [];
  const clock: Clock = {
    nowMs: () => nowMs,
    after(delayMs, call) {
      // Topics, and whether to pause, are asked for again so often: that goes on beside the streams, until the stop.
      if (delayMs === 30_000 || delayMs === 60_000) return () => undefined;
      waits.push(delayMs);
      nowMs += delayMs;
      queueMicrotask(call);
      return () => undefined;
    },
  };
  const stop = new AbortController();
  let streams = 0;
  const source: Source = {
    async *stream() {
      streams++;
      yield await Promise.resolve(group);
      if (streams === 9) nowMs += 6_000;
      if (streams === 11) stop.abort();
      throw fault('BINLOG_CONNECTION_LOST', 'retry', 'kicked');
    },
  };
  expect(await termOf(source, clock).run(stop.signal)).toEqual({ as: 'stopped' });
  expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 100, 200]);
});
