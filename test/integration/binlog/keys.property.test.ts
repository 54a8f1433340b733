import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { charsetNamed } from '../../../src/encoding/charsets.ts';
import { isMariadb, startDatabase } from '../../stack/flavour.ts';
import { full } from '../../stack/full.ts';
import { seededRandom } from '../../stack/seeded-random.ts';
import { BinlogBed } from './binlog-bed.ts';
import { tailedBytes } from './key-bytes.ts';

/**
 * The one rule for every column that becomes text: the tail gives byte for byte what `CAST(… AS CHAR)` shows, and of
 * binary columns the bytes.
 */
const ROWS = full(150, 2_000);
const SEED = Number(process.env['CDC_RELAY_TEST_SEED'] ?? Date.now() % 1_000_000);
const FEW = { eventType: null, headers: null, availableAt: null, createdAt: null, status: null };

type Value = (random: () => number) => string;

const pick = (random: () => number, count: number): number => Math.floor(random() * count);

/** Hexadecimal literals of up to `bytes` bytes; many end in zeros. */
const bytes =
  (most: number): Value =>
  (random) => {
    const length = pick(random, most + 1);
    const zeros = random() < 0.3 ? pick(random, length + 1) : 0;
    const digits = Array.from({ length: length - zeros }, () => pick(random, 256).toString(16).padStart(2, '0'));
    return `X'${digits.join('')}${'00'.repeat(zeros)}'`;
  };

