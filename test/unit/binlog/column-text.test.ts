import { describe, expect, test } from 'vitest';
import { decimalText, setText, type ColumnText } from '../../../src/binlog/column-text.ts';
import { labelsOf, type ColumnDefinition } from '../../../src/binlog/table-definition.ts';
import { DATE_TEXT, datetimeText, timestampText, timeText, YEAR_TEXT } from '../../../src/binlog/time-text.ts';

/** Values as a MySQL 9.7 has them in its log. */
test.for<[name: string, text: ColumnText, hex: string, shown: string]>([
  ['DECIMAL(5,2)', decimalText(5 | (2 << 8)), '807b2d', '123.45'],
  ['DECIMAL(5,2)', decimalText(5 | (2 << 8)), '7f84d2', '-123.45'],
  ['DECIMAL(5,0)', decimalText(5), '800000', '0'],
  ['DECIMAL(2,2)', decimalText(2 | (2 << 8)), '85', '0.05'],
  ['DATE', DATE_TEXT, '7ed50f', '2026-11-30'],
  ['DATE', DATE_TEXT, '000000', '0000-00-00'],
  ['YEAR', YEAR_TEXT, '7e', '2026'],
  ['YEAR', YEAR_TEXT, '00', '0000'],
  ['TIME(0)', timeText(0), '801083', '01:02:03'],
  ['TIME(0)', timeText(0), '4b9105', '-838:59:59'],
  ['TIME(1)', timeText(1), '7fffffce', '-00:00:00.5'],
  ['TIME(6)', timeText(6), '80108306f855', '01:02:03.456789'],
  ['DATETIME(0)', datetimeText(0), '99bb7c1083', '2026-11-30 01:02:03'],
  ['DATETIME(3)', datetimeText(3), '99bb7c108311d0', '2026-11-30 01:02:03.456'],
  ['TIMESTAMP(0)', timestampText(0), '00000000', '0000-00-00 00:00:00'],
  ['TIMESTAMP(1)', timestampText(1), '0000000132', '1970-01-01 00:00:01.5'],
  ['TIMESTAMP(0)', timestampText(0), '7fffffff', '2038-01-19 03:14:07'],
  ['TIMESTAMP(0)', timestampText(0), '38bbed00', '2000-02-29 16:00:00'],
])('$0 $2 is $3', ([, text, hex, shown]) => {
  expect(textOf(text, hex)).toBe(shown);
});

describe('SET', () => {
  const text = setText(['a', "b'", 'ü'].map((label) => Buffer.from(label)));

  test.for([
    ['00', ''],
    ['01', 'a'],
    ['07', "a,b',ü"],
    ['0600', "b',ü"],
  ])('%s is %s', ([hex, shown]) => {
    expect(textOf(text, hex)).toBe(shown);
  });

  test('a bit that no label has is not read', () => {
    expect(() => textOf(text, '08')).toThrow(RangeError);
  });
});

test('D9 labels as information_schema writes them', () => {
  const labels = (columnType: string) => labelsOf({ columnType } as ColumnDefinition)?.map(String);
  expect(labels("enum('a,b','it''s','back\\\\slash','n\\nl','','ü)')")).toEqual([
    ...['a,b', "it's", 'back\\slash', 'n\nl', '', 'ü)'],
  ]);
  expect(labels("set('x')")).toEqual(['x']);
  expect(labels('int')).toBeUndefined();
});

function textOf(text: ColumnText, hex: string): string {
  const source = Buffer.from(hex, 'hex');
  const room = text.room(source.length);
  const out = Buffer.alloc(room + 4, 0xee);
  const end = text.write(out, 2, source, 0, source.length);
  expect(end - 2).toBeLessThanOrEqual(room);
  expect(out.subarray(end).includes(0xee)).toBe(true);
  return out.toString('utf8', 2, end);
}
