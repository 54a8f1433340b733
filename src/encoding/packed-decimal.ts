import { writePadded, writeUnsigned } from './digits.ts';
import { corrupt } from './json-binary.ts';

/** Bytes of a group of fewer than nine decimal digits, by digits. */
const GROUP_BYTES = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/**
 * Writes the packed decimal `source[start, end)` as the server prints it; returns the offset behind it. The data is
 * precision, scale and the digits (strings/decimal.cc): nine in four bytes, big endian, the odd ones at the outer ends
 * in as few bytes as they need; the first bit is inverted, and all bits are where the number is negative. Throws a
 * `RelayError` (ROW_ENCODING).
 */
export function writePackedDecimal(out: Buffer, at: number, source: Buffer, start: number, end: number): number {
  if (end - start < 2) throw corrupt('a decimal has no digits');
  const scale = source[start + 1];
  const whole = source[start] - scale;
  const expected = whole < 0 ? -1 : packedDigits(whole) + packedDigits(scale);
  if (expected < 1 || expected !== end - start - 2) throw corrupt('a decimal is not of the size of its digits');
  return writeDecimal(out, at, source, start + 2, whole, scale);
}

/**
 * Writes the digits that begin at `first`: `whole` in front of the point and `scale` behind it. They are as many bytes
 * as `decimalBytes` says. Returns the offset behind what is written, at most `whole + scale + 3` bytes.
 */
export function writeDecimal(
  out: Buffer,
  at: number,
  source: Buffer,
  first: number,
  whole: number,
  scale: number,
): number {
  const odd = whole % 9;
  let from = first;
  const flip = source[from] < 0x80 ? 0xff : 0;
  if (flip !== 0) out[at++] = 0x2d;

  // Zeros in front are not printed, except the last one before the point.
  let printed = false;
  for (let left = whole; left > 0;) {
    const width = left % 9 === 0 ? 9 : odd;
    const group = digitGroup(source, from, GROUP_BYTES[width], flip, first);
    if (printed) at = writePadded(out, at, group, width);
    else if (group > 0) at = writeUnsigned(out, at, group);
    printed ||= group > 0;
    from += GROUP_BYTES[width];
    left -= width;
  }
  if (!printed) out[at++] = 0x30;
  if (scale === 0) return at;
  out[at++] = 0x2e;
  for (let left = scale; left > 0;) {
    const width = Math.min(left, 9);
    at = writePadded(out, at, digitGroup(source, from, GROUP_BYTES[width], flip, first), width);
    from += GROUP_BYTES[width];
    left -= width;
  }
  return at;
}

function packedDigits(count: number): number {
  return Math.floor(count / 9) * 4 + GROUP_BYTES[count % 9];
}

function digitGroup(source: Buffer, at: number, bytes: number, flip: number, first: number): number {
  let group = 0;
  for (let i = at; i < at + bytes; i++) {
    group = group * 0x100 + (source[i] ^ flip ^ (i === first ? 0x80 : 0));
  }
  return group;
}
