import { digitCount, writePadded, writeUnsigned } from './digits.ts';
import { corrupt, dataStart, uint32 } from './json-binary.ts';
import { writePackedDecimal } from './packed-decimal.ts';

/**
 * SQL values that a JSON document carries as they are: a byte for the column type, a length, the data. DECIMAL is
 * printed as a number; dates and times as strings with six digits of fraction; everything else as base64.
 */
const TIMESTAMP = 7;
const DATE = 10;
const TIME = 11;
const DATETIME = 12;
const NEWDECIMAL = 246;

/** True when the text is a JSON string: to be put in quotes. */
export function isQuotedOpaque(source: Buffer, start: number): boolean {
  return source[start] !== NEWDECIMAL;
}

/**
 * Writes the text of the opaque value `source[start, end)` without quotes; returns the offset behind it. `escaped`:
 * line breaks (the server puts them into long base64) as JSON's `\n`. Throws a `RelayError` (ROW_ENCODING).
 */
export function writeOpaque(
  out: Buffer,
  at: number,
  source: Buffer,
  start: number,
  end: number,
  escaped: boolean,
): number {
  const data = dataStart(source, start + 1);
  switch (source[start]) {
    case NEWDECIMAL:
      return writePackedDecimal(out, at, source, data, end);
    case DATE:
      return writeDate(out, at, packedTemporal(source, data, end));
    case TIME:
      return writeTime(out, at, packedTemporal(source, data, end));
    case DATETIME:
    case TIMESTAMP:
      return writeDatetime(out, at, packedTemporal(source, data, end));
    default:
      return writeBase64(out, at, source[start], source, data, end, escaped);
  }
}

/** Length of what `writeOpaque` writes. */
export function opaqueLength(source: Buffer, start: number, end: number, escaped: boolean): number {
  if (source[start] === NEWDECIMAL || isTemporal(source[start])) {
    return writeOpaque(scratch, 0, source, start, end, escaped);
  }
  const groups = Math.ceil((end - dataStart(source, start + 1)) / 3);
  const breaks = Math.max(0, Math.ceil(groups / BASE64_LINE_GROUPS) - 1);
  return BASE64_PREFIX.length + digitCount(source[start]) + 1 + 4 * groups + breaks * (escaped ? 2 : 1);
}

function isTemporal(type: number): boolean {
  return type === DATE || type === TIME || type === DATETIME || type === TIMESTAMP;
}

/** Room for every decimal (the format can name 255 digits) and every temporal value. */
const scratch = Buffer.alloc(512);

/** The packed value's whole seconds (fields of date and time) of `packedTemporal`; its microseconds and sign. */
let micros = 0;
let negative = false;

/**
 * The eight bytes of a packed temporal value: sign, fields of date and time, 24 bits of microseconds
 * (sql-common/my_time.cc). Returns the fields; leaves sign and microseconds in `negative` and `micros`.
 */
function packedTemporal(source: Buffer, start: number, end: number): number {
  if (end - start !== 8) throw corrupt('a date or time is not of 8 bytes');
  let low = uint32(source, start);
  let high = uint32(source, start + 4);
  negative = high >= 0x8000_0000;
  if (negative) {
    low = -low >>> 0;
    high = (~high + (low === 0 ? 1 : 0)) >>> 0;
  }
  micros = low & 0xff_ffff;
  return high * 0x100 + (low >>> 24);
}

function writeDate(out: Buffer, at: number, fields: number): number {
  const yearMonth = Math.floor(fields / 0x40_0000);
  at = writePadded(out, at, Math.floor(yearMonth / 13), 4);
  out[at] = 0x2d;
  at = writePadded(out, at + 1, yearMonth % 13, 2);
  out[at] = 0x2d;
  return writePadded(out, at + 1, Math.floor(fields / 0x2_0000) & 0x1f, 2);
}

function writeDatetime(out: Buffer, at: number, fields: number): number {
  at = writeDate(out, at, fields);
  out[at] = 0x20;
  return writeClock(out, at + 1, fields % 0x2_0000);
}

function writeTime(out: Buffer, at: number, fields: number): number {
  if (negative) out[at++] = 0x2d;
  return writeClock(out, at, fields % 0x40_0000);
}

/** Hours (two digits, three where needed), minutes, seconds in steps of 6 bits; then the microseconds. */
function writeClock(out: Buffer, at: number, fields: number): number {
  const hours = fields >>> 12;
  at = writePadded(out, at, hours, hours < 100 ? 2 : digitCount(hours));
  out[at] = 0x3a;
  at = writePadded(out, at + 1, (fields >>> 6) & 0x3f, 2);
  out[at] = 0x3a;
  at = writePadded(out, at + 1, fields & 0x3f, 2);
  out[at] = 0x2e;
  return writePadded(out, at + 1, micros, 6);
}

const BASE64 = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', 'latin1');
const BASE64_PREFIX = Buffer.from('base64:type', 'latin1');
/** The server breaks the line after 76 characters. */
const BASE64_LINE_GROUPS = 19;

function writeBase64(
  out: Buffer,
  at: number,
  type: number,
  source: Buffer,
  start: number,
  end: number,
  escaped: boolean,
): number {
  for (const byte of BASE64_PREFIX) out[at++] = byte;
  at = writeUnsigned(out, at, type);
  out[at++] = 0x3a;
  let groups = 0;
  for (let i = start; i < end; i += 3, groups++) {
    if (groups === BASE64_LINE_GROUPS) {
      if (escaped) out[at++] = 0x5c;
      out[at++] = escaped ? 0x6e : 0x0a;
      groups = 0;
    }
    const left = end - i;
    const bits = (source[i] << 16) | (left > 1 ? source[i + 1] << 8 : 0) | (left > 2 ? source[i + 2] : 0);
    out[at++] = BASE64[bits >>> 18];
    out[at++] = BASE64[(bits >>> 12) & 0x3f];
    out[at++] = left > 1 ? BASE64[(bits >>> 6) & 0x3f] : 0x3d;
    out[at++] = left > 2 ? BASE64[bits & 0x3f] : 0x3d;
  }
  return at;
}
