/** How the log writes a time: DATETIME and TIMESTAMP, as of MySQL 5.6 and as before. */
export const TimeFormat = { DateTime2: 0, Timestamp2: 1, DateTime: 2, Timestamp: 3 } as const;
export type TimeFormat = (typeof TimeFormat)[keyof typeof TimeFormat];

/** A zero date, or one before 1970. */
export const NO_TIME = -1;

const DAY_MS = 86_400_000;

/** Milliseconds since the epoch, DATETIME taken as UTC; `NO_TIME` where there is none. Arithmetic, no Date objects. */
export function readTimeMs(b: Buffer, p: number, format: TimeFormat, fractionBytes: number): number {
  switch (format) {
    case TimeFormat.DateTime2: {
      // 40 bits, big-endian: sign 1, year * 13 + month 17, day 5, hour 5, minute 6, second 6.
      const date = (((b[p] & 0x7f) << 16) | (b[p + 1] << 8) | b[p + 2]) >> 1;
      const yearAndMonth = date >> 5;
      const year = Math.floor(yearAndMonth / 13);
      const time = ((b[p + 2] & 1) << 16) | (b[p + 3] << 8) | b[p + 4];
      const seconds = (time >> 12) * 3600 + ((time >> 6) & 63) * 60 + (time & 63);
      return epochMs(year, yearAndMonth - year * 13, date & 31, seconds, fractionMs(b, p + 5, fractionBytes));
    }
    case TimeFormat.Timestamp2: {
      const seconds = ((b[p] << 24) | (b[p + 1] << 16) | (b[p + 2] << 8) | b[p + 3]) >>> 0;
      return seconds === 0 ? NO_TIME : seconds * 1000 + fractionMs(b, p + 4, fractionBytes);
    }
    case TimeFormat.DateTime: {
      // YYYYMMDDhhmmss as a decimal number.
      const digits = b.readUIntLE(p, 6) + b[p + 6] * 2 ** 48;
      const date = Math.floor(digits / 1_000_000);
      const time = digits % 1_000_000;
      const seconds = Math.floor(time / 10_000) * 3600 + (Math.floor(time / 100) % 100) * 60 + (time % 100);
      return epochMs(Math.floor(date / 10_000), Math.floor(date / 100) % 100, date % 100, seconds, 0);
    }
    case TimeFormat.Timestamp: {
      const seconds = b.readUInt32LE(p);
      return seconds === 0 ? NO_TIME : seconds * 1000;
    }
  }
}

function fractionMs(b: Buffer, p: number, bytes: number): number {
  if (bytes === 3) return Math.floor(((b[p] << 16) | (b[p + 1] << 8) | b[p + 2]) / 1000);
  if (bytes === 2) return Math.floor(((b[p] << 8) | b[p + 1]) / 10);
  return bytes === 1 ? b[p] * 10 : 0;
}

function epochMs(year: number, month: number, day: number, seconds: number, ms: number): number {
  if (year < 1970 || month === 0 || day === 0) return NO_TIME;
  return daysFromCivil(year, month, day) * DAY_MS + seconds * 1000 + ms;
}

/** Days since 1970-01-01; the year begins in March, so that the leap day is its last. */
function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const monthFromMarch = (month + 9) % 12;
  const dayOfYear = Math.floor((153 * monthFromMarch + 2) / 5) + day - 1;
  return y * 365 + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + dayOfYear - 719_468;
}
