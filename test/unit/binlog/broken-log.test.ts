import { describe, expect, it } from 'vitest';
import { RelayError } from '../../../src/model/fault.ts';
import { LogWriter } from './log-writer.ts';
import { idsOf, OUTBOX, outboxRow, readerOf, rowsOf } from './outbox-fixture.ts';

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

describe('a log that cannot be right ends the stream behind what was good', () => {
  it.each<[string, (log: LogWriter) => void]>([
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
        log.gtid(3);
      },
    ],
  ])('%s', (_, bad) => {
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
  });
});
