import { describe, expect, it } from 'vitest';
import { PreparedXa } from '../../../src/binlog/prepared-xa.ts';
import type { Fault } from '../../../src/model/fault.ts';
import type { Transaction } from '../../../src/model/source.ts';
import { LogWriter, xaPrepare } from './log-writer.ts';
import { idsOf, OFFSETS, ORDERS, OUTBOX, outboxRow, readChunk, readerOf, type ReaderParts } from './outbox-fixture.ts';

function good(log: LogWriter, gno: number): void {
  opened(log, gno);
  log.insert(90, OUTBOX, [outboxRow(gno)]);
  log.xid();
}

function opened(log: LogWriter, gno = 2): void {
  log.gtid(gno);
  log.begin();
  log.tableMap(90, OUTBOX);
}

/** A good transaction, what `write` does, another good one: what is handed on. */
function between(write: (log: LogWriter) => void, parts: ReaderParts = {}): Transaction[] {
  const log = new LogWriter();
  good(log, 1);
  write(log);
  good(log, 100);
  const group = readChunk(readerOf(parts), log.events)!;
  expect(group.reached).toEqual(log.position);
  return [...group.transactions];
}

/** The one between the two: it has no rows, and the others have theirs. */
function onlyUndecodable(transactions: readonly Transaction[]): Transaction & { readonly undecodable: Fault } {
  expect(transactions.map(idsOf)).toEqual([[1], [], [100]]);
  expect(transactions.map(({ undecodable }) => undecodable !== null)).toEqual([false, true, false]);
  expect(transactions[1].pieces).toBeNull();
  return transactions[1] as Transaction & { readonly undecodable: Fault };
}

/** The body of a partial update of table 90. */
const PARTIAL = Buffer.concat([Buffer.of(90, 0, 0, 0, 0, 0, 1, 0, 2, 0, 6), Buffer.alloc(20)]);

const IMPOSSIBLE: [string, (log: LogWriter) => void, RegExp][] = [
  [
    'C3 a row without its primary key',
    (log) => {
      opened(log);
      log.insert(90, OUTBOX, [outboxRow(2)], [1, 2, 3, 4, 5]);
    },
    /without its primary key.*binlog_row_image/,
  ],
  [
    'A7 an insert as text',
    (log) => {
      log.gtid(2);
      log.begin();
      log.add(5, Buffer.alloc(9));
      log.query('INSERT INTO outbox VALUES (2, "secret")');
    },
    /as text.*binlog_format/,
  ],
  [
    'A7 a REPLACE as text, from another schema',
    (log) => {
      log.gtid(2);
      log.begin();
      log.query('/* hint */ REPLACE INTO `app`.`outbox` VALUES (2, "secret")', 'elsewhere');
    },
    /as text/,
  ],
  [
    'A7 LOAD DATA as text',
    (log) => {
      log.gtid(2);
      log.begin();
      log.add(17, Buffer.alloc(40));
      const head = Buffer.alloc(26);
      head[8] = 3;
      log.add(18, Buffer.concat([head, Buffer.from("app\0LOAD DATA INFILE 'x' INTO TABLE `outbox`")]));
    },
    /as text/,
  ],
  [
    'A7 an update as text behind outbox rows',
    (log) => {
      opened(log);
      log.insert(90, OUTBOX, [outboxRow(2)]);
      log.query('UPDATE outbox SET payload = "secret"');
    },
    /as text/,
  ],
  [
    'a partial update of a row just inserted',
    (log) => {
      opened(log);
      log.insert(90, OUTBOX, [outboxRow(2)]);
      log.add(39, PARTIAL);
    },
    /in part.*binlog_row_value_options/,
  ],
  [
    'a rollback to a savepoint that is not there',
    (log) => {
      opened(log);
      log.insert(90, OUTBOX, [outboxRow(2)]);
      log.query('ROLLBACK TO `nowhere`');
    },
    /savepoint/,
  ],
  [
    'C2 an event of an unknown type among outbox rows',
    (log) => {
      opened(log);
      log.add(172, Buffer.alloc(50));
    },
    /unknown type/,
  ],
  [
    'B10 an incident in the midst of a transaction',
    (log) => {
      opened(log);
      log.insert(90, OUTBOX, [outboxRow(2)]);
      log.add(26, Buffer.of(1, 0, 0));
    },
    /lost events/,
  ],
];

