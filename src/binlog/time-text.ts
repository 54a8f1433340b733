import { writePadded, writeUnsigned } from '../encoding/digits.ts';
import type { ColumnText } from './column-text.ts';

/** `-838:59:59.000000`, `2026-11-30 01:02:03.000000`. */
const MOST_BYTES = 26;
const DASH = 0x2d;
const COLON = 0x3a;
const DAY_SECONDS = 86_400;

/** 15 bits of year, 4 of month, 5 of day, in three bytes, the lowest first. */
export const DATE_TEXT: ColumnText = {
  room: () => MOST_BYTES,
  write(out, at, source, start) {
    const packed = source.readUIntLE(start, 3);
    return writeDate(out, at, packed >> 9, (packed >> 5) & 15, packed & 31);
  },
};

export const YEAR_TEXT: ColumnText = {
  room: () => MOST_BYTES,
  write: (out, at, source, start) => writePadded(out, at, source[start] === 0 ? 0 : 1900 + source[start], 4),
};

/** TIME(`digits`): 24 bits of hours, minutes and seconds and the fraction, as one number above its lowest. */
export function timeText(digits: number): ColumnText {
  const fractionBytes = (digits + 1) >> 1;
  const scale = 0x100 ** fractionBytes;
  return {
    room: () => MOST_BYTES,
    write(out, at, source, start) {
      let value = source.readUIntBE(start, 3 + fractionBytes) - 0x80_0000 * scale;
      if (value < 0) {
        out[at++] = DASH;
        value = -value;
      }
      const clock = Math.floor(value / scale);
      const hours = clock >> 12;
      at = hours < 100 ? writePadded(out, at, hours, 2) : writeUnsigned(out, at, hours);
      at = writeMinutes(out, at, (clock >> 6) & 63, clock & 63);
      return writeFraction(out, at, value % scale, digits);
    },
  };
}

/** DATETIME(`digits`): sign 1, year * 13 + month 17, day 5, hour 5, minute 6, second 6 bits, then the fraction. */
export function datetimeText(digits: number): ColumnText {
  const fractionBytes = (digits + 1) >> 1;
  return {
    room: () => MOST_BYTES,
    write(out, at, source, start) {
      const date = (source.readUIntBE(start, 3) & 0x7f_ffff) >> 1;
      const clock = source.readUIntBE(start + 2, 3) & 0x1_ffff;
      const yearAndMonth = date >> 5;
      at = writeDate(out, at, Math.floor(yearAndMonth / 13), yearAndMonth % 13, date & 31);
      out[at] = 0x20;
      at = writePadded(out, at + 1, clock >> 12, 2);
      at = writeMinutes(out, at, (clock >> 6) & 63, clock & 63);
      return writeFraction(out, at, fractionAt(source, start + 5, fractionBytes), digits);
    },
  };
}

/** TIMESTAMP(`digits`) in UTC: seconds since 1970 and the fraction; none is the zero date. */
export function timestampText(digits: number): ColumnText {
  const fractionBytes = (digits + 1) >> 1;
  return {
    room: () => MOST_BYTES,
    write(out, at, source, start) {
      const seconds = source.readUInt32BE(start);
      const fraction = fractionAt(source, start + 4, fractionBytes);
      const days = Math.floor(seconds / DAY_SECONDS);
      const clock = seconds - days * DAY_SECONDS;
      at = seconds === 0 ? writeDate(out, at, 0, 0, 0) : writeDay(out, at, days);
      out[at] = 0x20;
      at = writePadded(out, at + 1, Math.floor(clock / 3600), 2);
      at = writeMinutes(out, at, Math.floor(clock / 60) % 60, clock % 60);
      return writeFraction(out, at, fraction, digits);
    },
  };
}

function fractionAt(source: Buffer, at: number, bytes: number): number {
  return bytes === 0 ? 0 : source.readUIntBE(at, bytes);
}

function writeDate(out: Buffer, at: number, year: number, month: number, day: number): number {
  at = writePadded(out, at, year, 4);
  out[at] = DASH;
  at = writePadded(out, at + 1, month, 2);
  out[at] = DASH;
  return writePadded(out, at + 1, day, 2);
}

function writeMinutes(out: Buffer, at: number, minutes: number, seconds: number): number {
  out[at] = COLON;
  at = writePadded(out, at + 1, minutes, 2);
  out[at] = COLON;
  return writePadded(out, at + 1, seconds, 2);
}

/** `fraction` has two digits for each of its bytes; an odd number of digits is the upper ones. */
function writeFraction(out: Buffer, at: number, fraction: number, digits: number): number {
  if (digits === 0) return at;
  out[at] = 0x2e;
  return writePadded(out, at + 1, digits % 2 === 0 ? fraction : Math.floor(fraction / 10), digits);
}

/** The day `days` after 1970-01-01. Years begin in March here, so that the leap day is their last. */
function writeDay(out: Buffer, at: number, days: number): number {
  const z = days + 719_468;
  const era = Math.floor(z / 146_097);
  const dayOfEra = z - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return writeDate(out, at, year, month, dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1);
}
