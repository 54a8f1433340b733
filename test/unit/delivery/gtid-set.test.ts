import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseGtidSet } from '../../../src/delivery/gtid-set.ts';

const A = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
const B = '24da167a-0000-11e1-9e33-c80aa9429562';

describe('MySQL GTID sets', () => {
  test.each([
    ['', ''],
    [`${A}:1-5`, `${A}:1-5`],
    [`${A}:1-5:7:9-10`, `${A}:1-5:7:9-10`],
    [`${A.toUpperCase()}:1`, `${A}:1`],
    [`${A}:1-3,\n${B}:4`, `${B}:4,${A}:1-3`],
    [`${A}:1-3:blue:1-2`, `${A}:1-3,${A}:blue:1-2`],
    [`${A}:5:1-4`, `${A}:1-5`],
  ])('%j is written as %j', (text, written) => {
    expect(parseGtidSet(text, 'mysql').toString()).toBe(written);
  });

  test('adding in any order and twice gives the same set', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (numbers) => {
        const set = parseGtidSet('', 'mysql');
        for (const gno of numbers) set.add({ sid: A, first: gno, last: gno });
        const sorted = [...new Set(numbers)].sort((a, b) => a - b);
        const expected = parseGtidSet(`${A}:${sorted.join(':')}`, 'mysql');
        expect(set.toString()).toBe(expected.toString());
        for (const gno of sorted) expect(contains(set.toString(), gno)).toBe(true);
        expect(contains(set.toString(), 41)).toBe(false);
      }),
    );
  });

  test('a copy is independent', () => {
    const set = parseGtidSet(`${A}:1-5`, 'mysql');
    const copy = set.copy();
    copy.add({ sid: A, first: 6, last: 6 });
    expect(set.toString()).toBe(`${A}:1-5`);
    expect(copy.toString()).toBe(`${A}:1-6`);
  });
});

describe('MariaDB GTID positions', () => {
  test('keep the last transaction of each domain', () => {
    const position = parseGtidSet('0-1-5,1-1-7', 'mariadb');
    position.add({ sid: '0-2', first: 6, last: 9 });
    expect(position.toString()).toBe('0-2-9,1-1-7');
  });
});

function contains(text: string, gno: number): boolean {
  return text
    .split(':')
    .slice(1)
    .some((range) => {
      const [first, last = first] = range.split('-').map(Number);
      return gno >= first && gno <= last;
    });
}
