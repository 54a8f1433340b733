import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { murmur2, partitionOf } from '../../../src/encoding/murmur2.ts';
import { murmur2 as murmur2OfKafkajs } from './kafkajs-protocol.ts';

describe('F8: keys land where the Java client puts them', () => {
  /** The first three from field reports; where the top bit is set, an unmasked hash gives another partition. */
  test.for([
    ['100:48069', 12, 9],
    ['wu', 10, 0],
    ['TT0124', 15, 10],
    ['café€', 12, 10],
    ['order-42', 12, 0],
    ['A', 3, 1],
  ] as [string, number, number][])('%s of %d partitions: %d', ([key, partitions, partition]) => {
    const bytes = Buffer.from(`<${key}>`);
    expect(partitionOf(bytes, 1, bytes.length - 1, partitions)).toBe(partition);
  });

  /** Hashes that Kafka's own test pins (UtilsTest.testMurmur2). */
  test.for([
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ] as [string, number][])('the hash of %s is %d', ([key, hash]) => {
    expect(murmur2(Buffer.from(key), 0, Buffer.byteLength(key))).toBe(hash);
  });

  test('60 generated keys, as Java computes them step by step', () => {
    const keys = Array.from({ length: 60 }, (_, i) => {
      const hash = createHash('sha256').update(String(i)).digest();
      return i % 2 === 0 ? hash.subarray(0, i % 32) : Buffer.from(`ключ-${hash.toString('hex').slice(0, i % 17)}`);
    });
    expect(keys.filter((key) => javaMurmur2(key) < 0n).length).toBeGreaterThan(20);
    for (const key of keys) {
      expect(BigInt(murmur2(key, 0, key.length))).toBe(javaMurmur2(key));
      expect(BigInt(partitionOf(key, 0, key.length, 12))).toBe((javaMurmur2(key) & 0x7fffffffn) % 12n);
    }
  });

  test('any key, as kafkajs hashes it', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const key = Buffer.from(bytes);
        expect(murmur2(key, 0, key.length)).toBe(murmur2OfKafkajs(key));
      }),
      { numRuns: 500 },
    );
  });
});

/** Utils.murmur2 of Kafka's Java client, in integers of any size cut to 32 bits after each step. */
function javaMurmur2(key: Buffer): bigint {
  const int = (n: bigint): bigint => BigInt.asUintN(32, n);
  const m = 0x5bd1e995n;
  let h = int(0x9747b28cn ^ BigInt(key.length));
  const whole = key.length - (key.length % 4);
  for (let i = 0; i < whole; i += 4) {
    let k = int(BigInt(key.readUInt32LE(i)) * m);
    k = int((k ^ (k >> 24n)) * m);
    h = int(h * m) ^ k;
  }
  const tail = [...key.subarray(whole)].reduce((sum, byte, i) => sum ^ (BigInt(byte) << BigInt(8 * i)), 0n);
  if (whole < key.length) h = int((h ^ tail) * m);
  h = int((h ^ (h >> 13n)) * m);
  return BigInt.asIntN(32, h ^ (h >> 15n));
}
