import { createConnection, type Connection } from 'mysql2/promise';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { charsetNamed, isUtf8, MULTI_BYTE_SHAPES, toUtf8 } from '../../../src/encoding/charsets.ts';
import { type Characters, characters, hex, range, SINGLE_BYTE_SETS, singleBytes } from './server-charsets.ts';

let connection: Connection;
beforeAll(async () => (connection = await createConnection({ ...inject('mysql'), charset: 'utf8mb4' })));
afterAll(() => connection.destroy());

test('D7 every character set of the server is known', async () => {
  const [rows] = await connection.query('SELECT CHARACTER_SET_NAME AS name FROM information_schema.CHARACTER_SETS');
  const names = (rows as { name: string }[]).map(({ name }) => name);
  expect(names.length).toBeGreaterThan(35);
  expect(names.filter((name) => !isUtf8(name) && charsetNamed(name) === null)).toEqual([]);
});

test.for(SINGLE_BYTE_SETS)('D7 %s: each of its bytes is what the server converts it to', async (set) => {
  expect(differences(set, 1, await singleBytes(connection, set))).toEqual([]);
});

test.for(Object.keys(MULTI_BYTE_SHAPES))(
  'D7 %s: each of its characters of two bytes, and of one or three',
  async (set) => {
    const shape = MULTI_BYTE_SHAPES[set];
    const pairs = await characters(connection, set, 2);
    expect(pairs.size).toBeGreaterThan(5_000);
    expect(differences(set, 2, pairs)).toEqual([]);
    if (shape.singles !== undefined) {
      const singles = await characters(connection, set, 1);
      expect([...singles.keys()]).toEqual(range(...shape.singles));
      expect(differences(set, 1, singles)).toEqual([]);
    }
    if (shape.threes === true) {
      const threes = await characters(connection, set, 3);
      expect(threes.size).toBeGreaterThan(5_000);
      expect(differences(set, 3, threes)).toEqual([]);
    }
  },
);

test('D7 gb18030: characters of four bytes', async () => {
  const BMP_END = 39_420;
  const LAST = 1_259_999;
  const numbers = [...range(0, BMP_END + 20).filter((n) => n % 3 === 0), ...range(0, LAST / 233).map((n) => n * 233)];
  const codes = [...numbers, BMP_END - 1, BMP_END, 188_999, 189_000, 1_237_575, 1_237_576, LAST].map(fourBytes);
  const fours = await characters(connection, 'gb18030', 4, codes);
  expect(fours.size).toBeGreaterThan(18_000);
  expect(differences('gb18030', 4, fours)).toEqual([]);
});

test.for([
  ['ucs2', 2],
  ['utf16', 2],
  ['utf16le', 2],
  ['utf32', 4],
] as const)('D7 %s: all of the BMP, and what is beyond it', async ([set, bytes]) => {
  const bmp = range(0, 0xffff).filter((code) => code < 0xd800 || code > 0xdfff);
  const codes = set === 'utf16le' ? bmp.map((code) => ((code & 0xff) << 8) | (code >> 8)) : bmp;
  expect(differences(set, bytes, await characters(connection, set, bytes, codes))).toEqual([]);
  if (set === 'ucs2') return;
  const beyond = { utf16: [0xd83d_de00, 0xdbff_dfff], utf16le: [0x3dd8_00de], utf32: [0x1_f600, 0x10_ffff] }[set];
  const found = await characters(connection, set, 4, beyond);
  expect(found.size).toBe(beyond.length);
  expect(differences(set, 4, found)).toEqual([]);
});

function fourBytes(n: number): number {
  const fourth = 0x30 + (n % 10);
  const third = 0x81 + (Math.floor(n / 10) % 126);
  const second = 0x30 + (Math.floor(n / 1260) % 10);
  return Buffer.of(0x81 + Math.floor(n / 12_600), second, third, fourth).readUInt32BE(0);
}

/** The characters that come out otherwise than by the server. */
function differences(set: string, bytes: number, found: Characters): string[] {
  return [...found].flatMap(([code, text]) => {
    const own = toUtf8(set, Buffer.from(hex(code, bytes), 'hex'));
    return own?.equals(text) === true ? [] : [`${hex(code, bytes)}: ${text.toString('hex')}, ${own?.toString('hex')}`];
  });
}
