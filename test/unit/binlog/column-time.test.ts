import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_TIME, readTimeMs, TimeFormat } from '../../../src/binlog/column-time.ts';

function dateTime2(time: Date, fraction: Buffer): Buffer {
  const day = ((time.getUTCFullYear() * 13 + time.getUTCMonth() + 1) << 5) | time.getUTCDate();
  const clock = (time.getUTCHours() << 12) | (time.getUTCMinutes() << 6) | time.getUTCSeconds();
  const bytes = Buffer.alloc(5);
  bytes.writeUIntBE(2 ** 39 + day * 2 ** 17 + clock, 0, 5);
  return Buffer.concat([bytes, fraction]);
}

const micros = (value: number) => Buffer.of(value >> 16, (value >> 8) & 255, value & 255);

describe('a time in the log', () => {
  const seconds = fc.integer({ min: 0, max: 253_402_300_799 });

  it('DATETIME(6) is what a Date says, to the millisecond', () => {
    fc.assert(
      fc.property(seconds, fc.nat(999_999), (second, fraction) => {
        const bytes = dateTime2(new Date(second * 1000), micros(fraction));
        expect(readTimeMs(bytes, 0, TimeFormat.DateTime2, 3)).toBe(second * 1000 + Math.floor(fraction / 1000));
      }),
    );
  });

  it('old DATETIME is what a Date says', () => {
    fc.assert(
      fc.property(seconds, (second) => {
        const digits = new Date(second * 1000).toISOString().replaceAll(/\D/g, '').slice(0, 14);
        const bytes = Buffer.alloc(8);
        bytes.writeBigUInt64LE(BigInt(digits));
        expect(readTimeMs(bytes, 0, TimeFormat.DateTime, 0)).toBe(second * 1000);
      }),
    );
  });

  it('TIMESTAMP, with and without a fraction, and as of old', () => {
    const bytes = Buffer.alloc(7);
    bytes.writeUInt32BE(4_000_000_000);
    bytes[4] = 0x07;
    expect(readTimeMs(bytes, 0, TimeFormat.Timestamp2, 0)).toBe(4_000_000_000_000);
    expect(readTimeMs(bytes, 0, TimeFormat.Timestamp2, 1)).toBe(4_000_000_000_070);
    expect(readTimeMs(bytes, 0, TimeFormat.Timestamp2, 2)).toBe(4_000_000_000_179);
    bytes.writeUInt32LE(4_000_000_000);
    expect(readTimeMs(bytes, 0, TimeFormat.Timestamp, 0)).toBe(4_000_000_000_000);
  });

  it('is none for zero dates and for times before 1970', () => {
    expect(readTimeMs(Buffer.from('8000000000', 'hex'), 0, TimeFormat.DateTime2, 0)).toBe(NO_TIME);
    expect(readTimeMs(Buffer.alloc(8), 0, TimeFormat.DateTime, 0)).toBe(NO_TIME);
    expect(readTimeMs(Buffer.alloc(4), 0, TimeFormat.Timestamp2, 0)).toBe(NO_TIME);
    const old = dateTime2(new Date('1969-12-31T23:59:59Z'), Buffer.alloc(0));
    expect(readTimeMs(old, 0, TimeFormat.DateTime2, 0)).toBe(NO_TIME);
  });
});
