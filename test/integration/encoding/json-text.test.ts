import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import type { RowDataPacket } from 'mysql2';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { jsonTextBound, jsonTextLength, writeJson } from '../../../src/encoding/json-text.ts';
import { recordBound, writeRecord } from '../../../src/encoding/record.ts';
import { emptyRow, Form } from '../../../src/model/row.ts';
import { logHead } from '../../stack/log-head.ts';
import { testBed, type TestBed } from '../../stack/test-bed.ts';
import { jsonExpressions } from './json-expressions.ts';
import { storedJson } from './stored-json.ts';

/** What the encoder makes of the bytes in the binlog, against the server's own `CAST(doc AS CHAR)`. */
const RANDOM_DOCUMENTS = 6_000;
const ROWS_PER_INSERT = 300;

let bed: TestBed;
let table = '';
let tables = 0;

beforeAll(async () => {
  bed = await testBed();
});
afterAll(async () => {
  await bed[Symbol.asyncDispose]();
});
beforeEach(async () => {
  table = `docs_${++tables}`;
  await bed.pool.query(`CREATE TABLE ${table} (id INT PRIMARY KEY AUTO_INCREMENT, doc JSON NOT NULL)`);
});

test(`D2: ${RANDOM_DOCUMENTS} random documents, some of them changed in place`, async () => {
  const seed = randomInt(2 ** 31);
  const expressions = fc.sample(jsonExpressions, { numRuns: RANDOM_DOCUMENTS, seed });
  const from = await head();
  for (let i = 0; i < expressions.length; i += ROWS_PER_INSERT) await insert(expressions.slice(i, i + ROWS_PER_INSERT));
  // In-place changes leave holes and values out of order.
  await bed.pool.query(
    `UPDATE ${table} SET doc = JSON_REPLACE(doc, '$.a', 'x', '$[1]', 7, '$."10"', NULL) WHERE id % 3 = 0;
     UPDATE ${table} SET doc = JSON_REMOVE(doc, '$[0]', '$.a') WHERE id % 5 = 0;
     UPDATE ${table} SET doc = JSON_SET(doc, '$."9"', 1.5, '$.new', CAST('2026-01-02' AS DATE)) WHERE id % 7 = 0`,
  );
  const last = await bed.pool.query<RowDataPacket[]>(`SELECT MAX(id) AS id FROM ${table}`);
  await insert(['CAST(\'"last"\' AS JSON)']);
  const compared = await compare(from, (id) => `seed ${seed}: ${expressions[id - 1]}`);
  expect(compared).toBe(RANDOM_DOCUMENTS + 1);
  expect(last[0][0]['id']).toBe(RANDOM_DOCUMENTS);
});

test('every column type inside a document', async () => {
  await bed.pool.query(
    `CREATE TABLE types (id INT PRIMARY KEY, ti TINYINT, bi BIGINT UNSIGNED, f FLOAT, d DOUBLE, n DECIMAL(65,30), bt BIT(10),
      da DATE, t0 TIME, t6 TIME(6), dt DATETIME(3), ts TIMESTAMP(6) NULL, ts0 TIMESTAMP NULL, y YEAR, c CHAR(9), vc VARCHAR(99),
      b BINARY(4), vb VARBINARY(99), bl LONGBLOB, tx TEXT, en ENUM('a,b','it''s'), se SET('x','y'), g GEOMETRY, j JSON,
      u VARCHAR(9) CHARACTER SET latin1, bo BOOLEAN);
     SET time_zone = '+05:30';
     INSERT INTO types VALUES (1, -128, 18446744073709551615, 1.1, 1.1, 123.456, b'1100000001', '2026-02-28', '-01:02:03',
      '838:59:58.999999', '2026-01-02 03:04:05.678', '2026-01-02 03:04:05.000001', '2038-01-01', 2155, 'é', 'q"uote', X'00FF', X'',
      REPEAT(X'FF', 500), '\\\\n', 'it''s', 'x,y', ST_GeomFromText('POLYGON((0 0,0 1,1 1,0 0))'), '{"k": [1, 2.50, null]}',
      'café€', true);
     SET time_zone = DEFAULT`,
  );
  const columns = 'ti bi f d n bt da t0 t6 dt ts ts0 y c vc b vb bl tx en se g j u bo'.split(' ');
  const from = await head();
  const members = columns.map((name) => `'${name}', ${name}`).join(', ');
  await bed.pool.query(
    `INSERT INTO ${table} (doc) SELECT JSON_OBJECT(${members}) FROM types;
     INSERT INTO ${table} (doc) SELECT JSON_ARRAY(${columns.join(', ')}) FROM types;
     ${columns.map((name) => `INSERT INTO ${table} (doc) SELECT JSON_EXTRACT(JSON_ARRAY(${name}), '$[0]') FROM types`).join(';')}`,
  );
  expect(await compare(from, (id) => columns[id - 3] ?? 'all')).toBe(columns.length + 2);
});

