import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RelayError } from '../../../src/model/fault.ts';
import type { OutboxSettings, TopicRule } from '../../../src/model/settings.ts';
import { isMariadb } from '../../stack/flavour.ts';
import { BinlogBed, checkpointAt, keysOf } from './binlog-bed.ts';

let bed: BinlogBed;
beforeAll(async () => (bed = await BinlogBed.open()));
afterAll(() => bed[Symbol.asyncDispose]());

/** MariaDB 10.11 has none. */
const VECTOR = isMariadb()
  ? { type: 'INET6', value: "'::1'" }
  : { type: 'VECTOR(3)', value: "STRING_TO_VECTOR('[1,2,3]')" };

/** Every type that a column can have, with values; none of them is the relay's. */
const NEIGHBOURS = `
  c1 TINYINT, c2 SMALLINT UNSIGNED, c3 MEDIUMINT, c4 INT UNSIGNED, c5 BIGINT, c6 FLOAT, c7 DOUBLE, c8 DECIMAL(65,30),
  c9 DECIMAL(5,0), c10 DECIMAL(9,9), c11 BIT(1), c12 BIT(17), c13 BIT(64), c14 YEAR, c15 DATE, c16 TIME, c17 TIME(1),
  c18 TIME(6), c19 DATETIME, c20 DATETIME(3), c21 TIMESTAMP(2) NULL, c22 CHAR(3), c23 CHAR(255), c24 VARCHAR(10),
  c25 VARCHAR(300), c26 BINARY(7), c27 VARBINARY(400), c28 TINYBLOB, c29 BLOB, c30 MEDIUMTEXT, c31 LONGTEXT, c32 JSON,
  c33 ENUM('a,b','it''s'), c34 SET('x','y','z'), c35 GEOMETRY, c36 POINT, c37 ${VECTOR.type}, c38 CHAR(255) CHARACTER SET
  latin1, c39 VARCHAR(64) CHARACTER SET utf16, c40 INT GENERATED ALWAYS AS (c1 + 1) STORED,
  c41 INT GENERATED ALWAYS AS (c1 + 2) VIRTUAL, c42 INT INVISIBLE DEFAULT 5`;
const VALUES = `
  -5, 65535, -8388608, 4294967295, -9223372036854775808, 1.5, 2.5e300, -12345678901234567890.123456789, 12345, 0.123456789,
  b'1', b'10000000000000001', b'1111', 2026, '2026-11-30', '-838:59:59', '01:02:03.4', '01:02:03.456789',
  '2026-11-30 01:02:03', '2026-11-30 01:02:03.456', '2026-11-30 01:02:03.45', 'äöü', REPEAT('€', 255), 'short',
  REPEAT('l', 300), X'01020300', REPEAT('v', 400), 't', REPEAT('b', 60000), 'm', REPEAT('l', 70000),
  '{"a": [1, 2.5, "x"]}', 'it''s', 'x,z', ST_GeomFromText('LINESTRING(0 0,1 1)'), ST_GeomFromText('POINT(1 2)'),
  ${VECTOR.value}, REPEAT('é', 200), 'wide'`;
const NAMES = Array.from({ length: 39 }, (_, n) => `c${n + 1}`).join(', ');

const OWN = `id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, topic VARCHAR(100), aggregate_id VARCHAR(100), payload BLOB,
  idempotency_key VARBINARY(36), status ENUM('failed','pending') DEFAULT 'pending'`;
const FEW = { eventType: null, headers: null, availableAt: null, createdAt: null };

