import { describe, expect, it } from 'vitest';
import { newCounters } from '../../../src/binlog/source-counters.ts';
import { LogWriter, minimalMetadata, type TestRow, type TestTable } from './log-writer.ts';
import { idsOf, OFFSETS, ORDERS, OUTBOX, outboxRow, readChunk, readerOf, rowsOf } from './outbox-fixture.ts';

const SID = '00112233-4455-6677-8899-aabbccddeeff';

describe('a transaction', () => {
  it('is handed on at its commit event, with its end, GTID and commit time', () => {
    const log = new LogWriter();
    log.formatDescription();
    log.gtid(7);
    log.begin();
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(1), outboxRow(2)]);
    const reader = readerOf();
    expect(readChunk(reader, log.events)).toMatchObject({ transactions: [], worthSaving: false });
    const group = readChunk(reader, [log.xid()]);
    expect(group?.transactions).toHaveLength(1);
    const transaction = group!.transactions[0];
    expect(transaction.end).toEqual(log.position);
    expect(group!.reached).toEqual(log.position);
    expect(transaction.gtid).toEqual({ sid: SID, gno: 7 });
    expect(transaction.commitMicros).toBe(log.seconds * 1_000_000 + 123);
    expect(rowsOf(transaction)).toEqual([
      { id: 1n, topic: 'orders', key: 'agg-1', value: 'value 1' },
      { id: 2n, topic: 'orders', key: 'agg-2', value: 'value 2' },
    ]);
  });

  it('can be walked again, and one that is opened ends the one before', () => {
    const log = new LogWriter();
    insert(log, 1, [1, 2]);
    insert(log, 2, [3]);
    const [first, second] = readChunk(readerOf(), log.events)!.transactions;
    expect(idsOf(first)).toEqual([1, 2]);
    expect(idsOf(second)).toEqual([3]);
    expect(idsOf(first)).toEqual([1, 2]);
  });

  it('is left out when it rolls back', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(1)]);
    log.query('ROLLBACK');
    const group = readChunk(readerOf(), log.events)!;
    expect(group.transactions).toEqual([]);
    expect(group.reached).toEqual(log.position);
    expect(group.skipped).toEqual([{ sid: SID, first: 1, last: 1 }]);
  });

  it('S17 loses what is rolled back to a savepoint, and the savepoint stays', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(1)]);
    log.query('SAVEPOINT `A`');
    log.insert(90, OUTBOX, [outboxRow(2)]);
    log.query('ROLLBACK TO SAVEPOINT `a`');
    log.insert(90, OUTBOX, [outboxRow(3)]);
    log.query('ROLLBACK TO `A`');
    log.insert(90, OUTBOX, [outboxRow(4)]);
    log.xid();
    expect(idsOf(readChunk(readerOf(), log.events)!.transactions[0])).toEqual([1, 4]);
  });

  it('ends with COMMIT where tables are not transactional', () => {
    const log = new LogWriter();
    log.anonymous();
    log.begin();
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(1)]);
    log.query('COMMIT');
    const [transaction] = readChunk(readerOf(), log.events)!.transactions;
    expect(transaction.gtid).toBeNull();
    expect(transaction.commitMicros).toBe(log.seconds * 1_000_000);
    expect(idsOf(transaction)).toEqual([1]);
  });

  it('A3 keeps rows of two tables apart when both table maps come first', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(80, ORDERS);
    log.tableMap(90, OUTBOX);
    for (const id of [1, 2]) {
      log.insert(80, ORDERS, [outboxRow(id).slice(0, 2)]);
      log.insert(90, OUTBOX, [outboxRow(id)]);
    }
    log.xid();
    expect(idsOf(readChunk(readerOf(), log.events)!.transactions[0])).toEqual([1, 2]);
  });

  it('E4 takes the newest table map of a number', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(113, ORDERS);
    log.insert(113, ORDERS, [outboxRow(1).slice(0, 2)]);
    log.xid();
    log.gtid(2);
    log.begin();
    log.tableMap(113, OUTBOX);
    log.insert(113, OUTBOX, [outboxRow(2)]);
    log.xid();
    log.gtid(3);
    log.begin();
    log.tableMap(113, ORDERS);
    log.insert(113, ORDERS, [outboxRow(3).slice(0, 2)]);
    log.xid();
    const { transactions } = readChunk(readerOf(), log.events)!;
    expect(transactions.map(idsOf)).toEqual([[2]]);
  });

  it('reads an XA transaction that is prepared and committed in one', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.query("XA START X'78',X'',1");
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(1)]);
    log.query("XA END X'78',X'',1");
    log.add(38, Buffer.concat([Buffer.of(1), Buffer.alloc(13)]));
    expect(idsOf(readChunk(readerOf(), log.events)!.transactions[0])).toEqual([1]);
  });

  it('is dropped when the log breaks off inside it', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(1)]);
    log.rotate('binlog.000002');
    log.formatDescription();
    insert(log, 2, [5]);
    const { transactions } = readChunk(readerOf(), log.events)!;
    expect(transactions.map(idsOf)).toEqual([[5]]);
  });

  it('leaves rows that are not pending to the sweep, and counts them', () => {
    const counters = newCounters();
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(1, { status: 3 }), outboxRow(2), outboxRow(3, { status: 2 })]);
    log.xid();
    expect(idsOf(readChunk(readerOf({ counters }), log.events)!.transactions[0])).toEqual([2]);
    expect(counters).toEqual({ ...newCounters(), notPending: 2 });
  });

  it('leaves rows to the sweep that become due a second or more after they were written', () => {
    const table: TestTable = { ...OUTBOX, columns: [...OUTBOX.columns, { name: 'due', type: 18, metadata: [6] }] };
    const due = (id: number, micros: number): TestRow => [...outboxRow(id), dateTime(micros)];
    const counters = newCounters();
    const log = new LogWriter();
    const now = log.seconds * 1_000_000;
    log.gtid(1);
    log.begin();
    log.tableMap(90, table);
    const rows = [due(1, now + 999_999), due(2, now + 1_000_000), due(3, now - 60_000_000), [...outboxRow(4), null]];
    log.insert(90, table, rows);
    log.xid();
    const reader = readerOf({ counters, columns: { availableAt: 'due' } });
    expect(idsOf(readChunk(reader, log.events)!.transactions[0])).toEqual([1, 3, 4]);
    expect(counters).toEqual({ ...newCounters(), delayed: 1 });
  });

  it('needs no status column', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(1, { status: 3 })]);
    log.xid();
    expect(idsOf(readChunk(readerOf({ columns: { status: null } }), log.events)!.transactions[0])).toEqual([1]);
  });

  it('follows a table map of the same number that says more', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX, minimalMetadata(OUTBOX));
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(1)]);
    log.xid();
    expect(readChunk(readerOf(), log.events)!.transactions.map(idsOf)).toEqual([[1]]);
  });

  it('finds its table in other letters where the server does not tell them apart', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, { ...OUTBOX, name: 'OUTBOX' });
    log.insert(90, OUTBOX, [outboxRow(1)]);
    log.xid();
    expect(readChunk(readerOf(), log.events)!.transactions).toEqual([]);
    expect(idsOf(readChunk(readerOf({ ignoreCase: true }), log.events)!.transactions[0])).toEqual([1]);
  });
});