/** Text of characters that the set has: made by the server from Unicode, what it lacks becoming a question mark. */
const textOf = (...ranges: readonly [number, number][]): Value => {
  const all = [...ranges, [0x20, 0x7e] as const];
  return (random) => {
    const characters = Array.from({ length: pick(random, 12) }, () => {
      const [first, last] = all[pick(random, all.length)];
      return String.fromCodePoint(first + pick(random, last - first + 1));
    });
    return `'${characters.join('').replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
  };
};

const integer =
  (bits: number, signed: boolean): Value =>
  (random) => {
    const size = BigInt(pick(random, bits + 1));
    const value = BigInt.asUintN(bits, (BigInt(pick(random, 2 ** 32)) << 32n) | BigInt(pick(random, 2 ** 32)));
    const cut = size === 0n ? 0n : value >> (BigInt(bits) - size);
    return (signed ? BigInt.asIntN(bits, cut) : cut).toString();
  };

const decimal =
  (precision: number, scale: number): Value =>
  (random) => {
    const digits = (count: number): string => Array.from({ length: count }, () => pick(random, 10)).join('');
    const whole = digits(pick(random, precision - scale + 1));
    return `${random() < 0.5 ? '-' : ''}${whole === '' ? '0' : whole}.${digits(pick(random, scale + 1)) || '0'}`;
  };

const fraction = (random: () => number): string =>
  random() < 0.2 ? '' : `.${String(pick(random, 1e6)).padStart(6, '0')}`;
const two = (value: number): string => String(value).padStart(2, '0');
const clock = (random: () => number): string =>
  `${two(pick(random, 24))}:${two(pick(random, 60))}:${two(pick(random, 60))}`;
const date =
  (from: number, to: number): Value =>
  (random) =>
    `'${from + pick(random, to - from + 1)}-${two(1 + pick(random, 12))}-${two(1 + pick(random, 28))}'`;
const datetime =
  (from: number, to: number): Value =>
  (random) =>
    `'${date(from, to)(random).slice(1, -1)} ${clock(random)}${fraction(random)}'`;
const time: Value = (random) =>
  `'${random() < 0.5 ? '-' : ''}${pick(random, 838)}:${two(pick(random, 60))}:${two(pick(random, 60))}${fraction(random)}'`;

const LABELS = ['pending', 'a b', "it''s", 'zwölf', '', '€uro', 'back\\\\slash', '"', '{}', 'new\\nline'];
const MANY = Array.from({ length: 300 }, (_, n) => `'label, ${n}'`).join(',');
const SIXTY_FOUR = Array.from({ length: 64 }, (_, n) => `'s${n}'`).join(',');
const member =
  (labels: number): Value =>
  (random) =>
    String(1 + pick(random, labels));

const TYPES: readonly (readonly [type: string, value: Value])[] = [
  ['TINYINT', integer(8, true)],
  ['TINYINT UNSIGNED', integer(8, false)],
  ['SMALLINT', integer(16, true)],
  ['SMALLINT UNSIGNED', integer(16, false)],
  ['MEDIUMINT', integer(24, true)],
  ['MEDIUMINT UNSIGNED', integer(24, false)],
  ['INT', integer(32, true)],
  ['INT UNSIGNED', integer(32, false)],
  ['BIGINT', integer(64, true)],
  ['BIGINT UNSIGNED', integer(64, false)],
  ['DECIMAL(1,0)', decimal(1, 0)],
  ['DECIMAL(5,2)', decimal(5, 2)],
  ['DECIMAL(9,9)', decimal(9, 9)],
  ['DECIMAL(18,9) UNSIGNED', (random) => decimal(18, 9)(random).replace('-', '')],
  ['DECIMAL(65,30)', decimal(65, 30)],
  ['DECIMAL(65,0)', decimal(65, 0)],
  ['YEAR', (random) => (random() < 0.1 ? '0' : String(1901 + pick(random, 255)))],
  ['DATE', date(1, 9999)],
  ...[0, 1, 2, 3, 4, 5, 6].flatMap((digits): [string, Value][] => [
    [`TIME(${digits})`, time],
    [`DATETIME(${digits})`, datetime(1000, 9998)],
    [`TIMESTAMP(${digits}) NULL`, datetime(1971, 2037)],
  ]),
  ['BIT(1)', integer(1, false)],
  ['BIT(20)', (random) => String(pick(random, 128) * 65_536 + pick(random, 128) * 256 + pick(random, 128))],
  ['CHAR(40)', textOf([0xa1, 0x2ff], [0x4e00, 0x4eff], [0x1f600, 0x1f640])],
  ['VARCHAR(300)', textOf([0x20ac, 0x20ac], [0x1f600, 0x1f640])],
  ['VARCHAR(50) CHARACTER SET utf8mb3', textOf([0x3041, 0x3090])],
  ['VARCHAR(50) CHARACTER SET ascii', textOf()],
  ['CHAR(20) CHARACTER SET utf16', textOf([0xe0, 0xff], [0x1f600, 0x1f640])],
  ['TEXT CHARACTER SET utf16le', textOf([0xe0, 0xff], [0x1f600, 0x1f640])],
  ['VARCHAR(20) CHARACTER SET utf32', textOf([0xe0, 0xff], [0x1f600, 0x1f640])],
  ['CHAR(30) CHARACTER SET ucs2', textOf([0xe0, 0xff], [0x4e00, 0x4eff])],
  ['VARCHAR(30) CHARACTER SET latin1', textOf([0xa1, 0xff], [0x20ac, 0x20ac], [0x2018, 0x2020])],
  ['CHAR(255) CHARACTER SET latin1', textOf([0xa1, 0xff])],
  ['TINYTEXT CHARACTER SET latin2', textOf([0x100, 0x17f])],
  ['VARCHAR(30) CHARACTER SET cp1251', textOf([0x410, 0x44f])],
  ['VARCHAR(30) CHARACTER SET greek', textOf([0x391, 0x3c9])],
  ['VARCHAR(30) CHARACTER SET hebrew', textOf([0x5d0, 0x5ea])],
  ['VARCHAR(30) CHARACTER SET tis620', textOf([0xe01, 0xe30])],
  ['VARCHAR(30) CHARACTER SET swe7', textOf([0xc4, 0xd6])],
  ['VARCHAR(30) CHARACTER SET sjis', textOf([0x3041, 0x3090], [0x4e00, 0x4fff], [0xff61, 0xff9f])],
  ['VARCHAR(30) CHARACTER SET cp932', textOf([0x3041, 0x3090], [0x4e00, 0x4fff], [0x2460, 0x2473])],
  ['VARCHAR(30) CHARACTER SET ujis', textOf([0x3041, 0x3090], [0x4e00, 0x4fff])],
  ['VARCHAR(30) CHARACTER SET eucjpms', textOf([0x3041, 0x3090], [0x4e00, 0x4fff])],
  ['VARCHAR(30) CHARACTER SET gbk', textOf([0x4e00, 0x9fa5])],
  ['VARCHAR(30) CHARACTER SET gb2312', textOf([0x4e00, 0x9fa5])],
  ...(isMariadb()
    ? []
    : [['VARCHAR(30) CHARACTER SET gb18030', textOf([0x4e00, 0x9fa5], [0xe0, 0x2ff], [0x1f600, 0x1f640])] as const]),
  ['MEDIUMTEXT CHARACTER SET big5', textOf([0x4e00, 0x9fa5])],
  ['VARCHAR(30) CHARACTER SET euckr', textOf([0xac00, 0xd7a3])],
  ['BINARY(16)', bytes(16)],
  ['BINARY(255)', bytes(100)],
  ['VARBINARY(400)', bytes(60)],
  ['BLOB', bytes(60)],
  [`ENUM(${LABELS.map((label) => `'${label}'`).join(',')})`, member(LABELS.length)],
  [`ENUM('é','b','c') CHARACTER SET latin1`, member(3)],
  [`ENUM('é','b','c') CHARACTER SET utf16`, member(3)],
  [`ENUM(${MANY})`, member(300)],
  [`SET('a','it''s','ü') CHARACTER SET latin1`, integer(3, false)],
  [`SET(${SIXTY_FOUR})`, integer(64, false)],
];

describe.for(['FULL', 'MINIMAL'])('D2 keys, binlog_row_metadata=%s', (metadata) => {
  let bed: BinlogBed;
  beforeAll(async () => {
    const own = metadata === 'FULL' ? null : await startDatabase({ flags: [`--binlog-row-metadata=${metadata}`] });
    bed = await BinlogBed.open(own);
  });
  afterAll(() => bed[Symbol.asyncDispose]());

  test.for(TYPES.map(([type, value]) => [type.slice(0, 60), type, value] as const))('%s', async ([, type, value]) => {
    const random = seededRandom(SEED);
    const table = `k${pick(Math.random, 1e9)}`;
    await bed.sql(`CREATE TABLE ${table} (id INT AUTO_INCREMENT PRIMARY KEY, topic VARCHAR(10),
                   aggregate_id ${type} NULL, payload TEXT, idempotency_key BINARY(16))`);
    const from = await bed.head();
    const values = Array.from({ length: ROWS }, () => (random() < 0.02 ? 'NULL' : value(random)));
    const inUtc = "SET time_zone = '+00:00', sql_mode = ''";
    await bed.session(
      inUtc,
      `INSERT INTO ${table} (aggregate_id) VALUES ${values.map((text) => `(${text})`).join(',')}`,
    );
    const shown = /^(?:(?:var)?binary|blob|bit)/i.test(type) ? 'CONCAT(aggregate_id)' : 'CAST(aggregate_id AS CHAR)';
    const connection = await bed.connect();
    try {
      await connection.query(inUtc);
      const [rows] = await connection.query(`SELECT HEX(${shown}) AS k FROM ${bed.bed.database}.${table} ORDER BY id`);
      const expected = (rows as { k: string | null }[]).map(({ k }) => k?.toLowerCase() ?? null);
      expect(await tailedBytes(bed, from, bed.outbox(table, FEW)), `seed ${SEED}`).toEqual(expected);
      expect(new Set(expected).size).toBeGreaterThan(1);
    } finally {
      connection.destroy();
    }
  });
});

test('every set that a key was tried in is one that is converted', () => {
  const sets = TYPES.flatMap(([type]) => /CHARACTER SET (\w+)/.exec(type)?.[1] ?? []);
  expect(new Set(sets.filter((set) => charsetNamed(set) !== null)).size).toBeGreaterThan(18);
});
