/** Character sets by collation number (MySQL 9.7 `information_schema.COLLATIONS`); ranges where they are dense. */
const CHARACTER_SETS: Readonly<Record<string, string>> = {
  armscii8: '32 64',
  ascii: '11 65',
  big5: '1 84',
  binary: '63',
  cp1250: '26 34 44 66 99',
  cp1251: '14 23 50-52',
  cp1256: '57 67',
  cp1257: '29 58 59',
  cp850: '4 80',
  cp852: '40 81',
  cp866: '36 68',
  cp932: '95 96',
  dec8: '3 69',
  eucjpms: '97 98',
  euckr: '19 85',
  gb18030: '248-250',
  gb2312: '24 86',
  gbk: '28 87',
  geostd8: '92 93',
  greek: '25 70',
  hebrew: '16 71',
  hp8: '6 72',
  keybcs2: '37 73',
  koi8r: '7 74',
  koi8u: '22 75',
  latin1: '5 8 15 31 47-49 94',
  latin2: '2 9 21 27 77',
  latin5: '30 78',
  latin7: '20 41 42 79',
  macce: '38 43',
  macroman: '39 53',
  sjis: '13 88',
  swe7: '10 82',
  tis620: '18 89',
  ucs2: '35 90 128-151 159',
  ujis: '12 91',
  utf16: '54 55 101-124',
  utf16le: '56 62',
  utf32: '60 61 160-183',
  utf8mb3: '33 76 83 192-215 223',
  utf8mb4: '45 46 224-247 255-323',
};

const BY_COLLATION = new Map(
  Object.entries(CHARACTER_SETS).flatMap(([name, collations]) =>
    collations.split(' ').flatMap((range) => {
      const [first, last = first] = range.split('-').map(Number);
      return Array.from({ length: last - first + 1 }, (_, n) => [first + n, name] as const);
    }),
  ),
);

/** MariaDB: `…_nopad_…` is 1024 higher than its base; `uca1400_…` from 2048 on, 256 for each character set. */
const NO_PAD = 1024;
const UCA1400 = 2048;
const UCA1400_SETS = ['utf8mb3', 'utf8mb4', 'ucs2', 'utf16', 'utf32'];

/** Null for a number that is not known here. */
export function characterSetOf(collation: number): string | null {
  if (collation >= UCA1400) return UCA1400_SETS[(collation - UCA1400) >> 8] ?? null;
  return BY_COLLATION.get(collation >= NO_PAD ? collation - NO_PAD : collation) ?? null;
}
