import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RelayError } from '../../../src/model/fault.ts';
import { comparePositions, type Position } from '../../../src/model/position.ts';
import { isMariadb, startDatabase } from '../../stack/flavour.ts';
import { until } from '../../stack/until.ts';
import {
  BinlogBed,
  checkpointAt,
  plain,
  type ReadLog,
  type ReadTransaction,
  type SourceOptions,
} from './binlog-bed.ts';

/** On a server of its own: it is restarted, and told what its log is to say about columns. */
let bed: BinlogBed;
beforeAll(async () => (bed = await BinlogBed.open(await startDatabase())));
afterAll(() => bed[Symbol.asyncDispose]());

const COLUMNS = { eventType: null, headers: null, status: null, availableAt: null, createdAt: null };
const OWN = `id INT AUTO_INCREMENT PRIMARY KEY, topic VARCHAR(50), aggregate_id VARCHAR(50), payload JSON,
  idempotency_key BINARY(16)`;

let tables = 0;

/** An outbox table of a test's own, `topic` and `aggregate_id` of one type. */
class Table {
  readonly name = `outbox_${++tables}`;
  readonly options: SourceOptions = { outboxes: [bed.outbox(this.name, COLUMNS)] };

  static async create(columns = OWN, behind = ''): Promise<Table> {
    const table = new Table();
    await bed.sql(`CREATE TABLE ${table.name} (${columns}) ${behind}`);
    return table;
  }

  insert = (n: number) => bed.sql(insertInto(this.name, n));
  alter = (how: string) => bed.sql(`ALTER TABLE ${this.name} ${how}`);
  from = (position: Position) => bed.readFrom(position, this.options);
}

function insertInto(table: string, n: number): string {
  return `INSERT INTO ${table} (topic, aggregate_id, payload) VALUES ('topic', 'key ${n}', '{"n": ${n}}')`;
}

/** As `insert` wrote them? Topic and key are where a swap would show. */
function expectRows(log: ReadLog, ...numbers: number[]): void {
  const rows = log.transactions.flatMap((transaction) => transaction.rows);
  expect(rows.map(({ topic, key }) => [topic, key])).toEqual(numbers.map((n) => ['topic', `key ${n}`]));
  expect(rows.every(({ value }) => value !== null)).toBe(true);
}

/** Rows before and behind what `change` does, all read when it is over. */
async function readAcross(table: Table, change: () => Promise<unknown>): Promise<ReadLog> {
  const from = await bed.head();
  await table.insert(1);
  await change();
  await table.insert(2);
  return table.from(from);
}

/** Reads on while `work` goes on, a stream after the other, until `count` rows have come. */
async function readWhile(table: Table, count: number, work: (seen: () => number) => Promise<void>): Promise<ReadLog> {
  const log: { -readonly [K in keyof ReadLog]: ReadLog[K] } & { transactions: ReadTransaction[] } = {
    transactions: [],
    skipped: [],
    reached: await bed.head(),
    worthSaving: false,
  };
  const seen = () => log.transactions.flatMap(({ rows }) => rows).length;
  const stop = new AbortController();
  const source = bed.source(table.options);
  const reading = (async () => {
    while (!stop.signal.aborted) {
      try {
        for await (const group of source.stream(checkpointAt(log.reached), stop.signal)) {
          for (const transaction of group.transactions) log.transactions.push(await plain(transaction));
          log.reached = group.reached;
        }
      } catch (error) {
        if (!(error instanceof RelayError) || error.fault.disposition !== 'retry') throw error;
      }
    }
  })();
  const working = work(seen).then(() => until(() => seen() >= count, { withinMs: 20_000, what: `${count} rows` }));
  await Promise.race([working, reading]);
  stop.abort();
  await reading;
  return log;
}

function withMetadata(value: string): void {
  let before = '';
  beforeAll(async () => {
    before = String((await bed.sql('SELECT @@GLOBAL.binlog_row_metadata AS v'))[0]['v']);
    await bed.sql(`SET GLOBAL binlog_row_metadata = ${value}`);
  });
  afterAll(() => bed.sql(`SET GLOBAL binlog_row_metadata = ${before}`));
}

