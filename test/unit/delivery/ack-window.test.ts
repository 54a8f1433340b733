import { expect, test } from 'vitest';
import { AckWindow } from '../../../src/delivery/ack-window.ts';
import { parseGtidSet } from '../../../src/delivery/gtid-set.ts';
import type { Landmark, Transaction } from '../../../src/model/source.ts';

const SID = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
const FOREIGN = 100_000;

const at = (offset: number) => ({ file: 'binlog.000001', offset });
const transaction = (gno: number, offset: number): Transaction => ({
  end: at(offset),
  beginOffset: offset - 100,
  gtid: { sid: SID, gno },
  commitMicros: gno * 1_000_000,
  skipped: [],
  rows: () => {
    throw new Error('nobody reads the rows here');
  },
  pieces: null,
  undecodable: null,
});

const reached = (offset: number, worthSaving: boolean, last: Landmark | null = null) => ({
  ...{ reached: at(offset), last, skipped: [], worthSaving },
});

function opened(window: AckWindow, transactions: readonly Transaction[]): void {
  for (const each of transactions) window.routed(window.open(each));
}

test('the last transaction before a checkpoint is known, whatever it was about', () => {
  const start = { position: at(4), gtidSet: null, lastBegin: null, lastGtid: null, lastCommitMicros: null };
  const window = new AckWindow(start, null);
  opened(window, [transaction(10, 1_000)]);
  const first = window.committable()!;
  expect(first).toMatchObject({ lastBegin: at(900), lastGtid: `${SID}:10`, lastCommitMicros: 10_000_000 });
  window.committed(first);
  const foreign = { end: at(1_500), beginOffset: 1_000, gtid: { sid: SID, gno: 11 }, commitMicros: 11 };
  expect(window.reached(reached(1_500, false, foreign))).toBe(false);
  expect(window.committable()).toBeNull();
  // A later file, and nothing in it: that transaction is still the last.
  const position = { file: 'binlog.000002', offset: 157 };
  expect(window.reached({ ...reached(157, true), reached: position })).toBe(true);
  const second = window.committable()!;
  expect(second).toMatchObject({ position, lastBegin: at(1_000), lastGtid: `${SID}:11`, lastCommitMicros: 11 });
  window.committed(second);
  window.reached({ ...reached(200, true), reached: { ...position, offset: 200 } });
  expect(window.committable()).toMatchObject({ lastBegin: at(1_000), lastGtid: `${SID}:11` });
});

test('a checkpoint that knows no transaction is followed by one that does, once', () => {
  const start = { position: at(4), gtidSet: null, lastBegin: null, lastGtid: null, lastCommitMicros: null };
  const window = new AckWindow(start, null);
  expect(window.reached(reached(4, false))).toBe(false);
  const own = { end: at(300), beginOffset: 4, gtid: null, commitMicros: 5 };
  expect(window.reached(reached(300, false, own))).toBe(true);
  const checkpoint = window.committable()!;
  expect(checkpoint).toMatchObject({ position: at(300), lastBegin: at(4), lastGtid: null, lastCommitMicros: 5 });
  window.committed(checkpoint);
  expect(window.reached(reached(600, false, { ...own, end: at(600), beginOffset: 300 }))).toBe(false);
  expect(window.committable()).toBeNull();
});

test('B7 no checkpoint lies past 4 GiB of a file; the next file has one', () => {
  const start = { position: at(4), gtidSet: null, lastBegin: null, lastGtid: null, lastCommitMicros: null };
  const window = new AckWindow(start, null);
  const end = 2 ** 32 + 1_000;
  opened(window, [transaction(1, 2 ** 32 - 1), transaction(2, end), transaction(3, end + 100)]);
  window.reached(reached(end + 200, true));
  const before = window.committable()!;
  expect(before).toMatchObject({ position: at(2 ** 32 - 1), lastGtid: `${SID}:1`, through: 1 });
  window.committed(before);
  expect(window.committable()).toBeNull();
  const position = { file: 'binlog.000002', offset: 4 };
  window.reached({ ...reached(4, true), reached: position });
  expect(window.committable()).toMatchObject({ position, lastBegin: at(end), lastGtid: `${SID}:3`, through: 3 });
});

test('foreign transactions behind a row that is stuck take no memory each, and are all in the set in the end', () => {
  const start = { position: at(4), gtidSet: `${SID}:1-9`, lastBegin: null, lastGtid: null, lastCommitMicros: null };
  const window = new AckWindow(start, parseGtidSet(start.gtidSet, 'mysql'));
  const first = window.open(transaction(10, 1_000));
  window.add(first);
  window.routed(first);
  for (let i = 0; i < FOREIGN; i++) {
    const run = { sid: SID, first: 11 + i, last: 11 + i };
    window.reached({ reached: at(1_001 + i), last: null, skipped: [run], worthSaving: false });
    if (i === FOREIGN / 2) expect(window.committable()).toBeNull();
  }
  window.settle(first, 1);
  const early = window.committable()!;
  expect(early.skippedRuns).toBeLessThan(10);
  expect(early).toMatchObject({ position: at(1_000 + FOREIGN), gtidSet: `${SID}:1-${10 + FOREIGN}` });

  // What comes while it is being saved is not lost with it.
  const skipped = [{ sid: SID, first: 11 + FOREIGN, last: 11 + FOREIGN }];
  window.reached({ reached: at(2_000 + FOREIGN), last: null, skipped, worthSaving: true });
  window.committed(early);
  expect(window.committable()).toMatchObject({ position: at(2_000 + FOREIGN), gtidSet: `${SID}:1-${11 + FOREIGN}` });
});