describe('columns', () => {
  it('of every type are stepped over, before and between those that are read', async () => {
    const [id, ...rest] = OWN.split(/,(?![^(]*\))/);
    await bed.sql(`CREATE TABLE neighbours (${id}, ${NEIGHBOURS}, ${rest.join(',')})`);
    const log = await bed.read(
      async () => {
        await bed.sql(`INSERT INTO neighbours (${NAMES}, topic, aggregate_id, payload, idempotency_key)
                       VALUES (${VALUES}, 't', 'all', 'p', 'k'), (${VALUES}, 't', 'again', 'p', 'k')`);
        await bed.sql("INSERT INTO neighbours (topic, aggregate_id) VALUES ('t', 'all null')");
      },
      { outboxes: [bed.outbox('neighbours', FEW)] },
    );
    expect(keysOf(log)).toEqual([['all', 'again'], ['all null']]);
    expect(log.transactions[0].rows[1]).toMatchObject({ id: '2', topic: 't', value: 'p', idempotencyKey: '6b' });
    expect(log.transactions[1].rows[0]).toMatchObject({ id: '3', value: null, idempotencyKey: null });
  });

  it.skipIf(isMariadb())('that only an index knows are not in the log (MySQL)', async () => {
    await bed.sql(`CREATE TABLE indexed (${OWN}, doc JSON, INDEX ((CAST(doc->'$.a' AS UNSIGNED ARRAY))),
                   INDEX ((UPPER(topic))))`);
    const log = await bed.read(
      () => bed.sql(`INSERT INTO indexed (topic, aggregate_id, doc) VALUES ('t', 'k', '{"a": [1, 2]}')`),
      { outboxes: [bed.outbox('indexed', FEW)] },
    );
    expect(keysOf(log)).toEqual([['k']]);
  });

  it('of a partitioned table come with further bytes before the rows', async () => {
    await bed.sql(`CREATE TABLE parts (${OWN.replace(' PRIMARY KEY', '')}, day INT, PRIMARY KEY (id, day))
                   PARTITION BY LIST (day) (PARTITION p1 VALUES IN (1), PARTITION p2 VALUES IN (2))`);
    const log = await bed.read(
      () =>
        bed.session(
          'BEGIN',
          "INSERT INTO parts (topic, aggregate_id, day) VALUES ('t', 'one', 1), ('t', 'two', 2)",
          "UPDATE parts SET day = 1, aggregate_id = 'moved' WHERE aggregate_id = 'two'",
          'COMMIT',
        ),
      { outboxes: [bed.outbox('parts', FEW)] },
    );
    expect(keysOf(log)).toEqual([['one', 'moved']]);
  });

  it('C5 are found by name, in whatever order they are', async () => {
    await bed.sql(`CREATE TABLE shuffled (status ENUM('failed','pending') DEFAULT 'pending', payload BLOB,
      idempotency_key VARBINARY(36), aggregate_id VARCHAR(100), topic VARCHAR(100), id INT AUTO_INCREMENT PRIMARY KEY)`);
    const log = await bed.read(
      () => bed.sql("INSERT INTO shuffled (topic, aggregate_id, payload) VALUES ('topic', 'key', 'value')"),
      { outboxes: [bed.outbox('shuffled', FEW)] },
    );
    expect(log.transactions[0].rows).toMatchObject([{ id: '1', topic: 'topic', key: 'key', value: 'value' }]);
  });

  it.each([
    ['TINYINT', '127'],
    ['TINYINT UNSIGNED', '255'],
    ['SMALLINT UNSIGNED', '65535'],
    ['MEDIUMINT UNSIGNED', '16777215'],
    ['INT UNSIGNED', '4294967295'],
    ['BIGINT', '9223372036854775807'],
    ['BIGINT UNSIGNED', '18446744073709551615'],
    ['BIGINT UNSIGNED', '9223372036854775817'],
    ['CHAR(36)', '1f0727b7-2cc9-6910-920c-b12f2d100600'],
    ['VARCHAR(400)', 'ä-€-😀'],
  ])('D3 a primary key of type %s: %s', async (type, id) => {
    const { outboxes, sql } = await keyTable(type, 'VARCHAR(20)');
    const log = await bed.read(() => sql(`('${id}', 'k')`), { outboxes });
    expect(log.transactions[0].rows[0].id).toBe(id);
  });

  it.each([
    ['TINYINT', '-128'],
    ['MEDIUMINT', '-5'],
    ['INT UNSIGNED', '4000000000'],
    ['BIGINT', '-9223372036854775808'],
    ['BIGINT', '-1'],
    ['BIGINT', '0'],
    ['BIGINT UNSIGNED', '18446744073709551615'],
    ['BIGINT UNSIGNED', '9007199254740993'],
    ['VARCHAR(100)', 'ä-€-😀'],
    ['VARCHAR(400) CHARACTER SET utf8mb3', 'ä-€'],
    ['VARCHAR(100) CHARACTER SET ascii', 'plain'],
    ['CHAR(20)', 'ü'],
    ['TEXT', 'tëxt'],
    ["ENUM('one','zwölf')", 'zwölf'],
    ["ENUM('é','b') CHARACTER SET utf8mb3", 'é'],
    ["ENUM('a','b') CHARACTER SET latin1", 'b'],
    ['VARBINARY(20)', 'raw'],
  ])('an aggregate id of type %s reads as SELECT shows it: %s', async (type, key) => {
    const { outboxes, sql, table } = await keyTable('INT', type);
    const log = await bed.read(() => sql(`(1, '${key}')`), { outboxes });
    const [row] = await bed.sql(`SELECT CAST(aggregate_id AS CHAR) AS k FROM ${table}`);
    expect(log.transactions[0].rows[0].key).toBe(String(row['k']));
    expect(log.transactions[0].rows[0].key).toBe(key);
  });

  it('D9 an ENUM of more than 255 labels', async () => {
    const labels = Array.from({ length: 300 }, (_, n) => `'label, ${n}'`);
    const { outboxes, sql } = await keyTable('INT', `ENUM(${labels.join(',')})`);
    const log = await bed.read(() => sql("(1, 'label, 299'), (2, 'label, 0')"), { outboxes });
    expect(keysOf(log)).toEqual([['label, 299', 'label, 0']]);
  });

  it('D9 labels with commas, quotes, backslashes and line breaks', async () => {
    const labels = "'a,b','it''s','\"','back\\\\slash','line\\nbreak','','ü'";
    const { outboxes, sql } = await keyTable('INT', `ENUM(${labels})`);
    const log = await bed.read(() => sql('(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7)'), { outboxes });
    expect(keysOf(log)).toEqual([['a,b', "it's", '"', 'back\\slash', 'line\nbreak', '', 'ü']]);
    const set = await keyTable('INT', "SET('it''s','\"','ü')");
    const sets = await bed.read(() => set.sql('(1, 7), (2, 0), (3, 5)'), { outboxes: set.outboxes });
    expect(keysOf(sets)).toEqual([['it\'s,",ü', '', "it's,ü"]]);
  });

  it('D7 latin1 is cp1252, and a status may be of any character set', async () => {
    await bed.sql(`CREATE TABLE d7 (id INT AUTO_INCREMENT PRIMARY KEY, topic VARCHAR(20) CHARACTER SET ucs2,
      aggregate_id VARCHAR(20), payload TEXT, idempotency_key VARCHAR(36), event_type VARCHAR(20), headers TEXT,
      status VARCHAR(20) CHARACTER SET utf16 DEFAULT 'pending') CHARACTER SET latin1`);
    const log = await bed.read(
      () =>
        bed.sql(`INSERT INTO d7 (topic, aggregate_id, payload, idempotency_key, event_type, headers, status) VALUES
                 ('töpic', X'636166E980', 'naïve €', 'schlüssel', 'größer', '{"ä": "€"}', 'pending'),
                 ('töpic', 'x', 'x', 'x', 'x', '{}', 'published')`),
      { outboxes: [bed.outbox('d7', { availableAt: null, createdAt: null })] },
    );
    expect(log.transactions[0].rows).toMatchObject([
      { topic: 'töpic', key: 'café€', value: 'naïve €', eventType: 'größer', headers: '{"ä": "€"}' },
    ]);
    expect(log.transactions[0].rows).toHaveLength(1);
    expect(Buffer.from(log.transactions[0].rows[0].idempotencyKey!, 'hex').toString()).toBe('schlüssel');
  });

  it.each([
    ['aggregate_id', 'FLOAT', 'FLOAT'],
    ['topic', 'FLOAT(7,2)', 'FLOAT(7,2)'],
    ['aggregate_id', 'DOUBLE(9,3)', 'DOUBLE(9,3)'],
    ['payload', 'DOUBLE', 'DOUBLE'],
    ['aggregate_id', 'INT(7) ZEROFILL', 'INT(7) UNSIGNED ZEROFILL'],
    ['aggregate_id', 'POINT', 'POINT'],
    ['status', 'DATE', 'DATE'],
    ...(isMariadb()
      ? [
          ['payload', 'INET6', 'INET6'],
          ['aggregate_id', 'UUID', 'UUID'],
        ]
      : [
          ['aggregate_id', 'JSON', 'JSON'],
          ['payload', 'VECTOR(3)', 'VECTOR(3)'],
          ['idempotency_key', 'JSON', 'JSON'],
        ]),
  ])('%s of type %s is refused before the first row', async (column, type, named) => {
    const table = `refused_${++tables}`;
    const others = ['topic', 'aggregate_id', 'payload', 'idempotency_key', 'status'].filter((name) => name !== column);
    const columns = others.map((name) => `${name} VARCHAR(20)`).join(', ');
    await bed.sql(`CREATE TABLE ${table} (id INT PRIMARY KEY, ${columns}, ${column} ${type})`);
    const error = await refusal(bed.outbox(table, FEW));
    expect(error.fault).toMatchObject({ code: 'BINLOG_UNSUPPORTED', disposition: 'halt' });
    expect(error.fault.detail).toContain(`column ${column} of ${bed.bed.database}.${table} is ${named}, `);
  });

  it('a configured column that the table does not have is refused before the first row', async () => {
    for (const columns of [{ payload: 'body' }, { lastError: 'why' }, { status: 'state' }]) {
      const error = await refusal(bed.outbox('outbox', columns));
      expect(error.fault).toMatchObject({ code: 'MYSQL_SCHEMA', disposition: 'halt' });
      expect(error.fault.detail).toBe(`${bed.bed.database}.outbox has no column ${Object.values(columns)[0]}`);
    }
    const topic: TopicRule = { kind: 'template', template: '{region}.x' };
    expect((await refusal(bed.outbox('outbox', {}, topic))).fault.detail).toContain('has no column region');
  });

  it.each(['DATETIME', 'DATETIME(1)', 'DATETIME(2)', 'DATETIME(3)', 'DATETIME(4)', 'DATETIME(5)', 'DATETIME(6)'])(
    'created_at and available_at of type %s and its TIMESTAMP, to the millisecond',
    async (type) => {
      for (const each of [type, type.replace('DATETIME', 'TIMESTAMP')]) {
        const table = `times_${each.replace(/\W/g, '')}`;
        await bed.sql(`CREATE TABLE ${table} (${OWN}, available_at ${each} NULL, created_at ${each} NULL)`);
        const times = [
          '1970-01-02 00:00:00.1',
          '2000-02-29 23:59:59.987654',
          '2026-11-30 12:34:56.123456',
          '2037-12-31',
        ];
        const log = await bed.read(
          () =>
            bed.session(
              "SET time_zone = '+00:00'",
              `INSERT INTO ${table} (aggregate_id, available_at, created_at) VALUES
               ${times.map((time, n) => `('${n}', NULL, '${time}')`).join(',')}, ('none', NULL, NULL),
               ('late', UTC_TIMESTAMP() + INTERVAL 2 SECOND, NULL), ('due', UTC_TIMESTAMP(), NULL)`,
            ),
          { outboxes: [bed.outbox(table, { eventType: null, headers: null })] },
        );
        const shown = await bed.sql(
          `SELECT FLOOR(1000 * TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) / 1000000) AS ms FROM ${table}
           WHERE created_at IS NOT NULL ORDER BY id`,
        );
        expect(keysOf(log)).toEqual([['0', '1', '2', '3', 'none', 'due']]);
        expect(log.transactions[0].rows.map(({ createdAtMs }) => createdAtMs)).toEqual([
          ...shown.map((row) => Number(row['ms'])),
          -1,
          -1,
        ]);
      }
    },
  );
});

