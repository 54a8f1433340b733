import { describe, expect, it } from 'vitest';
import { RelayError } from '../../../src/model/fault.ts';
import { LogWriter } from './log-writer.ts';
import { eventsInside, payloadOf } from './packed-events.ts';
import { idsOf, OUTBOX, outboxRow, readChunk, readerOf, rowsOf } from './outbox-fixture.ts';

function insert(log: LogWriter, id: number): Buffer {
  log.gtid(id);
  log.begin();
  log.tableMap(90, OUTBOX);
  return log.insert(90, OUTBOX, [outboxRow(id)]);
}

function good(log: LogWriter, id: number): void {
  insert(log, id);
  log.xid();
}

const BROKEN: [string, (log: LogWriter) => void][] = [
  [
    'rows whose checksum is wrong',
    (log) => {
      insert(log, 2)[60] ^= 1;
      log.xid();
    },
  ],
  [
    'rows of a table whose number was given before the server started',
    (log) => {
      log.rotate('binlog.000002');
      log.formatDescription();
      log.gtid(2);
      log.begin();
      log.insert(90, OUTBOX, [outboxRow(2)]);
      log.xid();
    },
  ],
  [
    'a transaction inside another with rows',
    (log) => {
      insert(log, 2);
    },
  ],
  [
    'a statement that is cut off',
    (log) => {
      log.gtid(2);
      log.add(2, Buffer.alloc(5));
    },
  ],
  [
    'a table map that is cut off',
    (log) => {
      log.gtid(2);
      log.begin();
      log.add(19, Buffer.alloc(10));
      log.insert(90, OUTBOX, [outboxRow(2)]);
      log.xid();
    },
  ],
  [
    'the end of an XA transaction that is cut off',
    (log) => {
      log.gtid(2);
      log.query("XA START X'78',X'',1");
      log.add(38, Buffer.alloc(5));
    },
  ],
  [
    'a payload that is none',
    (log) => {
      log.gtid(2);
      log.add(40, Buffer.alloc(50, 9));
    },
  ],
  [
    'a payload that ends inside an event',
    (log) => {
      log.gtid(2);
      log.add(40, payloadOf(eventsInside((each) => insert(each, 2)).subarray(0, -3)));
    },
  ],
  [
    'a payload with an event that is cut off',
    (log) => {
      log.gtid(2);
      const inside = (each: LogWriter) => {
        each.begin();
        each.add(19, Buffer.alloc(10));
        each.insert(90, OUTBOX, [outboxRow(2)]);
        each.xid();
      };
      log.add(40, payloadOf(eventsInside(inside)));
    },
  ],
];

describe('a log that cannot be right ends the stream behind what was good', () => {
  it.each(BROKEN)('%s', (_, bad) => {
    const log = new LogWriter();
    good(log, 1);
    bad(log);
    good(log, 100);
    const reader = readerOf();
    let caught: unknown;
    try {
      log.events.forEach((event) => reader.event(event, 0, event.length));
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(RelayError);
    expect((caught as RelayError).fault).toMatchObject({ code: 'BINLOG_DECODE', disposition: 'retry' });
    expect((caught as RelayError).message).toMatch(/binlog\.00000\d:\d+/);
    expect(reader.seal()!.transactions.map(idsOf)).toEqual([[1]]);
  });

  it.each(BROKEN)('S24 met again: %s: the transaction is handed on without rows, and the stream goes on', (_, bad) => {
    const log = new LogWriter();
    good(log, 1);
    bad(log);
    good(log, 100);
    const { transactions, reached } = readChunk(readerOf({ tolerant: true }), log.events)!;
    expect(transactions.map(idsOf)).toEqual([[1], [], [100]]);
    const { undecodable, gtid } = transactions[1];
    expect(undecodable).toMatchObject({ code: 'BINLOG_DECODE', disposition: 'halt' });
    expect(undecodable?.detail).toMatch(/binlog\.00000\d:\d+/);
    expect(gtid?.gno).toBe(2);
    expect(reached).toEqual(log.position);
  });

  it('S24 met again: a GTID that is cut off: its transaction has none', () => {
    const log = new LogWriter();
    good(log, 1);
    log.add(33, Buffer.alloc(5));
    log.begin();
    log.xid();
    good(log, 3);
    const { transactions } = readChunk(readerOf({ tolerant: true }), log.events)!;
    expect(transactions.map(idsOf)).toEqual([[1], [], [3]]);
    expect(transactions.map(({ gtid }) => gtid?.gno)).toEqual([1, undefined, 3]);
  });

  it.each<[string, (log: LogWriter) => void]>([
    ['an event out of its place', (log) => log.add(99, Buffer.alloc(5)).writeUInt32LE(7, 13)],
    ['a packet of another size than its event', (log) => log.add(99, Buffer.alloc(5)).writeUInt32LE(7, 9)],
    ['a rotation to nowhere', (log) => log.add(4, Buffer.alloc(8))],
  ])('S24 met again: %s ends the stream all the same', (_, bad) => {
    const log = new LogWriter();
    good(log, 1);
    bad(log);
    expect(() => readChunk(readerOf({ tolerant: true }), log.events)).toThrow(/BINLOG_DECODE/);
  });

  it('a row that ends before the length of a value does, at the end of its buffer', () => {
    const log = new LogWriter(undefined, false);
    const start = log.formatDescription();
    log.gtid(1);
    log.begin();
    const map = log.tableMap(90, OUTBOX);
    const rows = log.insert(90, OUTBOX, [outboxRow(1)]);
    // Without idempotency key (a length byte and 16) and status.
    const cut = Buffer.from(rows.subarray(0, -18));
    log.offset -= 18;
    cut.writeUInt32LE(cut.length, 9);
    cut.writeUInt32LE(log.offset, 13);
    const reader = readerOf();
    for (const event of [start, ...log.events.slice(1, 3), map, cut, log.xid()]) reader.event(event, 0, event.length);
    const [transaction] = reader.seal()!.transactions;
    expect(() => rowsOf(transaction)).toThrow(/BINLOG_DECODE/);
    // The second time its images are looked at before it is handed on.
    const again = readChunk(readerOf({ tolerant: true }), [start, ...log.events.slice(1, 3), map, cut, log.xid()]);
    expect(again!.transactions[0].undecodable?.detail).toMatch(/cannot read the rows of the transaction at binlog/);
    expect(idsOf(again!.transactions[0])).toEqual([]);
  });
});
