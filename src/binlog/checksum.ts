import { crc32 } from 'node:zlib';
import { u32 } from './little-endian.ts';

export const CHECKSUM_BYTES = 4;

/** True when the event's last four bytes are the CRC-32 of what stands before them. */
export function checksumHolds(buffer: Buffer, start: number, end: number): boolean {
  const body = end - CHECKSUM_BYTES;
  return body > start && crc32(buffer.subarray(start, body)) === u32(buffer, body);
}

/**
 * The checksum's size in the events of a file. The byte before a format description's own checksum (which that event
 * always has) names the algorithm: 0 none, 1 CRC-32.
 */
export function checksumBytesOf(buffer: Buffer, formatDescriptionEnd: number): number {
  return buffer[formatDescriptionEnd - CHECKSUM_BYTES - 1] === 0 ? 0 : CHECKSUM_BYTES;
}
