import { describe, expect, it } from 'vitest';
import { RelayError } from '../../../src/model/fault.ts';
import { LogWriter } from './log-writer.ts';
import { idsOf, OUTBOX, outboxRow, readerOf } from './outbox-fixture.ts';

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
    ['rows whose checksum is wrong', (log) => (insert(log, 2)[60] ^= 1)],
    [
      'rows of a table whose number was given before the server started',
      (log) => {
        log.rotate('binlog.000002');
        log.formatDescription();
        log.gtid(2);
        log.begin();
        log.insert(90, OUTBOX, [outboxRow(2)]);
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
});