const SWAPS: [string, string][] = [
  ['moved', 'MODIFY topic VARCHAR(50) AFTER aggregate_id'],
  ['renamed', 'RENAME COLUMN topic TO aggregate_id, RENAME COLUMN aggregate_id TO topic'],
];

/** What gh-ost does: a copy with other columns, filled row by row, takes the table's place. */
async function cutOver({ name }: Table, ghost: string): Promise<void> {
  await bed.sql(`INSERT INTO ${ghost} (id, topic, aggregate_id, payload)
                 SELECT id, topic, aggregate_id, payload FROM ${name}`);
  await bed.sql(`RENAME TABLE ${name} TO _${name}_del, ${ghost} TO ${name}`);
}

async function createGhost({ name }: Table): Promise<string> {
  const ghost = `_${name}_gho`;
  await bed.sql(`CREATE TABLE ${ghost} LIKE ${name}`);
  await bed.sql(`ALTER TABLE ${ghost} MODIFY topic VARCHAR(50) AFTER aggregate_id`);
  return ghost;
}

describe('a log that names columns', () => {
  it.each(SWAPS)(
    'E1 two columns of one type %s while nobody reads: rows from before and behind are right',
    async (_, how) => {
      const table = await Table.create();
      expectRows(await readAcross(table, () => table.alter(how)), 1, 2);
    },
  );

  it('E3 a copy takes the place of the table: each row once, and what was copied is nobody’s event', async () => {
    const table = await Table.create();
    const log = await readAcross(table, async () => {
      await cutOver(table, await createGhost(table));
      await bed.sql(`CREATE TABLE other_${table.name} (id INT)`);
      await bed.sql(`INSERT INTO other_${table.name} VALUES (1)`);
      await bed.sql(`DROP TABLE other_${table.name}`);
      await bed.sql(`DROP TABLE _${table.name}_del`);
    });
    expectRows(log, 1, 2);
  });

  it('E3 a copy that triggers fill takes the place of the table', async () => {
    const table = await Table.create();
    const copy = await createGhost(table);
    await bed.sql(`CREATE TRIGGER copy_${table.name} AFTER INSERT ON ${table.name} FOR EACH ROW
      REPLACE INTO ${copy} (id, topic, aggregate_id, payload) VALUES (NEW.id, NEW.topic, NEW.aggregate_id, NEW.payload)`);
    const log = await readAcross(table, async () => {
      await bed.sql(`RENAME TABLE ${table.name} TO _${table.name}_old, ${copy} TO ${table.name}`);
      await bed.sql(`DROP TABLE _${table.name}_old`);
    });
    expectRows(log, 1, 2);
  });

  it('E3 a table that is gone by the time its rows are read', async () => {
    const table = await Table.create();
    const from = await bed.head();
    await table.insert(1);
    await bed.sql(`DROP TABLE ${table.name}`);
    expectRows(await table.from(from), 1);
  });

  it('E4 a table number that another table had before the server was started again', async () => {
    const table = await Table.create();
    const other = await Table.create();
    const from = await bed.head();
    const numbers = new Map([table, other].map(({ name }) => [name, new Set<number>()]));
    for (let start = 0; start < 2; start++) {
      await bed.server!.stop();
      await bed.server!.start();
      const { file } = await bed.head();
      const inTurn = [table, other];
      if (start === 1) inTurn.reverse();
      for (const each of inTurn) await each.insert(start + 1);
      for (const { Info } of await bed.sql(`SHOW BINLOG EVENTS IN '${file}'`)) {
        const [, number, name] = /^table_id: (\d+) \(\w+\.(\w+)\)/.exec(String(Info)) ?? [];
        numbers.get(name)?.add(Number(number));
      }
    }
    const others = numbers.get(other.name)!;
    expect([...numbers.get(table.name)!].filter((number) => others.has(number))).not.toEqual([]);
    expectRows(await table.from(from), 1, 2);
    expectRows(await other.from(from), 1, 2);
  });

  it('columns added and dropped in the middle, at once and by a rebuild', async () => {
    const table = await Table.create();
    const log = await readAcross(table, async () => {
      await table.alter('ADD COLUMN first_one VARCHAR(50) FIRST, ADD COLUMN x INT AFTER topic');
      await table.insert(11);
      await table.alter('DROP COLUMN first_one');
      await table.insert(12);
      await table.alter("DROP COLUMN x, ADD COLUMN y VARCHAR(50) DEFAULT 'y' AFTER id, ALGORITHM=COPY");
      await table.insert(13);
      await table.alter('ADD COLUMN z VARCHAR(50) AFTER y, ALGORITHM=INSTANT');
      await table.insert(14);
    });
    expectRows(log, 1, 11, 12, 13, 14, 2);
  });

  it('columns that are generated or invisible, before, between and behind those that are read', async () => {
    const [id, ...rest] = OWN.split(/,(?![^(]*\))/);
    const table = await Table.create(`g1 VARCHAR(50) GENERATED ALWAYS AS (UPPER(topic)) VIRTUAL, ${id},
      i1 VARCHAR(50) INVISIBLE DEFAULT 'i', g2 VARCHAR(50) GENERATED ALWAYS AS (UPPER(topic)) STORED, ${rest.join(',')},
      g3 INT GENERATED ALWAYS AS (CHAR_LENGTH(topic)) VIRTUAL, i2 INT INVISIBLE DEFAULT 7`);
    expectRows(await readAcross(table, () => table.alter('ADD COLUMN g4 INT AS (i2 + 1) VIRTUAL AFTER g2')), 1, 2);
  });

  it('another primary key, and another order of its columns', async () => {
    const table = await Table.create();
    const log = await readAcross(table, async () => {
      await table.alter(
        'ADD COLUMN day INT NOT NULL DEFAULT 3, DROP PRIMARY KEY, ADD PRIMARY KEY (day, id), ADD KEY (id)',
      );
      await table.insert(11);
      await table.alter('DROP PRIMARY KEY, ADD PRIMARY KEY (id)');
    });
    expectRows(log, 1, 11, 2);
    expect(log.transactions.flatMap(({ rows }) => rows.map(({ id }) => id))).toEqual(['1', '2', '3']);
  });

  it('a partitioned table that is partitioned anew', async () => {
    const table = await Table.create(OWN, 'PARTITION BY HASH (id) PARTITIONS 3');
    const log = await readAcross(table, async () => {
      await table.alter(
        'PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (2), PARTITION high VALUES LESS THAN MAXVALUE)',
      );
      await table.insert(11);
      await table.alter('REMOVE PARTITIONING');
    });
    expectRows(log, 1, 11, 2);
  });

  it.each([70, 300])('a table of %i further columns, some of them NULL', async (count) => {
    const more = Array.from(
      { length: count },
      (_, n) => `n${n} ${n % 3 === 0 ? 'INT' : 'VARCHAR(3)'} DEFAULT ${n % 2 === 0 ? 'NULL' : '1'}`,
    );
    const half = more.splice(count / 2);
    const table = await Table.create(`${more.join(', ')}, ${OWN}, ${half.join(', ')}`);
    expectRows(await readAcross(table, () => Promise.resolve()), 1, 2);
  });

  it.each([
    'TINYINT',
    'DOUBLE',
    'DECIMAL(5,2)',
    'BIT(3)',
    'YEAR',
    'DATE',
    'TIME(3)',
    'DATETIME(3)',
    'TIMESTAMP(3) NULL',
    'BINARY(3)',
    'BLOB',
    'JSON',
    'GEOMETRY',
    'POINT',
    "ENUM('a')",
    "SET('a')",
    isMariadb() ? 'INET6' : 'VECTOR(3)',
    isMariadb() ? 'VARCHAR(20) COMPRESSED' : 'GEOMETRYCOLLECTION',
  ])('a neighbour of type %s lends its sign and character set to nobody', async (type) => {
    const table = await Table.create(`x ${type}, id BIGINT UNSIGNED PRIMARY KEY, n INT, topic VARCHAR(50) CHARACTER SET
      latin1, other VARCHAR(9) CHARACTER SET utf16, aggregate_id BIGINT UNSIGNED, payload TEXT CHARACTER SET latin1,
      idempotency_key BINARY(16)`);
    const big = '18446744073709551615';
    const log = await bed.read(
      () => bed.sql(`INSERT INTO ${table.name} (id, topic, aggregate_id, payload) VALUES (${big}, 'tö', ${big}, 'pü')`),
      table.options,
    );
    expect(log.transactions[0].rows).toMatchObject([{ id: big, topic: 'tö', key: big, value: 'pü' }]);
  });

  it('E1 rows from before a column that is read was there are left to the sweep', async () => {
    const table = await Table.create(OWN.replace('payload JSON', 'body JSON'));
    const from = await bed.head();
    await bed.sql(`INSERT INTO ${table.name} (topic, aggregate_id, body) VALUES ('topic', 'key 1', '{}')`);
    await table.alter('RENAME COLUMN body TO payload');
    await table.insert(2);
    const log = await table.from(from);
    expect(log.transactions[0].undecodable?.detail).toMatch(
      /^[\w.]+:\d+: .* has no column payload, as the table was then$/,
    );
    expect(log.transactions[0].rows).toEqual([]);
    expectRows({ ...log, transactions: log.transactions.slice(1) }, 2);
  });

  it('C5 columns in no order that a name would give', async () => {
    const [id, topic, aggregate, payload, key] = OWN.split(/,(?![^(]*\))/);
    const table = await Table.create([topic, key, id, payload, aggregate].join(','));
    expectRows(await readAcross(table, () => table.alter('MODIFY aggregate_id VARCHAR(50) FIRST')), 1, 2);
  });

  it('columns that change while the log is read', async () => {
    const table = await Table.create();
    const log = await readWhile(table, 6, async (seen) => {
      for (let n = 1; n <= 6; n++) {
        await table.insert(n);
        await until(() => seen() >= n, { withinMs: 20_000, what: `row ${n}` });
        await table.alter(`MODIFY topic VARCHAR(50) AFTER ${n % 2 === 0 ? 'id' : 'aggregate_id'}`);
      }
    });
    expectRows(log, 1, 2, 3, 4, 5, 6);
  });
});

