import { describe, expect, it } from 'vitest';
import type { TableDefinition } from '../../../src/binlog/table-definition.ts';
import { RelayError, type Fault } from '../../../src/model/fault.ts';
import type { Position } from '../../../src/model/position.ts';
import { LogWriter, minimalMetadata, type TestTable } from './log-writer.ts';
import { idsOf, ORDERS, OUTBOX, outboxRow, readerOf, type ReaderParts } from './outbox-fixture.ts';

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

describe('what cannot be handled yet halts, and nothing behind it is handed on', () => {
  it.each<[string, (log: LogWriter) => void, RegExp]>([
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
        log.query('INSERT INTO outbox VALUES (2, "secret")');
      },
      /as text.*binlog_format/,
    ],
    [
      'a replace as text, from another schema',
      (log) => {
        log.gtid(2);
        log.begin();
        log.query('/* hint */ REPLACE INTO `app`.`outbox` VALUES (2)', 'elsewhere');
      },
      /as text/,
    ],
    [
      'LOAD DATA as text',
      (log) => {
        log.gtid(2);
        log.begin();
        const head = Buffer.alloc(26);
        head[8] = 3;
        log.add(18, Buffer.concat([head, Buffer.from("app\0LOAD DATA INFILE 'x' INTO TABLE `outbox`")]));
      },
      /as text/,
    ],
    [
      'an update as text behind outbox rows',
      (log) => {
        opened(log);
        log.insert(90, OUTBOX, [outboxRow(2)]);
        log.query('UPDATE outbox SET payload = 1');
      },
      /as text/,
    ],
    [
      'A6 an XA transaction with outbox rows',
      (log) => {
        opened(log);
        log.insert(90, OUTBOX, [outboxRow(2)]);
        log.add(38, Buffer.alloc(14));
      },
      /XA/,
    ],
    [
      'a partial update of a row just inserted',
      (log) => {
        opened(log);
        log.insert(90, OUTBOX, [outboxRow(2)]);
        log.add(39, Buffer.concat([Buffer.of(90, 0, 0, 0, 0, 0, 1, 0, 2, 0, 6), Buffer.alloc(20)]));
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
  ])('%s', (_, bad, detail) => {
    const { fault, ids } = haltedBy(bad);
    expect(fault).toMatchObject({ code: 'BINLOG_UNSUPPORTED', disposition: 'halt' });
    expect(fault.detail).toMatch(/binlog\.000001:\d+/);
    expect(fault.detail).toMatch(detail);
    expect(fault.detail).not.toContain('secret');
    expect(ids).toEqual([[1]]);
  });

  it('B10 an incident', () => {
    const { fault, ids } = haltedBy((log) => log.add(26, Buffer.of(1, 0, 0)));
    expect(fault).toMatchObject({ code: 'BINLOG_INCIDENT', disposition: 'halt' });
    expect(ids).toEqual([[1]]);
  });

  it('A10 a transaction over its bound that changes its own rows, named by where it begins', () => {
    let begins = 0;
    const { fault, ids } = haltedBy(
      (log) => {
        begins = log.offset;
        opened(log);
        for (let id = 2; id < 8; id++) log.insert(90, OUTBOX, [outboxRow(id, { value: 'x'.repeat(1000) })]);
        log.delete(90, OUTBOX, [outboxRow(3)]);
      },
      { maxTransactionBytes: 5000 },
    );
    expect(fault).toMatchObject({ code: 'BINLOG_TRANSACTION_TOO_LARGE', disposition: 'halt' });
    expect(fault.detail).toContain(`binlog.000001:${begins} `);
    expect(ids).toEqual([[1]]);
  });

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
        log.add(38, Buffer.alloc(14));
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
  const definition = {
    createdAtSeconds: 1_700_000_000,
    columns: [
      { name: 'id', dataType: 'bigint', columnType: 'bigint unsigned', characterSet: null, octetLength: null },
      { name: 'topic', dataType: 'varchar', columnType: 'varchar(249)', characterSet: 'utf8mb4', octetLength: 996 },
      {
        name: 'aggregate_id',
        dataType: 'varchar',
        columnType: 'varchar(128)',
        characterSet: 'utf8mb4',
        octetLength: 512,
      },
      { name: 'payload', dataType: 'longblob', columnType: 'longblob', characterSet: null, octetLength: 4294967295 },
      { name: 'idempotency_key', dataType: 'binary', columnType: 'binary(16)', characterSet: null, octetLength: 16 },
      {
        name: 'status',
        dataType: 'enum',
        columnType: "enum('a,b','it''s','pending')",
        characterSet: 'utf8mb4',
        octetLength: 28,
      },
    ],
  };

  it('is read by the definition of now, labels with commas and quotes too (D9)', () => {
    const log = new LogWriter();
    log.gtid(2);
    log.begin();
    log.tableMap(95, OUTBOX, minimalMetadata(OUTBOX));
    log.insert(95, OUTBOX, [outboxRow(2, { status: 3 }), outboxRow(3, { status: 1 })]);
    log.xid();
    const reader = readerOf({ definition });
    for (const event of log.events) reader.event(event, 0, event.length);
    expect(reader.seal()!.transactions.map(idsOf)).toEqual([[2]]);
  });

  it.each<[string, ReaderParts, (log: LogWriter) => void]>([
    ['the table is not visible', {}, nameless],
    ['it has another number of columns now', { definition: fewer(definition) }, nameless],
    ['columns have other types now', { definition: swapped(definition) }, nameless],
    ['a column was longer then', { definition: longer(definition) }, nameless],
    ['E1 the table was rebuilt since', { definition: { ...definition, createdAtSeconds: 1_900_000_000 } }, nameless],
  ])('halts when %s', (_, parts, bad) => {
    const log = new LogWriter();
    bad(log);
    const reader = readerOf(parts);
    const read = () => log.events.forEach((event) => reader.event(event, 0, event.length));
    expect(read).toThrow(/binlog_row_metadata = FULL/);
    expect(reader.seal()?.transactions ?? []).toEqual([]);
  });

  it.each<[string, ReaderParts, RegExp]>([
    ['nobody has looked for statements that changed it', { lookedAhead: null }, /read ahead/],
    ['E1 a statement behind what was looked at may have changed it', {}, /asked for again/],
  ])('is given up for a new stream when %s', (_, parts, detail) => {
    const log = new LogWriter();
    alter(log);
    nameless(log);
    const reader = readerOf({ definition, ...parts });
    const error = caught(() => log.events.forEach((event) => reader.event(event, 0, event.length)));
    expect(error.fault).toMatchObject({ code: 'MYSQL_SCHEMA', disposition: 'retry' });
    expect(error.message).toMatch(detail);
  });

  it('E1 is read behind the last statement that may have changed it, and halts before', () => {
    const log = new LogWriter();
    nameless(log);
    alter(log);
    const changedAt = log.position;
    nameless(log);
    const read = (from: Position, events: readonly Buffer[]) => {
      const reader = readerOf({ definition, from, lookedAhead: { upTo: log.position, changedAt } });
      events.forEach((event) => reader.event(event, 0, event.length));
      return reader.seal()!.transactions.map(idsOf);
    };
    const error = caught(() => read({ file: 'binlog.000001', offset: 4 }, log.events));
    expect(error.fault).toMatchObject({ code: 'BINLOG_UNSUPPORTED', disposition: 'halt' });
    expect(error.message).toContain(
      `app.outbox may have changed since, by the statement that ends at binlog.000001:${changedAt.offset}`,
    );
    expect(read(changedAt, log.events.slice(7))).toEqual([[2]]);
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