describe('a transaction whose rows cannot be given is handed on without them, in its place', () => {
  it.each(IMPOSSIBLE)('%s', (_, write, detail) => {
    let end = 0;
    const transaction = onlyUndecodable(
      between((log) => {
        write(log);
        // What follows in it changes nothing any more.
        log.tableMap(90, OUTBOX);
        log.insert(90, OUTBOX, [outboxRow(3)]);
        log.query('SAVEPOINT `s`');
        log.delete(90, OUTBOX, [outboxRow(3)]);
        log.add(39, PARTIAL);
        log.query('INSERT INTO app.outbox VALUES (4)');
        log.xid();
        end = log.offset;
      }),
    );
    expect(transaction.end.offset).toBe(end);
    expect(transaction.gtid?.gno).toBe(2);
    expect(transaction.commitMicros % 1_000_000).toBe(123);
    expect(transaction.undecodable).toMatchObject({ disposition: 'halt' });
    expect(transaction.undecodable.detail).toMatch(/^binlog\.000001:\d+: /);
    expect(transaction.undecodable.detail).toMatch(detail);
    expect(transaction.undecodable.detail).not.toContain('secret');
  });

  it.each(IMPOSSIBLE)('%s: not when it is rolled back', (_, write) => {
    const transactions = between((log) => {
      write(log);
      log.query('ROLLBACK');
    });
    expect(transactions.map(idsOf)).toEqual([[1], [100]]);
  });

  it('S5 as text outside of any transaction: one by itself', () => {
    let end = 0;
    const { end: at } = onlyUndecodable(
      between((log) => {
        log.gtid(2);
        log.query('INSERT INTO outbox VALUES (2)');
        end = log.offset;
      }),
    );
    expect(at.offset).toBe(end);
  });

  it('of our own is passed over all the same', () => {
    const transactions = between((log) => {
      log.gtid(2);
      log.begin();
      log.tableMap(70, OFFSETS);
      log.query('INSERT INTO app.outbox VALUES (2)');
      log.add(172, Buffer.alloc(50));
      log.xid();
    });
    expect(transactions.map(idsOf)).toEqual([[1], [100]]);
  });

  it('C2 unknown events that may be ignored, or of transactions without outbox rows, are no matter', () => {
    const transactions = between((log) => {
      log.gtid(2);
      log.begin();
      log.tableMap(80, ORDERS);
      log.add(172, Buffer.alloc(50));
      log.xid();
      opened(log, 3);
      log.artificial(200, Buffer.alloc(50), 0x80 | 0x20);
      for (const type of [5, 9, 11, 13, 14, 17, 28, 29, 160]) log.add(type, Buffer.alloc(20));
      log.insert(90, OUTBOX, [outboxRow(3)]);
      log.xid();
    });
    expect(transactions.map(idsOf)).toEqual([[1], [3], [100]]);
  });

  it('a log that breaks off behind such a statement: nobody knows, so it is handed on', () => {
    const log = new LogWriter();
    opened(log);
    log.query('INSERT INTO outbox VALUES (2)');
    log.rotate('binlog.000002');
    log.formatDescription();
    good(log, 3);
    const { transactions } = readChunk(readerOf(), log.events)!;
    expect(transactions.map(idsOf)).toEqual([[], [3]]);
    expect(transactions[0].end).toEqual({ file: 'binlog.000002', offset: 4 });
  });
});

/** As much as a file of events can show: no server here can be made to write one. */
describe('B10 an incident', () => {
  it.each([false, true])(
    'is a transaction by itself, its end behind it (with a GTID: %s), and the log rotates',
    (gtid) => {
      let end = 0;
      const transaction = onlyUndecodable(
        between((log) => {
          if (gtid) log.gtid(2);
          log.add(26, Buffer.concat([Buffer.of(1, 0, 11), Buffer.from('LOST_EVENTS')]));
          end = log.offset;
          log.rotate('binlog.000002');
          log.formatDescription();
        }),
      );
      expect(transaction.undecodable.code).toBe('BINLOG_INCIDENT');
      expect(transaction.undecodable.detail).toMatch(/^binlog\.000001:\d+: the server says that it lost events/);
      expect(transaction.end).toEqual({ file: 'binlog.000001', offset: end });
      expect(transaction.gtid?.gno ?? null).toBe(gtid ? 2 : null);
      expect(transaction.commitMicros).toBeGreaterThan(0);
    },
  );
});

/** `X'78'` is the name x. */
const name = (text: string) => `X'${Buffer.from(text).toString('hex')}',X'',1`;

function prepare(log: LogWriter, xid: string, work: () => void, gno = 2): void {
  log.gtid(gno);
  log.query(`XA START ${name(xid)}`);
  work();
  log.query(`XA END ${name(xid)}`);
  log.add(38, xaPrepare(xid));
}

