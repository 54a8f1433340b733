import { describe, expect, it } from 'vitest';
import { newCounters } from '../../../src/binlog/source-counters.ts';
import type { Transaction } from '../../../src/model/source.ts';
import { LogWriter } from './log-writer.ts';
import { OUTBOX, outboxRow, readChunk, readerOf, textOf } from './outbox-fixture.ts';

const ID = 0;
const TOPIC = 1;
const KEY = 2;
const VALUE = 3;
const IDEMPOTENCY_KEY = 4;
const STATUS = 5;
const PUBLISHED = 3;

interface Seen {
  readonly id: number;
  /** Null: the row is not complete. */
  readonly value: string | null;
}

describe('C3 rows of which the log leaves columns out', () => {
  it('are handed on by id, between those that are complete', () => {
    const seen = rowsOf((log) => {
      log.insert(90, OUTBOX, [outboxRow(1)]);
      log.insert(90, OUTBOX, [outboxRow(2), outboxRow(3)], [ID, TOPIC, KEY, VALUE]);
      log.insert(90, OUTBOX, [outboxRow(4)], [ID]);
      log.insert(90, OUTBOX, [outboxRow(5)]);
    });
    expect(seen.rows).toEqual([whole(1), toRead(2), toRead(3), toRead(4), whole(5)]);
  });

  it('are passed over when the log says that they are not pending', () => {
    const seen = rowsOf((log) => {
      log.insert(90, OUTBOX, [outboxRow(1, { status: PUBLISHED }), outboxRow(2)], [ID, TOPIC, STATUS]);
    });
    expect(seen.rows).toEqual([toRead(2)]);
    expect(seen.notPending).toBe(1);
  });

  it('are what the last change has left of them', () => {
    const seen = rowsOf((log) => {
      log.insert(
        90,
        OUTBOX,
        [1, 2, 3, 4, 5, 6].map((id) => outboxRow(id)),
      );
      // As MINIMAL writes them: the key of before, and what has changed.
      log.update(90, OUTBOX, [[outboxRow(1), outboxRow(1, { value: 'new' })]], [[ID], [VALUE]]);
      log.update(90, OUTBOX, [[outboxRow(2), outboxRow(20)]], [[ID], [ID]]);
      log.update(90, OUTBOX, [[outboxRow(3), outboxRow(3, { status: PUBLISHED })]], [[ID], [STATUS]]);
      // As NOBLOB: all but the blob.
      const noBlob = [ID, TOPIC, KEY, IDEMPOTENCY_KEY, STATUS];
      log.update(90, OUTBOX, [[outboxRow(4), outboxRow(4, { key: 'new' })]], [noBlob, noBlob]);
      log.update(90, OUTBOX, [[outboxRow(5), outboxRow(5, { value: 'whole' })]]);
      log.update(90, OUTBOX, [[outboxRow(6), outboxRow(6)]], [[ID], []]); // of a column that nobody needs
    });
    expect(seen.rows).toEqual([toRead(1), toRead(20), toRead(3), toRead(4), { id: 5, value: 'whole' }, whole(6)]);
  });

  it('are followed on, to a change that makes them complete again and to their end', () => {
    const seen = rowsOf((log) => {
      log.insert(90, OUTBOX, [outboxRow(1), outboxRow(2)], [ID, KEY]);
      log.update(90, OUTBOX, [[outboxRow(1), outboxRow(1, { value: 'again' })]]);
      log.delete(90, OUTBOX, [outboxRow(2)]);
    });
    expect(seen.rows).toEqual([{ id: 1, value: 'again' }]);
  });

  it('are left to the sweep where what is left seems to be whole and is not', () => {
    const { undecodable } = read((log) => {
      log.insert(90, OUTBOX, [outboxRow(1)]);
      log.update(90, OUTBOX, [[outboxRow(1), outboxRow(1, { value: 'new' })]], [undefined, [VALUE]]);
    });
    expect(undecodable?.detail).toMatch(/^binlog\.000001:\d+: .*binlog_row_image/);
  });
});

function whole(id: number): Seen {
  return { id, value: `value ${id}` };
}

function toRead(id: number): Seen {
  return { id, value: null };
}

function read(write: (log: LogWriter) => void, counters = newCounters()): Transaction {
  const log = new LogWriter();
  log.gtid(1);
  log.begin();
  log.tableMap(90, OUTBOX);
  write(log);
  log.xid();
  return readChunk(readerOf({ counters }), log.events)!.transactions[0];
}

function rowsOf(write: (log: LogWriter) => void): { rows: Seen[]; notPending: number } {
  const counters = newCounters();
  const cursor = read(write, counters).rows();
  const rows: Seen[] = [];
  while (cursor.next()) {
    const { idLow, isComplete, value } = cursor.row;
    rows.push({ id: idLow, value: isComplete ? textOf(value) : null });
  }
  return { rows, notPending: counters.notPending };
}