describe('the topic', () => {
  it.each<[string, TopicRule, (string | null)[]]>([
    ['a fixed name', { kind: 'fixed', topic: 'all' }, ['all', 'all', 'all']],
    [
      'a template',
      { kind: 'template', template: 'x.{topic}.{n}.{status}' },
      ['x.one.7.pending', null, `x.${'w'.repeat(90)}.9.pending`],
    ],
    ['a column', { kind: 'column', column: 'TOPIC' }, ['one', null, 'w'.repeat(90)]],
  ])('comes from %s', async (name, topic, expected) => {
    const table = `topic_${name.replace(/\W/g, '')}`;
    await bed.sql(`CREATE TABLE ${table} (${OWN}, n INT)`);
    const log = await bed.read(
      () =>
        bed.sql(`INSERT INTO ${table} (topic, aggregate_id, n)
                 VALUES ('one', 'a', 7), (NULL, 'b', 8), (REPEAT('w', 90), 'c', 9)`),
      { outboxes: [bed.outbox(table, FEW, topic)] },
    );
    expect(log.transactions[0].rows.map((row) => row.topic)).toEqual(expected);
  });

  it('rows of several outbox tables in one transaction keep their order', async () => {
    await bed.sql(`CREATE TABLE second (${OWN})`);
    const log = await bed.read(
      () =>
        bed.session(
          'BEGIN',
          "INSERT INTO second (topic, aggregate_id) VALUES ('b', '1')",
          "INSERT INTO outbox (topic, aggregate_id) VALUES ('a', '2')",
          "INSERT INTO second (topic, aggregate_id) VALUES ('b', '3')",
          'COMMIT',
        ),
      { outboxes: [bed.outbox(), bed.outbox('second', FEW, { kind: 'fixed', topic: 'fixed' })] },
    );
    const [{ rows }] = log.transactions;
    expect(rows.map(({ outbox, topic, key }) => [outbox, topic, key])).toEqual([
      [1, 'fixed', '1'],
      [0, 'a', '2'],
      [1, 'fixed', '3'],
    ]);
  });
});

let tables = 0;

/** What a stream from the end of the log throws at once. */
async function refusal(outbox: OutboxSettings): Promise<RelayError> {
  const source = bed.source({ outboxes: [outbox] });
  const stream = source.stream(checkpointAt(await bed.head()), AbortSignal.timeout(60_000));
  const error: unknown = await stream[Symbol.asyncIterator]()
    .next()
    .catch((caught: unknown) => caught);
  if (!(error instanceof RelayError)) throw new Error('nothing was refused', { cause: error });
  return error;
}

/** A table with this primary key and aggregate id. */
async function keyTable(idType: string, keyType: string) {
  const table = `keys_${++tables}`;
  await bed.sql(`CREATE TABLE ${table} (id ${idType} PRIMARY KEY, topic VARCHAR(10), aggregate_id ${keyType},
    payload TEXT, idempotency_key BINARY(16), status VARCHAR(20) DEFAULT 'pending')`);
  return {
    table,
    outboxes: [bed.outbox(table, FEW)],
    sql: (values: string) => bed.sql(`INSERT INTO ${table} (id, aggregate_id) VALUES ${values}`),
  };
}
