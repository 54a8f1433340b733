import { expect, test } from 'vitest';
import { AckWindow } from '../../../src/delivery/ack-window.ts';
import { parseGtidSet } from '../../../src/delivery/gtid-set.ts';
import type { Transaction } from '../../../src/model/source.ts';

const SID = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
const FOREIGN = 100_000;

const at = (offset: number) => ({ file: 'binlog.000001', offset });
const transaction = (gno: number, offset: number): Transaction => ({
  end: at(offset),
  gtid: { sid: SID, gno },
  commitMicros: gno * 1_000_000,
  skipped: [],
  rows: () => {
    throw new Error('nobody reads the rows here');
  },
  pieces: null,
  undecodable: null,
});

test('foreign transactions behind a row that is stuck take no memory each, and are all in the set in the end', () => {
  const start = { position: at(4), gtidSet: `${SID}:1-9`, lastGtid: null, lastCommitMicros: null };
  const window = new AckWindow(start, parseGtidSet(start.gtidSet, 'mysql'));
  const first = window.open(transaction(10, 1_000));
  window.add(first);
  window.routed(first);
  for (let i = 0; i < FOREIGN; i++) {
    const run = { sid: SID, first: 11 + i, last: 11 + i };
    window.reached(at(1_001 + i), [run], false);
    if (i === FOREIGN / 2) expect(window.committable()).toBeNull();
  }
  window.settle(first, 1);
  const early = window.committable()!;
  expect(early.skippedRuns).toBeLessThan(10);
  expect(early).toMatchObject({ position: at(1_000 + FOREIGN), gtidSet: `${SID}:1-${10 + FOREIGN}` });

  // What comes while it is being saved is not lost with it.
  window.reached(at(2_000 + FOREIGN), [{ sid: SID, first: 11 + FOREIGN, last: 11 + FOREIGN }], true);
  window.committed(early);
  expect(window.committable()).toMatchObject({ position: at(2_000 + FOREIGN), gtidSet: `${SID}:1-${11 + FOREIGN}` });
});