const LESS = isMariadb() ? ['MINIMAL', 'NO_LOG'] : ['MINIMAL'];

describe.each(LESS)('a log that does not name columns (binlog_row_metadata = %s)', (metadata) => {
  withMetadata(metadata);

  it('C5 is read by the definition of now, in the order of the columns', async () => {
    const [id, topic, aggregate, payload, key] = OWN.split(/,(?![^(]*\))/);
    const table = await Table.create([topic, key, id, payload, aggregate].join(','));
    expectRows(await readAcross(table, () => bed.sql('FLUSH TABLES')), 1, 2);
  });

  it('is read when triggers, indexes and views of the table came, and its neighbours changed', async () => {
    const table = await Table.create();
    const log = await readAcross(table, async () => {
      await bed.sql(`CREATE TABLE placed_${table.name} (id INT)`);
      await bed.sql(
        `CREATE TRIGGER t_${table.name} AFTER INSERT ON placed_${table.name} FOR EACH ROW ${insertInto(table.name, 11)}`,
      );
      // By its times a table of a MariaDB is a new one then: rows of an earlier second are left to the sweep.
      if (!isMariadb()) {
        await bed.sql(`CREATE INDEX by_topic ON ${table.name} (topic)`);
        await bed.sql(`DROP INDEX by_topic ON ${table.name}`);
      }
      await bed.sql(`CREATE VIEW v_${table.name} AS SELECT id FROM ${table.name}`);
      await bed.sql(`ALTER TABLE placed_${table.name} ADD COLUMN x INT`);
      await bed.sql(`INSERT INTO placed_${table.name} VALUES (1, 1)`);
      await bed.sql(`DROP TABLE placed_${table.name}`);
    });
    expectRows(log, 1, 11, 2);
  });

  it.each(SWAPS)(
    'E1 rows from before two columns of one type were %s are left to the sweep, within one second too',
    async (_, how) => {
      const table = await Table.create();
      const from = await bed.head();
      await table.insert(1);
      await table.alter(how);
      await table.insert(2);
      expectLeft(await table.from(from), table, 2);
    },
  );

  it('E3 rows of a table whose place a copy took that was made before them are left to the sweep', async () => {
    const table = await Table.create();
    const ghost = await createGhost(table);
    await nextSecond(); // by their times the rows are the copy's
    const from = await bed.head();
    await table.insert(1);
    await cutOver(table, ghost);
    await table.insert(2);
    expectLeft(await table.from(from), table, 2);
  });

  it.each([
    ['longer', 'MODIFY topic VARCHAR(60)'],
    ['another type', 'MODIFY topic CHAR(50)'],
    ['one more', 'ADD COLUMN more INT'],
    ['one less', 'ADD COLUMN more INT, DROP COLUMN payload, ADD COLUMN payload JSON'],
  ])('rows from before columns have changed are left to the sweep: %s', async (_, how) => {
    const table = await Table.create();
    const from = await bed.head();
    await table.insert(1);
    await table.alter(how);
    await nextSecond(); // a row of the second of its table's rebuild is not taken for older
    await table.insert(2);
    expectLeft(await table.from(from), table, 2);
  });

  it('E3 rows of a table that is gone are left to a sweep that finds none', async () => {
    const table = await Table.create();
    const from = await bed.head();
    await table.insert(1);
    await bed.sql(`DROP TABLE ${table.name}`);
    expectLeft(await table.from(from), table);
  });

  it('E1 what is changed or deleted of rows from before is passed over', async () => {
    const table = await Table.create();
    await table.insert(1);
    await table.insert(2);
    const from = await bed.head();
    await bed.sql(`UPDATE ${table.name} SET payload = '{}' WHERE id = 1`);
    await bed.sql(`DELETE FROM ${table.name} WHERE id = 2`);
    await table.alter('MODIFY topic VARCHAR(50) AFTER aggregate_id');
    expect((await table.from(from)).transactions).toEqual([]);
  });

  it('E1 goes on, and is right, when columns are swapped while the log is read', async () => {
    const table = await Table.create();
    const log = await readWhile(table, 4, async (seen) => {
      for (let n = 1; n <= 4; n++) {
        await table.insert(n);
        await until(() => seen() >= n, { withinMs: 20_000, what: `row ${n}` });
        await nextSecond(); // a row of the second of its table's creation is not taken for older
        await table.alter(`MODIFY topic VARCHAR(50) AFTER ${n % 2 === 0 ? 'id' : 'aggregate_id'}`);
      }
    });
    expectRows(log, 1, 2, 3, 4);
  });

  it('is read on when the log begins to name them', async () => {
    const table = await Table.create();
    const log = await readAcross(table, () => bed.sql('SET GLOBAL binlog_row_metadata = FULL'));
    await bed.sql(`SET GLOBAL binlog_row_metadata = ${metadata}`);
    expectRows(log, 1, 2);
  });
});

