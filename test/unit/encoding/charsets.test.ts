import { expect, test } from 'vitest';
import { charsetNamed, isUtf8, toUtf8 } from '../../../src/encoding/charsets.ts';

test.for([
  ['latin1', '636166e980', 'café€'],
  ['latin1', '818d8f909d', '\u0081\u008d\u008f\u0090\u009d'],
  ['cp1251', 'cff0e8e2e5f2', 'Привет'],
  ['greek', 'c1ff', 'Α?'], // no character at 0xff
  ['swe7', '5b5c5d7f', 'ÄÖÅ?'],
  ['ucs2', '00e920ac', 'é€'],
  ['utf16', '0041d83dde00', 'A😀'],
  ['utf16', 'd83d0041de00', '?A?'], // halves of a pair
  ['utf16le', '3dd800de4100', '😀A'],
  ['utf32', '0001f60000110000', '😀?'],
  ['sjis', '835c83818140b1', 'ソメ\u3000ｱ'],
  ['cp932', '8740', '①'],
  ['ujis', 'a4a28fb0a18eb1', 'あ丂ｱ'],
  ['gbk', 'c4e3bac3', '你好'],
  ['gb18030', '9439fc36815f', '😀乢'],
  ['gb18030', '8130843641', '\u00a5A'],
  ['big5', 'a741a66e', '你好'],
  ['euckr', 'c7d1b1db', '한글'],
])('D7 %s %s is %s', ([set, hex, text]) => {
  expect(toUtf8(set, Buffer.from(hex, 'hex'))?.toString()).toBe(text);
});

test('a character that is cut off is a question mark, and nothing behind the end is read', () => {
  const cut: Record<string, string> = { gbk: '41c4', ujis: '418fb0', gb18030: '4194', sjis: '4183', utf16: '0041d8' };
  for (const [set, hex] of Object.entries(cut)) {
    const text = toUtf8(set, Buffer.from(hex, 'hex'))!.toString();
    expect(text.startsWith('A'), set).toBe(true);
    expect(text.endsWith('?'), set).toBe(true);
  }
});

test('no value outgrows what its set says', () => {
  for (const set of ['latin1', 'swe7', 'ucs2', 'utf16', 'utf32', 'sjis', 'ujis', 'gb18030', 'big5']) {
    const charset = charsetNamed(set)!;
    for (let round = 0; round < 200; round++) {
      const source = Buffer.from(Array.from({ length: round % 23 }, (_, i) => (round * 131 + i * i * 57) & 0xff));
      const out = Buffer.alloc(source.length * charset.growth + 8, 0xee);
      const end = charset.write(out, 0, source, 0, source.length);
      expect(end).toBeLessThanOrEqual(source.length * charset.growth);
      expect(out.subarray(source.length * charset.growth).every((byte) => byte === 0xee)).toBe(true);
    }
  }
});

test('UTF-8 and bytes need no conversion, and what nobody knows has none', () => {
  expect(['utf8mb4', 'utf8mb3', 'ascii', 'binary', 'latin1'].map(isUtf8)).toEqual([true, true, true, true, false]);
  expect(['toString', 'filename', 'utf8mb4'].map(charsetNamed)).toEqual([null, null, null]);
});
