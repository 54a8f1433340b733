import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32c } from '../../../src/encoding/crc32c.ts';
import { crc32C as crcOfKafkajs } from './kafkajs-protocol.ts';

/** RFC 3720, appendix B.4. */
test.for([
  ['123456789', Buffer.from('123456789'), 0xe3069283],
  ['32 zeros', Buffer.alloc(32), 0x8a9136aa],
  ['32 ones', Buffer.alloc(32, 0xff), 0x62a8ab43],
  ['0 to 31', Buffer.from(Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e],
  ['31 to 0', Buffer.from(Array.from({ length: 32 }, (_, i) => 31 - i)), 0x113fdb5c],
  ['nothing', Buffer.alloc(0), 0],
] as [string, Buffer, number][])('%s', ([, bytes, crc]) => {
  expect(crc32c(bytes, 0, bytes.length)).toBe(crc);
});

test('any bytes at any alignment, as kafkajs computes it', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(20), fc.nat(20), (bytes, before, behind) => {
      // A buffer of its own memory and one within a pool: the offsets in memory differ.
      for (const room of [Buffer.allocUnsafeSlow(240), Buffer.alloc(241).subarray(1)]) {
        room.set(bytes, before);
        const end = Math.max(before, before + bytes.length - behind);
        expect(crc32c(room, before, end)).toBe(crcOfKafkajs(room.subarray(before, end)) >>> 0);
      }
    }),
    { numRuns: 500 },
  );
});