function decide(log: LogWriter, xid: string, how: 'COMMIT' | 'ROLLBACK', gno = 3): void {
  log.gtid(gno);
  log.query(`XA ${how} ${name(xid)}`);
}

function outboxRows(log: LogWriter): () => void {
  return () => {
    log.tableMap(90, OUTBOX);
    log.insert(90, OUTBOX, [outboxRow(2)]);
  };
}

function otherRows(log: LogWriter): () => void {
  return () => {
    log.tableMap(80, ORDERS);
    log.insert(80, ORDERS, [outboxRow(1).slice(0, 2)]);
  };
}

describe('A6 XA in two phases', () => {
  it('is handed on at its XA COMMIT, which other transactions may precede', () => {
    let end = 0;
    const transactions = between((log) => {
      prepare(log, 'x', outboxRows(log));
      good(log, 50);
      decide(log, 'x', 'COMMIT', 51);
      end = log.offset;
    });
    expect(transactions.map(idsOf)).toEqual([[1], [50], [], [100]]);
    const { undecodable, end: at, gtid } = transactions[2];
    expect(undecodable?.code).toBe('BINLOG_UNSUPPORTED');
    expect(undecodable?.detail).toMatch(/^binlog\.000001:\d+: an XA transaction with outbox rows/);
    expect(at.offset).toBe(end);
    expect(gtid?.gno).toBe(51);
  });

  it('is nothing when it is rolled back (S17), or holds no outbox rows, or only changes some from before', () => {
    const transactions = between((log) => {
      prepare(log, 'x', outboxRows(log));
      decide(log, 'x', 'ROLLBACK');
      prepare(log, 'y', otherRows(log));
      decide(log, 'y', 'COMMIT');
      prepare(log, 'z', () => {
        log.tableMap(90, OUTBOX);
        log.delete(90, OUTBOX, [outboxRow(1)]);
      });
      decide(log, 'z', 'COMMIT');
    });
    expect(transactions.map(idsOf)).toEqual([[1], [100]]);
  });

  it.each<[string, (log: LogWriter) => void]>([
    ['that were too large to be kept', (log) => rowsOver(log, 5000)],
    ['that could not be given', (log) => log.query('INSERT INTO outbox VALUES (2)')],
  ])('with rows %s is handed on too', (_, work) => {
    onlyUndecodable(
      between(
        (log) => {
          prepare(log, 'x', () => work(log));
          decide(log, 'x', 'COMMIT');
        },
        { maxTransactionBytes: 4000 },
      ),
    );
  });

  it('a name that is used again means the newest', () => {
    const transactions = between((log) => {
      prepare(log, 'x', otherRows(log));
      decide(log, 'x', 'COMMIT');
      prepare(log, 'x', outboxRows(log));
      decide(log, 'x', 'COMMIT');
    });
    expect(transactions.map(idsOf)).toEqual([[1], [], [100]]);
  });

  it('c prepared before the stream began: what is known counts, else it is handed on', () => {
    const before = new LogWriter();
    prepare(before, 'with', outboxRows(before));
    prepare(before, 'without', otherRows(before));
    const committed = (xid: string, prepared: PreparedXa) =>
      between((log) => decide(log, xid, 'COMMIT'), { prepared }).length === 3;
    const prepared = new PreparedXa();
    readChunk(readerOf({ prepared }), before.events);
    expect(committed('with', prepared)).toBe(true);
    expect(committed('without', prepared)).toBe(false);
    // Once more: the stream was begun anew before the decision.
    expect(committed('without', prepared)).toBe(false);
    expect(committed('unheard of', prepared)).toBe(true);
    prepared.forget();
    expect(committed('without', prepared)).toBe(true);
  });

  it('is remembered within bounds: the oldest is forgotten, and may hold rows', () => {
    const prepared = new PreparedXa(2);
    for (const xid of ['a', 'b', 'c']) prepared.prepared(xid, false);
    expect(['a', 'b', 'c'].map((xid) => prepared.decided(xid))).toEqual([true, false, false]);
    expect(prepared.decided(null)).toBe(true);
  });

  it('in one phase is like any other', () => {
    const transactions = between((log) => {
      log.gtid(2);
      log.query(`XA START ${name('x')}`);
      outboxRows(log)();
      log.query(`XA END ${name('x')}`);
      log.add(38, xaPrepare('x', true));
    });
    expect(transactions.map(idsOf)).toEqual([[1], [2], [100]]);
  });
});

function rowsOver(log: LogWriter, bytes: number): void {
  log.tableMap(90, OUTBOX);
  for (let id = 2; (id - 2) * 1000 < bytes; id++) log.insert(90, OUTBOX, [outboxRow(id, { value: 'x'.repeat(1000) })]);
}
