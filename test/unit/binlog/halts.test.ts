import { describe, expect, it } from 'vitest';
import type { TableDefinition } from '../../../src/binlog/table-definition.ts';
import { RelayError, type Fault } from '../../../src/model/fault.ts';
import { LogWriter, minimalMetadata, xaPrepare, type TestTable } from './log-writer.ts';
import { DEFINITION, idsOf, ORDERS, OUTBOX, outboxRow, readerOf, type ReaderParts } from './outbox-fixture.ts';

/** Reads a good transaction, then `bad`, then another good one: what was handed on, and the fault. */
function haltedBy(bad: (log: LogWriter) => void, parts: ReaderParts = {}): { fault: Fault; ids: number[][] } {
  const log = new LogWriter();
  good(log, 1);
  const at = log.offset;
  bad(log);
  good(log, 100);
  const reader = readerOf(parts);
  let caught: unknown = null;
  for (const event of log.events) {
    try {
      reader.event(event, 0, event.length);
    } catch (error) {
      caught = error;
      break;
    }
  }
  expect(caught).toBeInstanceOf(RelayError);
  const group = reader.seal()!;
  expect(group.reached.offset).toBe(at);
  return { fault: (caught as RelayError).fault, ids: group.transactions.map(idsOf) };
}

function good(log: LogWriter, gno: number): void {
  log.gtid(gno);
  log.begin();
  log.tableMap(90, OUTBOX);
  log.insert(90, OUTBOX, [outboxRow(gno)]);
  log.xid();
}

function opened(log: LogWriter): void {
  log.gtid(2);
  log.begin();
  log.tableMap(90, OUTBOX);
}

function passes(events: (log: LogWriter) => void, parts: ReaderParts = {}): number[][] {
  const log = new LogWriter();
  good(log, 1);
  events(log);
  good(log, 100);
  const reader = readerOf(parts);
  for (const event of log.events) reader.event(event, 0, event.length);
  return reader.seal()!.transactions.map(idsOf);
}

describe('a table that cannot be read halts, and nothing behind it is handed on', () => {
  it.each<[string, TestTable, RegExp]>([
    ['a column that is not there', without(OUTBOX, 'payload'), /no column payload/],
    ['a status without `pending`', changed(OUTBOX, 'status', { labels: ['new', 'done'] }), /no label 'pending'/],
    ['a character set that is not known', changed(OUTBOX, 'aggregate_id', { collation: 1000 }), /aggregate_id.*set/],
    ['a payload that is a FLOAT', changed(OUTBOX, 'payload', { type: 4, metadata: [4] }), /payload.*type/],
    ['a type that cannot be skipped', added(OUTBOX, { name: 'x', type: 20, metadata: [] }), /column x/],
  ])('an outbox table with %s', (_, table, detail) => {
    const { fault, ids } = haltedBy((log) => {
      log.gtid(2);
      log.begin();
      log.tableMap(91, table);
      log.insert(91, table, [outboxRow(2).slice(0, table.columns.length)]);
    });
    expect(fault.disposition).toBe('halt');
    expect(fault.detail).toMatch(detail);
    expect(ids).toEqual([[1]]);
  });
});

