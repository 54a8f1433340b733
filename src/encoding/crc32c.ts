import { endianness } from 'node:os';

/**
 * CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), the checksum of Kafka's record batches. Slicing (Kounavis and
 * Berry, 2005): sixteen bytes a step, one look-up each. TABLES[256 * k + b] is what byte b gives with k bytes behind it.
 */
const SLICES = 16;
const TABLES = new Int32Array(SLICES * 256);
for (let b = 0; b < 256; b++) {
  let crc = b;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  TABLES[b] = crc;
}
for (let i = 256; i < TABLES.length; i++) {
  const crc = TABLES[i - 256];
  TABLES[i] = (crc >>> 8) ^ TABLES[crc & 0xff];
}

/** The words below are read in the machine's own order; where that is not little end first, bytes are. */
const STEP = endianness() === 'LE' ? SLICES : Infinity;

/** CRC-32C of `buffer[start, end)`, unsigned. */
export function crc32c(buffer: Buffer, start: number, end: number): number {
  let crc = -1;
  let at = start;
  if (end - start >= STEP) {
    const aligned = start + (-(buffer.byteOffset + start) & 3);
    crc = bytewise(crc, buffer, at, aligned);
    const words = new Int32Array(buffer.buffer, buffer.byteOffset + aligned, (end - aligned) >>> 2);
    const count = words.length & ~3;
    crc = wordwise(crc, words, count);
    at = aligned + count * 4;
  }
  return ~bytewise(crc, buffer, at, end) >>> 0;
}

function bytewise(crc: number, buffer: Buffer, at: number, end: number): number {
  for (; at < end; at++) crc = TABLES[(crc ^ buffer[at]) & 0xff] ^ (crc >>> 8);
  return crc;
}

/** `count` is a multiple of four. */
function wordwise(crc: number, words: Int32Array, count: number): number {
  const t = TABLES;
  for (let i = 0; i < count; i += 4) {
    const a = crc ^ words[i];
    const b = words[i + 1];
    const c = words[i + 2];
    const d = words[i + 3];
    crc =
      t[3840 + (a & 0xff)] ^
      t[3584 + ((a >>> 8) & 0xff)] ^
      t[3328 + ((a >>> 16) & 0xff)] ^
      t[3072 + (a >>> 24)] ^
      t[2816 + (b & 0xff)] ^
      t[2560 + ((b >>> 8) & 0xff)] ^
      t[2304 + ((b >>> 16) & 0xff)] ^
      t[2048 + (b >>> 24)] ^
      t[1792 + (c & 0xff)] ^
      t[1536 + ((c >>> 8) & 0xff)] ^
      t[1280 + ((c >>> 16) & 0xff)] ^
      t[1024 + (c >>> 24)] ^
      t[768 + (d & 0xff)] ^
      t[512 + ((d >>> 8) & 0xff)] ^
      t[256 + ((d >>> 16) & 0xff)] ^
      t[d >>> 24];
  }
  return crc;
}