/** The first transaction has no rows; why says where, which table, and what to do. Behind it come these. */
function expectLeft(log: ReadLog, table: Table, ...behind: number[]): void {
  const [left, ...rest] = log.transactions;
  expect(left.rows).toEqual([]);
  expectRows({ ...log, transactions: rest }, ...behind);
  expect(rest.every(({ undecodable }) => undecodable === null)).toBe(true);
  expect(left.undecodable).toMatchObject({ code: 'BINLOG_UNSUPPORTED', disposition: 'halt' });
  const { detail } = left.undecodable!;
  const [, file, offset] = /^([\w.]+):(\d+): /.exec(detail) ?? [];
  expect(comparePositions({ file, offset: Number(offset) }, left.end)).toBeLessThan(0);
  expect(detail).toContain(`${bed.bed.database}.${table.name}`);
  expect(detail).toContain('binlog_row_metadata = FULL');
  expect(detail).not.toContain('key 1');
}

/** The server keeps the time of a rebuild in whole seconds. */
async function nextSecond(): Promise<void> {
  const now = async () => Number((await bed.sql('SELECT UNIX_TIMESTAMP() AS now'))[0]['now']);
  const began = await now();
  await until(async () => (await now()) > began, { withinMs: 20_000, what: "the server's next second" });
}
