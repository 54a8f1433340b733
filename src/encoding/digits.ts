/** Decimal digits of numbers, written as ASCII without a string in between. */

/** Digits of a non-negative safe integer. */
export function digitCount(n: number): number {
  let count = 1;
  for (; n >= 1e4; n /= 1e4) count += 4;
  if (n >= 1000) return count + 3;
  if (n >= 100) return count + 2;
  return n >= 10 ? count + 1 : count;
}

/** Writes a non-negative safe integer; returns the offset behind it. */
export function writeUnsigned(out: Buffer, at: number, n: number): number {
  if (n < 10) {
    out[at] = 0x30 + n;
    return at + 1;
  }
  return writePadded(out, at, n, digitCount(n));
}

/** Writes the `width` lowest digits of a non-negative safe integer, with zeros in front; returns the offset behind. */
export function writePadded(out: Buffer, at: number, n: number, width: number): number {
  let i = at + width;
  while (n > 0x7fffffff && i > at) {
    const rest = Math.floor(n / 10);
    out[--i] = 0x30 + (n - rest * 10);
    n = rest;
  }
  // From here on 32-bit arithmetic, which is several times as fast.
  let small = n | 0;
  while (i > at) {
    const rest = (small / 10) | 0;
    out[--i] = 0x30 + (small - rest * 10);
    small = rest;
  }
  return at + width;
}

/** Writes the unsigned 64-bit integer `high * 2^32 + low` (both unsigned 32 bits); returns the offset behind it. */
export function writeUnsigned64(out: Buffer, at: number, low: number, high: number): number {
  if (high < 0x20_0000) return writeUnsigned(out, at, high * 0x1_0000_0000 + low);
  // Long division by 10^9 in limbs of 16 bits: no step exceeds 2^53.
  const q2 = Math.floor(high / 1e9);
  let step = (high - q2 * 1e9) * 0x1_0000 + (low >>> 16);
  const q1 = Math.floor(step / 1e9);
  step = (step - q1 * 1e9) * 0x1_0000 + (low & 0xffff);
  const q0 = Math.floor(step / 1e9);
  at = writeUnsigned(out, at, q2 * 0x1_0000_0000 + q1 * 0x1_0000 + q0);
  return writePadded(out, at, step - q0 * 1e9, 9);
}

/** Writes the signed 64-bit integer with these two's complement halves; returns the offset behind it. */
export function writeSigned64(out: Buffer, at: number, low: number, high: number): number {
  if (high < 0x8000_0000) return writeUnsigned64(out, at, low, high);
  out[at] = 0x2d;
  const negatedLow = -low >>> 0;
  return writeUnsigned64(out, at + 1, negatedLow, (~high + (negatedLow === 0 ? 1 : 0)) >>> 0);
}