describe('cases from the field', () => {
  test.for([
    [
      'D3: big numbers',
      [
        `'{"TemplateId":7088992364139642880,"u":18446744073709551615}'`,
        `JSON_OBJECT('value', CAST(2147483648 AS UNSIGNED))`,
        `JSON_ARRAY(9223372036854775807, CAST(9223372036854775808 AS UNSIGNED), -9223372036854775808, 9007199254740993)`,
        `'[123456789012345678901234567890, 1.0, 1e20, -0.0, 3, 1, 2]'`,
      ],
    ],
    [
      'D4: small opaque values',
      [
        `JSON_OBJECT('amt', CAST(1.99 AS DECIMAL(3,2)), 'd', CAST('2026-01-02' AS DATE), 't', CAST('-01:00:00' AS TIME))`,
        `JSON_OBJECT('x', 1.0, 'y', CAST(0 AS DECIMAL(1,0)), 'z', CAST('-0.5' AS DECIMAL(1,1)), 'b', b'1', 'e', X'')`,
        `JSON_ARRAY(CAST('00:00:00' AS TIME), CAST('-00:00:00.000001' AS TIME(6)), CAST('0001-01-01' AS DATE))`,
      ],
    ],
    [
      'D5: the building of text',
      [
        `'{"":0,"键":"值","q":"a\\\\"b\\\\\\\\n\\\\n\\\\u0001","e":[],"n":null,"o":{}}'`,
        ...[`'"x"'`, `'null'`, `'true'`, `'[]'`, `'{}'`, `'""'`, `'0'`],
        `JSON_OBJECT('big', REPEAT('aé"', 30000), 'more', JSON_ARRAY(1, -70000, 70000, 1.5))`,
        `JSON_ARRAY(REPEAT('x', 127), REPEAT('x', 128), REPEAT('y', 16383), REPEAT('z', 16384), REPEAT(X'00', 70000))`,
        `JSON_OBJECT('__proto__', 1, '10', 2, '9', 3, 'constructor', 4)`,
        `CAST(CONCAT(REPEAT('[', 100), REPEAT(']', 100)) AS JSON)`,
      ],
    ],
  ] as [string, string[]][])('%s', async ([, expressions]) => {
    const from = await head();
    await insert(expressions);
    expect(await compare(from, (id) => expressions[id - 1])).toBe(expressions.length);
  });

  test('thousands of elements, in the large format', async () => {
    const from = await head();
    await bed.pool.query(
      `SET SESSION cte_max_recursion_depth = 20000;
       INSERT INTO ${table} (doc) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
         SELECT JSON_OBJECTAGG(CONCAT('key ', i), i * 7919) FROM n;
       INSERT INTO ${table} (doc) SELECT JSON_ARRAY(doc, doc->'$."key 5"') FROM ${table}`,
    );
    expect(await compare(from, (id) => `document ${id}`)).toBe(2);
  });

  test('a value of no bytes, which INSERT IGNORE leaves, is null', async () => {
    await bed.pool.query(`CREATE TABLE loose (id INT PRIMARY KEY, doc JSON NOT NULL)`);
    const from = await head();
    await bed.pool.query(`INSERT IGNORE INTO loose (id, doc) VALUES (1, NULL), (2, '1')`);
    table = 'loose';
    expect(await compare(from, () => 'INSERT IGNORE')).toBe(2);
  });
});

async function insert(expressions: string[]): Promise<void> {
  await bed.pool.query(
    `INSERT INTO ${table} (doc) VALUES ${expressions.map((expression) => `(${expression})`).join(',')}`,
  );
}

async function head(): Promise<{ file: string; offset: number }> {
  return logHead(async (text) => (await bed.pool.query<RowDataPacket[]>(text))[0]);
}

/** Compares every row of the table; returns how many there were. */
async function compare(from: { file: string; offset: number }, origin: (id: number) => string): Promise<number> {
  const [rows] = await bed.pool.query<RowDataPacket[]>(
    `SELECT id, CAST(doc AS CHAR) AS text, JSON_TYPE(doc) AS type FROM ${table} ORDER BY id`,
  );
  const stored = await storedJson(bed, table, from, Number(rows.at(-1)!['id']));
  for (const { id, text, type } of rows) {
    const document = stored.get(Number(id));
    if (document === undefined) throw new Error(`row ${id} is not in the binlog`);
    const out = Buffer.alloc(jsonTextBound(document.length));
    const end = writeJson(document, 0, document.length, out, 0);
    if (out.toString('utf8', 0, end) !== text) expect.soft(out.toString('utf8', 0, end), origin(Number(id))).toBe(text);
    if (jsonTextLength(document, 0, document.length) !== end) expect.fail(`another length: ${origin(Number(id))}`);
    if (type === 'OBJECT' && !headersOf(Form.Json, document).equals(headersOf(Form.Text, Buffer.from(String(text))))) {
      expect.fail(`other headers: ${origin(Number(id))}`);
    }
  }
  return rows.length;
}

/** A record whose headers are the document: its bytes must not depend on how the column was read. */
function headersOf(form: Form, bytes: Buffer): Buffer {
  const row = emptyRow();
  Object.assign(row.headers, { form, buffer: bytes, end: bytes.length });
  Object.assign(row.idempotencyKey, { form: Form.Text, buffer: Buffer.from('id'), end: 2 });
  const out = Buffer.alloc(recordBound(row));
  return out.subarray(0, writeRecord(out, 0, row, 0, 0));
}