describe('what has nothing to do with outbox rows passes', () => {
  it.each<[string, (log: LogWriter) => void]>([
    [
      'an XA transaction on other tables',
      (log) => {
        log.gtid(2);
        log.query("XA START X'78',X'',1");
        log.tableMap(80, ORDERS);
        log.insert(80, ORDERS, [outboxRow(1).slice(0, 2)]);
        log.query("XA END X'78',X'',1");
        log.add(38, xaPrepare('x'));
        log.gtid(3);
        log.query("XA COMMIT X'78',X'',1");
      },
    ],
    [
      'text about other tables',
      (log) => {
        log.gtid(2);
        log.begin();
        log.add(5, Buffer.alloc(9));
        log.query("INSERT INTO my_outbox VALUES ('no')");
        log.query('INSERT INTO other.outbox VALUES (1)');
        log.query('INSERT INTO outbox VALUES (1)', 'other');
        log.query('COMMIT');
      },
    ],
    [
      'text that changes outbox rows from before',
      (log) => {
        log.gtid(2);
        log.begin();
        log.query('DELETE FROM outbox WHERE id < 5');
        log.query('UPDATE app.outbox SET attempts = 1');
        log.xid();
      },
    ],
    [
      'statements that define tables, in a transaction of their own or not',
      (log) => {
        log.gtid(2);
        log.query('ALTER TABLE outbox COMMENT "x"');
        log.gtid(3);
        log.begin();
        log.query('CREATE TABLE `copy` (id int) START TRANSACTION');
        log.tableMap(80, ORDERS);
        log.insert(80, ORDERS, [outboxRow(1).slice(0, 2)]);
        log.xid();
      },
    ],
    [
      'a partial update of a row from before',
      (log) => {
        opened(log);
        log.add(39, Buffer.concat([Buffer.of(90, 0, 0, 0, 0, 0, 1, 0, 2, 0, 6), Buffer.alloc(20)]));
        log.xid();
      },
    ],
    ['C2 events of unknown types', (log) => log.add(99, Buffer.alloc(50))],
    [
      'A11 text about a MEMORY table',
      (log) => {
        log.gtid(2);
        log.begin();
        log.query('DELETE FROM `app`.`memory`');
        log.query('COMMIT');
      },
    ],
    [
      'row events that only close a statement',
      (log) => {
        log.gtid(2);
        log.begin();
        log.tableMap(80, ORDERS);
        log.add(30, Buffer.of(0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 2, 0, 0));
        log.xid();
      },
    ],
  ])('%s', (_, events) => {
    expect(passes(events)).toEqual([[1], [100]]);
  });
});

