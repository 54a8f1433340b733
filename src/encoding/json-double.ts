import { writePadded, writeUnsigned } from './digits.ts';

/**
 * Doubles as the server prints them inside JSON: the shortest digits that read back to the same double, laid out by
 * `my_gcvt` (strings/dtoa.cc) at its full width, and `.0` behind what has neither a point nor an exponent.
 *
 * In short, for 0.DDD x 10^point: plain notation where -14 <= point <= 15, or where a fraction is left; otherwise
 * D.DDe[-]N, without plus sign and padding.
 */
const MIN_PLAIN_POINT = -14;
const MAX_PLAIN_POINT = 15;

/** Writes a double as the server prints it, at most 34 bytes; returns the offset behind it. */
export function writeDouble(out: Buffer, at: number, value: number): number {
  // JSON has no infinity and no NaN, and the server stores none; it would print 0.0.
  if (!Number.isFinite(value)) value = 0;
  if (value < 0 || Object.is(value, -0)) {
    out[at++] = MINUS;
    value = -value;
  }
  if (value < 1e15 && Math.floor(value) === value) {
    at = writeUnsigned(out, at, value);
    out[at] = POINT;
    out[at + 1] = ZERO;
    return at + 2;
  }
  // At most 15 digits name one double only, so a decimal of that size that divides to `value` is the shortest.
  if (value < 1e9) {
    const cents = Math.round(value * 100);
    if (cents / 100 === value) return writeDecimal(out, at, cents, 100, 2);
    const millionths = Math.round(value * 1e6);
    if (millionths / 1e6 === value) return writeDecimal(out, at, millionths, 1e6, 6);
  }
  return writeShortest(out, at, value);
}

/** `scaled / scale`, where `scale` is 10^`decimals`, without the zeros at its end. Never an integer. */
function writeDecimal(out: Buffer, at: number, scaled: number, scale: number, decimals: number): number {
  const whole = Math.floor(scaled / scale);
  let fraction = (scaled - whole * scale) | 0;
  for (; fraction % 10 === 0; decimals--) fraction = (fraction / 10) | 0;
  at = writeUnsigned(out, at, whole);
  out[at] = POINT;
  return writePadded(out, at + 1, fraction, decimals);
}

/** Significant digits of the number in hand. */
const digits = new Uint8Array(32);

/** Any positive double by way of JavaScript's own shortest digits (ECMA-262, Number::toString). */
function writeShortest(out: Buffer, at: number, value: number): number {
  const text = String(value);
  let count = 0;
  let point = 0;
  let pointSeen = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === POINT) {
      pointSeen = true;
    } else if (c === EXPONENT) {
      point += Number(text.slice(i + 1));
      break;
    } else {
      // Zeros in front of the first digit only move the point.
      if (count > 0 || c !== ZERO) digits[count++] = c;
      if (!pointSeen && count > 0) point++;
      else if (pointSeen && count === 0) point--;
    }
  }
  while (count > 1 && digits[count - 1] === ZERO) count--;
  const plain = point >= MIN_PLAIN_POINT && (point <= MAX_PLAIN_POINT || count > point);
  return plain ? writePlain(out, at, count, point) : writeScientific(out, at, count, point);
}

function writePlain(out: Buffer, at: number, count: number, point: number): number {
  if (point <= 0) {
    out[at++] = ZERO;
    out[at++] = POINT;
    for (let zeros = point; zeros < 0; zeros++) out[at++] = ZERO;
  }
  for (let i = 0; i < count; i++) {
    if (i === point && i > 0) out[at++] = POINT;
    out[at++] = digits[i];
  }
  if (count > point) return at;
  for (let i = count; i < point; i++) out[at++] = ZERO;
  out[at++] = POINT;
  out[at++] = ZERO;
  return at;
}

function writeScientific(out: Buffer, at: number, count: number, point: number): number {
  out[at++] = digits[0];
  if (count > 1) out[at++] = POINT;
  for (let i = 1; i < count; i++) out[at++] = digits[i];
  out[at++] = EXPONENT;
  const exponent = point - 1;
  if (exponent < 0) out[at++] = MINUS;
  return writeUnsigned(out, at, Math.abs(exponent));
}

const ZERO = 0x30;
const POINT = 0x2e;
const MINUS = 0x2d;
const EXPONENT = 0x65;
