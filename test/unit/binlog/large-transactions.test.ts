import { describe, expect, it } from 'vitest';
import type { LargeTransaction } from '../../../src/binlog/large-transaction.ts';
import type { LogReader } from '../../../src/binlog/log-reader.ts';
import type { Fault } from '../../../src/model/fault.ts';
import { LogWriter } from './log-writer.ts';
import { idsOf, OUTBOX, outboxRow, readerOf, type ReaderParts } from './outbox-fixture.ts';

const BOUND = { maxTransactionBytes: 5000 };
const long = { value: 'x'.repeat(1000) };

interface FirstRead {
  readonly ids: number[][];
  readonly reached: number;
  readonly large: LargeTransaction | null;
  readonly undecodable: (Fault | null)[];
}

function firstRead(log: LogWriter, parts: ReaderParts = BOUND): FirstRead {
  const reader = readerOf(parts);
  for (const event of log.events) {
    if (reader.large === null) reader.event(event, 0, event.length);
  }
  const { large } = reader;
  const group = reader.seal();
  const transactions = group?.transactions ?? [];
  const undecodable = transactions.map((each) => each.undecodable);
  return { ids: transactions.map(idsOf), reached: group?.reached.offset ?? 4, large, undecodable };
}

/** Chunks of two events; ids of the pieces, and of the transactions behind. */
function secondRead(log: LogWriter, large: LargeTransaction): { pieces: number[][]; ids: number[][] } {
  const reader = readerOf({ ...BOUND, from: large });
  const pieces: number[][] = [];
  const ids: number[][] = [];
  let at = 4;
  for (const [n, event] of log.events.entries()) {
    const begins = at;
    at += event.length;
    if (begins < large.begin.offset) continue;
    reader.event(event, 0, event.length);
    if (n % 2 === 0) take(reader, pieces, ids);
  }
  take(reader, pieces, ids);
  return { pieces, ids };
}

function take(reader: LogReader, pieces: number[][], ids: number[][]): void {
  const piece = reader.takePiece();
  if (piece !== null) {
    const cursor = reader.rowsOf(piece);
    const rows: number[] = [];
    while (cursor.next()) rows.push(cursor.row.idLow);
    pieces.push(rows);
  }
  ids.push(...(reader.seal()?.transactions.map(idsOf) ?? []));
}

function transaction(log: LogWriter, gno: number, work: () => void, end: 'commit' | 'rollback' = 'commit'): void {
  log.gtid(gno);
  log.begin();
  log.tableMap(90, OUTBOX);
  work();
  if (end === 'commit') log.xid();
  else log.query('ROLLBACK');
}

function inserts(log: LogWriter, first: number, last: number): void {
  for (let id = first; id <= last; id++) log.insert(90, OUTBOX, [outboxRow(id, long)]);
}

/** A transaction of one row, then `work`, then one of one row. */
function between(work: (log: LogWriter) => void, end: 'commit' | 'rollback' = 'commit'): LogWriter {
  const log = new LogWriter();
  transaction(log, 1, () => log.insert(90, OUTBOX, [outboxRow(1)]));
  transaction(log, 2, () => work(log), end);
  transaction(log, 3, () => log.insert(90, OUTBOX, [outboxRow(99)]));
  return log;
}

describe('a transaction whose rows are more than can be kept', () => {
  it('ends the first read at its commit; the second hands its rows on in pieces, then what is behind it', () => {
    const log = between((each) => inserts(each, 2, 13));
    const { ids, reached, large } = firstRead(log);
    expect(ids).toEqual([[1]]);
    expect(large).toMatchObject({ gno: 2, rolledBack: [], begin: { file: 'binlog.000001', offset: reached } });
    const second = secondRead(log, large!);
    expect(second.pieces.length).toBeGreaterThan(3);
    expect(second.pieces.flat()).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    expect(second.ids).toEqual([[99]]);
  });

  it('never appears when it was rolled back', () => {
    const { ids, large } = firstRead(
      between((log) => inserts(log, 2, 13), 'rollback'),
      BOUND,
    );
    expect(large).toBeNull();
    expect(ids).toEqual([[1], [99]]);
  });

  it('A5 leaves out what was rolled back to savepoints, before and behind the bound', () => {
    const log = between((each) => {
      each.query('SAVEPOINT `a`');
      inserts(each, 2, 3);
      each.query('SAVEPOINT `b`');
      inserts(each, 4, 4);
      each.query('ROLLBACK TO `b`');
      inserts(each, 5, 5);
      each.query('ROLLBACK TO `a`');
      inserts(each, 6, 11);
      each.query('SAVEPOINT `c`');
      inserts(each, 12, 14);
      each.query('ROLLBACK TO `c`');
      inserts(each, 15, 15);
    });
    const { large } = firstRead(log);
    expect(large!.rolledBack).toEqual([
      { from: 0, to: 4 },
      { from: 10, to: 13 },
    ]);
    expect(secondRead(log, large!).pieces.flat()).toEqual([6, 7, 8, 9, 10, 11, 15]);
  });

  it('may change rows from before it', () => {
    const log = between((each) => {
      inserts(each, 20, 22);
      each.delete(90, OUTBOX, [outboxRow(19), outboxRow(3)]);
      inserts(each, 23, 30);
      each.update(90, OUTBOX, [[outboxRow(5), outboxRow(5, { value: 'new' })]]);
      each.delete(90, OUTBOX, [outboxRow(31)]);
    });
    const { large } = firstRead(log);
    expect(secondRead(log, large!).pieces.flat()).toEqual([20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
  });

  it.each<[string, (log: LogWriter) => void]>([
    ['deleted', (log) => log.delete(90, OUTBOX, [outboxRow(5)])],
    ['updated', (log) => log.update(90, OUTBOX, [[outboxRow(13), outboxRow(13, { value: 'new' })]])],
  ])('A10 is left to the sweep when a row of its own is %s, and what is behind it comes', (_, change) => {
    const behind = between((log) => {
      inserts(log, 2, 13);
      change(log);
    });
    const before = between((log) => {
      inserts(log, 5, 6);
      inserts(log, 13, 13);
      change(log);
      inserts(log, 14, 20);
    });
    for (const log of [behind, before]) {
      const { ids, large, undecodable } = firstRead(log);
      expect(large).toBeNull();
      expect(ids).toEqual([[1], [], [99]]);
      expect(undecodable.map((fault) => fault?.code ?? null)).toEqual([null, 'BINLOG_TRANSACTION_TOO_LARGE', null]);
      const begins = log.events.slice(0, 5).reduce((sum, { length }) => sum + length, 4);
      expect(undecodable[1]?.detail).toMatch(`transaction at binlog.000001:${begins} `);
      expect(undecodable[1]?.detail).toMatch(/changes rows that it inserted.*relay\.maxTransactionBytes/);
    }
  });

  it('is refused at the second read when it is not the one of the first', () => {
    const { large } = firstRead(between((log) => inserts(log, 2, 13)));
    const other = between((log) => inserts(log, 2, 14));
    expect(() => secondRead(other, large!)).toThrow(/cannot read the event/);
    expect(() => secondRead(other, { ...large!, gno: 7 })).toThrow(/cannot read the event/);
  });
});