describe('transactions that are passed over', () => {
  it('L2 skips its own, whatever is in them, and reports their GTIDs as runs', () => {
    const log = new LogWriter();
    for (const gno of [1, 2, 3]) {
      log.gtid(gno);
      log.begin();
      log.tableMap(70, OFFSETS);
      log.tableMap(90, OUTBOX);
      log.update(70, OFFSETS, []);
      log.delete(90, OUTBOX, [outboxRow(gno)]);
      log.insert(90, OUTBOX, [outboxRow(gno)]);
      log.xid();
    }
    insert(log, 4, [9]);
    log.gtid(6);
    log.query('CREATE TABLE x (id int)');
    const group = readChunk(readerOf(), log.events)!;
    expect(group.transactions.map(idsOf)).toEqual([[9]]);
    expect(group.transactions[0].skipped).toEqual([{ sid: SID, first: 1, last: 3 }]);
    expect(group.skipped).toEqual([{ sid: SID, first: 6, last: 6 }]);
  });

  it('takes a transaction that reaches the offsets table later for what it is', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX);
    log.tableMap(70, OFFSETS);
    log.insert(90, OUTBOX, [outboxRow(1)]);
    log.xid();
    expect(readChunk(readerOf(), log.events)!.transactions).toHaveLength(1);
  });

  it.each([
    ['the offsets of this relay', OFFSETS, false],
    ['the offsets of another relay', { ...OFFSETS, schema: 'other' }, false],
    ['another table of a relay', { ...OFFSETS, name: 'cdc_relay_parked' }, false],
    ['any other table', ORDERS, true],
  ])('S27 finds 16 MiB of %s worth saving: %s', (_, table, worth) => {
    const log = new LogWriter();
    const filler = [varcharOf(1_000_000)];
    const reader = readerOf();
    let worthSaving = false;
    for (let gno = 1; gno <= 18; gno++) {
      const before = log.events.length;
      log.gtid(gno);
      log.begin();
      log.tableMap(70, table);
      log.add(30, Buffer.concat([Buffer.of(70, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0xff, 0), ...filler]));
      log.xid();
      const group = readChunk(reader, log.events.slice(before))!;
      worthSaving ||= group.worthSaving;
    }
    expect(worthSaving).toBe(worth);
  });

  it('B3 finds a rotation worth saving, once', () => {
    const log = new LogWriter();
    const reader = readerOf();
    insert(log, 1, [1]);
    log.rotate('binlog.000002');
    const group = readChunk(reader, log.events)!;
    expect(group).toMatchObject({ worthSaving: true, reached: { file: 'binlog.000002', offset: 4 } });
    expect(readChunk(reader, [log.formatDescription()])).toMatchObject({ worthSaving: false });
  });

  it('says nothing when nothing has happened', () => {
    const reader = readerOf();
    const log = new LogWriter();
    expect(readChunk(reader, [log.artificial(27, Buffer.from('binlog.000001'), 0, 4)])).toBeNull();
    expect(reader.seal()).toBeNull();
  });
});

function insert(log: LogWriter, gno: number, ids: readonly number[]): void {
  log.gtid(gno);
  log.begin();
  log.tableMap(90, OUTBOX);
  log.insert(
    90,
    OUTBOX,
    ids.map((id) => outboxRow(id)),
  );
  log.xid();
}

/** DATETIME(6). */
function dateTime(micros: number): Buffer {
  const time = new Date(Math.floor(micros / 1000));
  const day = ((time.getUTCFullYear() * 13 + time.getUTCMonth() + 1) << 5) | time.getUTCDate();
  const clock = (time.getUTCHours() << 12) | (time.getUTCMinutes() << 6) | time.getUTCSeconds();
  const bytes = Buffer.alloc(8);
  bytes.writeUIntBE(2 ** 39 + day * 2 ** 17 + clock, 0, 5);
  bytes.writeUIntBE(micros % 1_000_000, 5, 3);
  return bytes;
}

function varcharOf(bytes: number): Buffer {
  return Buffer.alloc(bytes);
}
