import fc from 'fast-check';
import { expect, test } from 'vitest';
import { varintLength, varlongLength, writeVarint, writeVarlong } from '../../../src/encoding/varint.ts';
import { varint, varlong } from './kafkajs-protocol.ts';

const MAX = Number.MAX_SAFE_INTEGER + 1;
const borders = (bits: number): number[] =>
  Array.from({ length: bits }, (_, i) => 2 ** i).flatMap((n) => [n - 1, n, -n, -n - 1]);

test('32-bit integers in their shortest form, as kafkajs writes them', () => {
  const check = (n: number): void => {
    const expected = varint(n);
    expect(varintLength(n)).toBe(expected.length);
    expect(written(writeVarint, n)).toEqual(expected);
  };
  for (const n of borders(31)) check(n);
  fc.assert(fc.property(fc.integer(), check));
});

test('safe integers in their shortest form, as kafkajs writes them', () => {
  const check = (n: number): void => {
    const expected = varlong(n);
    expect(varlongLength(n)).toBe(expected.length);
    expect(written(writeVarlong, n)).toEqual(expected);
  };
  for (const n of [...borders(53), MAX, -MAX]) check(n);
  fc.assert(fc.property(fc.maxSafeInteger(), check));
});

test('zigzag keeps small numbers short, whatever their sign', () => {
  for (const n of [-64, 63]) expect([varintLength(n), varlongLength(n)]).toEqual([1, 1]);
  for (const n of [-65, 64]) expect([varintLength(n), varlongLength(n)]).toEqual([2, 2]);
});

function written(write: (out: Buffer, at: number, n: number) => number, n: number): Buffer {
  const out = Buffer.alloc(16, 0xee);
  const end = write(out, 3, n);
  expect(out[end]).toBe(0xee);
  return out.subarray(3, end);
}
