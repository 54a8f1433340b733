import { expect, test } from 'vitest';
import type { Clock } from '../../../src/model/clock.ts';
import { fault } from '../../../src/model/fault.ts';
import type { Position } from '../../../src/model/position.ts';
import type { Source, TransactionGroup } from '../../../src/model/source.ts';
import { from, termOf } from './term-of.ts';

// A real server writes no log that cannot be read.

const atOnce: Clock = {
  nowMs: () => 0,
  after(_, call) {
    queueMicrotask(call);
    return () => undefined;
  },
};

function reached(position: Position): TransactionGroup {
  return { transactions: [], reached: position, last: null, skipped: [], worthSaving: false };
}

test('S24 the same place cannot be read twice: the relay halts there instead of trying for ever', async () => {
  let streams = 0;
  const source: Source = {
    // eslint-disable-next-line require-yield -- nothing before the place can be read either
    async *stream() {
      streams++;
      throw await Promise.resolve(fault('BINLOG_DECODE', 'retry', 'cannot read the event at binlog.000001:4'));
    },
  };
  const end = await termOf(source, atOnce).run(new AbortController().signal);
  expect(end).toMatchObject({ as: 'halted', fault: { code: 'BINLOG_DECODE', disposition: 'halt' } });
  expect(streams).toBe(2);
});

test('S24 an accident of the wire is read again, and one at another place too', async () => {
  const stop = new AbortController();
  let streams = 0;
  const source: Source = {
    async *stream() {
      streams++;
      if (streams === 4) stop.abort();
      yield await Promise.resolve(reached({ file: from.position.file, offset: streams * 100 }));
      throw fault('BINLOG_DECODE', 'retry', 'cannot read an event');
    },
  };
  expect(await termOf(source, atOnce).run(stop.signal)).toEqual({ as: 'stopped' });
  expect(streams).toBe(4);
});