describe('a log that does not name columns', () => {
  const nameless = (log: LogWriter, table = OUTBOX) => {
    log.gtid(2);
    log.begin();
    log.tableMap(95, table, minimalMetadata(table));
    log.insert(95, table, [outboxRow(2, { status: 3 })]);
    log.xid();
  };
  it('is read by the definition of now, labels with commas and quotes too (D9)', () => {
    const log = new LogWriter();
    log.gtid(2);
    log.begin();
    log.tableMap(95, OUTBOX, minimalMetadata(OUTBOX));
    log.insert(95, OUTBOX, [outboxRow(2, { status: 3 }), outboxRow(3, { status: 1 })]);
    log.xid();
    const reader = readerOf({ definition: DEFINITION });
    for (const event of log.events) reader.event(event, 0, event.length);
    expect(reader.seal()!.transactions.map(idsOf)).toEqual([[2]]);
  });

  it.each<[string, ReaderParts]>([
    ['the table is not visible', {}],
    ['it has another number of columns now', { definition: fewer(DEFINITION) }],
    ['columns have other types now', { definition: swapped(DEFINITION) }],
    ['a column was longer then', { definition: longer(DEFINITION) }],
    ['E1 the table was rebuilt since', { definition: { ...DEFINITION, createdAtSeconds: 1_900_000_000 } }],
  ])('is left to the sweep when %s', (_, parts) => {
    const log = new LogWriter();
    nameless(log);
    const reader = readerOf(parts);
    log.events.forEach((event) => reader.event(event, 0, event.length));
    const [{ undecodable }] = reader.seal()!.transactions;
    expect(undecodable?.code).toBe('BINLOG_UNSUPPORTED');
    expect(undecodable?.detail).toMatch(/^binlog\.000001:\d+: .*binlog_row_metadata = FULL/);
  });

  it('is passed over when rows from before are updated or deleted', () => {
    const log = new LogWriter();
    log.gtid(2);
    log.begin();
    log.tableMap(95, OUTBOX, minimalMetadata(OUTBOX));
    log.update(95, OUTBOX, [[outboxRow(2), outboxRow(2, { value: 'new' })]]);
    log.delete(95, OUTBOX, [outboxRow(2)]);
    log.xid();
    const reader = readerOf({ definition: fewer(DEFINITION) });
    log.events.forEach((event) => reader.event(event, 0, event.length));
    expect(reader.seal()!.transactions).toEqual([]);
  });

  it.each<[string, ReaderParts, RegExp]>([
    ['nobody has looked for statements that changed it', { lookedAhead: null }, /read ahead/],
    ['E1 a statement behind what was looked at may have changed it', {}, /asked for again/],
  ])('is given up for a new stream when %s', (_, parts, detail) => {
    const log = new LogWriter();
    alter(log);
    nameless(log);
    const reader = readerOf({ definition: DEFINITION, ...parts });
    const error = caught(() => log.events.forEach((event) => reader.event(event, 0, event.length)));
    expect(error.fault).toMatchObject({ code: 'MYSQL_SCHEMA', disposition: 'retry' });
    expect(error.message).toMatch(detail);
  });

  it('S24 is given up for a new stream when a statement could not be read, which may have changed it', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.add(2, Buffer.alloc(5));
    nameless(log);
    const reader = readerOf({ definition: DEFINITION, tolerant: true });
    const error = caught(() => log.events.forEach((event) => reader.event(event, 0, event.length)));
    expect(error.fault).toMatchObject({ code: 'MYSQL_SCHEMA', disposition: 'retry' });
  });

  it('E1 is read behind the last statement that may have changed it, and left to the sweep before', () => {
    const log = new LogWriter();
    nameless(log);
    alter(log);
    const changedAt = log.position;
    nameless(log);
    const reader = readerOf({ definition: DEFINITION, lookedAhead: { upTo: log.position, changedAt } });
    log.events.forEach((event) => reader.event(event, 0, event.length));
    const [before, behind] = reader.seal()!.transactions;
    expect(before.undecodable?.detail).toContain(
      `app.outbox may have changed since, by the statement that ends at binlog.000001:${changedAt.offset}`,
    );
    expect(idsOf(before)).toEqual([]);
    expect(behind.undecodable).toBeNull();
    expect(idsOf(behind)).toEqual([2]);
  });

  it('E1 is read by its own names where it has them, and left to the sweep where the table was another', () => {
    const log = new LogWriter();
    log.gtid(2);
    log.begin();
    log.tableMap(91, without(OUTBOX, 'payload'));
    log.insert(91, OUTBOX, [outboxRow(2)]);
    log.xid();
    good(log, 3);
    const reader = readerOf({ definition: DEFINITION });
    log.events.forEach((event) => reader.event(event, 0, event.length));
    const [then, now] = reader.seal()!.transactions;
    expect(then.undecodable?.detail).toMatch(
      /^binlog\.000001:\d+: app\.outbox has no column payload, as the table was/,
    );
    expect(idsOf(now)).toEqual([3]);
  });
});

function caught(work: () => unknown): RelayError {
  try {
    work();
  } catch (error) {
    if (error instanceof RelayError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

const alter = (log: LogWriter) => {
  log.gtid(3);
  log.query('ALTER TABLE app.outbox MODIFY topic VARCHAR(249) AFTER aggregate_id');
};

const longer = (definition: TableDefinition) => ({
  ...definition,
  columns: definition.columns.map((column) =>
    column.name === 'topic' ? { ...column, columnType: 'varchar(250)', octetLength: 1000 } : column,
  ),
});

function changed(table: TestTable, name: string, change: Partial<TestTable['columns'][number]>): TestTable {
  return { ...table, columns: table.columns.map((each) => (each.name === name ? { ...each, ...change } : each)) };
}

function without(table: TestTable, name: string): TestTable {
  return changed(table, name, { name: 'renamed' });
}

function added(table: TestTable, column: TestTable['columns'][number]): TestTable {
  return { ...table, columns: [...table.columns, column] };
}

type Definition = NonNullable<ReaderParts['definition']>;

function fewer(definition: Definition): Definition {
  return { ...definition, columns: definition.columns.slice(1) };
}

function swapped(definition: Definition): Definition {
  const [first, second, ...rest] = definition.columns;
  return { ...definition, columns: [second, first, ...rest] };
}
