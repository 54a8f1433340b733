import type { Position } from '../model/position.ts';
import { CHECKSUM_BYTES, checksumHolds } from './checksum.ts';
import { END_AT, HEADER_BYTES } from './event-header.ts';
import { u32, u64 } from './little-endian.ts';
import { PackedReader } from './packed-reader.ts';

const ROTATE_POSITION_BYTES = 8;

/**
 * ROTATE: position in the next file (8), its name to the end. The artificial one opens the stream, before the format
 * description could tell whether events carry a checksum: the bytes themselves tell.
 */
export function readRotate(buffer: Buffer, start: number, end: number): Position {
  const name = start + HEADER_BYTES + ROTATE_POSITION_BYTES;
  const nameEnd = checksumHolds(buffer, start, end) ? end - CHECKSUM_BYTES : end;
  if (nameEnd <= name) throw new RangeError('rotate event without a file name');
  return { file: buffer.toString('utf8', name, nameEnd), offset: u64(buffer, start + HEADER_BYTES) };
}

/**
 * HEARTBEAT: the file's name; the position is the header's, 32 bits of it. MariaDB puts 64 bits before the name when
 * the header's do not suffice (and are 0 then).
 */
export function readHeartbeat(buffer: Buffer, start: number, bodyEnd: number): Position {
  const position = u32(buffer, start + END_AT);
  const body = start + HEADER_BYTES;
  if (position !== 0) return { file: buffer.toString('utf8', body, bodyEnd), offset: position };
  if (bodyEnd < body + 8) throw new RangeError('heartbeat event without a position');
  return { file: buffer.toString('utf8', body + 8, bodyEnd), offset: u64(buffer, body) };
}

const HEARTBEAT_FILE = 1;
const HEARTBEAT_POSITION = 2;

/** HEARTBEAT v2: type, length and value, packed integers: 1 the file's name, 2 the position (a packed integer), 0 end. */
export function readHeartbeatV2(buffer: Buffer, start: number, bodyEnd: number): Position {
  const reader = new PackedReader(buffer, start + HEADER_BYTES, bodyEnd);
  let file = '';
  let offset = 0;
  while (reader.left > 0) {
    const type = reader.integer();
    if (type === 0) break;
    const length = reader.integer();
    const value = reader.skip(length);
    if (type === HEARTBEAT_FILE) file = buffer.toString('utf8', value, value + length);
    if (type === HEARTBEAT_POSITION) offset = new PackedReader(buffer, value, value + length).integer();
  }
  return { file, offset };
}
