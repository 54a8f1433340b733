import { Opaque } from './binary-json.ts';

/** SQL values inside JSON, made like the server makes them: bytes from the fields, text by hand. */
const TIMESTAMP = 7;
const DATE = 10;
const TIME = 11;
const DATETIME = 12;
const NEWDECIMAL = 246;

export interface Clock {
  hours: number;
  minutes: number;
  seconds: number;
  micros: number;
}

export interface Day {
  year: number;
  month: number;
  day: number;
}

/** `whole` and `fraction` are the digits as typed, leading zeros included: precision and scale are their lengths. */
export function decimal(negative: boolean, whole: string, fraction: string): Opaque {
  const sizes = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
  const groups = [
    ...(whole.length % 9 === 0 ? [] : [whole.slice(0, whole.length % 9)]),
    ...(whole.slice(whole.length % 9).match(/.{9}/g) ?? []),
    ...(fraction.match(/.{1,9}/g) ?? []),
  ];
  const digits = groups.flatMap((group) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(Number(group));
    return [...bytes.subarray(4 - sizes[group.length])];
  });
  const packed = digits.map((byte, i) => byte ^ (negative ? 0xff : 0) ^ (i === 0 ? 0x80 : 0));
  const data = Buffer.from([whole.length + fraction.length, fraction.length, ...packed]);
  const text = `${negative ? '-' : ''}${whole.replace(/^0+/, '') || '0'}${fraction === '' ? '' : `.${fraction}`}`;
  return new Opaque(NEWDECIMAL, data, text);
}

export function time(negative: boolean, clock: Clock): Opaque {
  const value = packClock(clock);
  return new Opaque(TIME, packed(negative ? -value : value), `"${negative ? '-' : ''}${clockText(clock)}"`);
}

export function date(day: Day): Opaque {
  return new Opaque(DATE, packed(packDay(day)), `"${dayText(day)}"`);
}

export function datetime(day: Day, clock: Clock, type: 'datetime' | 'timestamp' = 'datetime'): Opaque {
  const data = packed(packDay(day) + packClock(clock));
  return new Opaque(type === 'datetime' ? DATETIME : TIMESTAMP, data, `"${dayText(day)} ${clockText(clock)}"`);
}

/** Any other column type: base64 in lines of 76 characters. */
export function blob(type: number, data: Buffer): Opaque {
  const lines = data.toString('base64').match(/.{1,76}/g) ?? [];
  return new Opaque(type, data, `"base64:type${type}:${lines.join('\\n')}"`);
}

function packDay({ year, month, day }: Day): bigint {
  return BigInt((year * 13 + month) * 32 + day) << 41n;
}

function packClock({ hours, minutes, seconds, micros }: Clock): bigint {
  return (BigInt(hours * 4096 + minutes * 64 + seconds) << 24n) + BigInt(micros);
}

function packed(value: bigint): Buffer {
  const data = Buffer.alloc(8);
  data.writeBigInt64LE(value);
  return data;
}

function dayText({ year, month, day }: Day): string {
  return `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}`;
}

function clockText({ hours, minutes, seconds, micros }: Clock): string {
  return `${pad(hours, 2)}:${pad(minutes, 2)}:${pad(seconds, 2)}.${pad(micros, 6)}`;
}

function pad(n: number, width: number): string {
  return String(n).padStart(width, '0');
}
