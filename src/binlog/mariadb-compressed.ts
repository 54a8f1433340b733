import { inflateSync } from 'node:zlib';
import { EventType, HEADER_BYTES, SIZE_AT, TYPE_AT } from './event-header.ts';
import { u16 } from './little-endian.ts';
import { PackedReader } from './packed-reader.ts';
import { TABLE_ID_BYTES } from './table-map.ts';

/** The event that each one is when it is inflated. */
const PLAIN: Readonly<Record<number, number>> = {
  [EventType.MariadbCompressedQuery]: EventType.Query,
  166: EventType.WriteRowsV1,
  167: EventType.UpdateRowsV1,
  168: EventType.DeleteRowsV1,
  169: EventType.WriteRows,
  170: EventType.UpdateRows,
  171: EventType.DeleteRows,
};

/** True for the events that `log_bin_compress` makes. */
export function isCompressedRows(type: number): boolean {
  return type >= EventType.MariadbCompressedRowsFirst && type <= EventType.MariadbCompressedRowsLast;
}

/**
 * The event as it would be without compression, and without checksum. Only its last part is compressed: the row
 * images, or the text of the statement. Throws when it is broken, or more or less comes out of it than it says.
 */
export function inflateEvent(b: Buffer, start: number, bodyEnd: number): Buffer {
  const type = b[start + TYPE_AT];
  const body = start + HEADER_BYTES;
  const plain = PLAIN[type];
  const packed = plain === EventType.Query ? textAt(b, body) : imagesAt(b, body, bodyEnd, plain);
  const inflated = inflate(b, packed, bodyEnd);
  const event = Buffer.concat([b.subarray(start, packed), inflated]);
  event[TYPE_AT] = plain;
  event.writeUInt32LE(event.length, SIZE_AT);
  return event;
}

/** Behind status variables, schema and a zero. */
function textAt(b: Buffer, body: number): number {
  return body + 13 + u16(b, body + 11) + b[body + 8] + 1;
}

/** Behind table id, flags, further data (from version 2 on), the number of columns and a bit each. */
function imagesAt(b: Buffer, body: number, bodyEnd: number, type: number): number {
  const flagsEnd = body + TABLE_ID_BYTES + 2;
  const reader = new PackedReader(b, type >= EventType.WriteRows ? flagsEnd + u16(b, flagsEnd) : flagsEnd, bodyEnd);
  const bitmapBytes = (reader.integer() + 7) >> 3;
  const isUpdate = type === EventType.UpdateRows || type === EventType.UpdateRowsV1;
  reader.skip(isUpdate ? 2 * bitmapBytes : bitmapBytes);
  return reader.at;
}

/** A byte: 0x80, algorithm (bits 4 to 6, 0 is zlib), bytes of length; the length, the highest byte first; the stream. */
function inflate(b: Buffer, at: number, end: number): Buffer {
  const reader = new PackedReader(b, at, end);
  const head = reader.byte();
  const lengthBytes = head & 0x07;
  if ((head & 0xf0) !== 0x80 || lengthBytes < 1 || lengthBytes > 4) throw new RangeError('an unknown compression');
  const size = b.readUIntBE(reader.skip(lengthBytes), lengthBytes);
  if (size === 0) throw new RangeError('a compressed event with nothing in it');
  const inflated = inflateSync(b.subarray(reader.at, end), { maxOutputLength: size });
  if (inflated.length !== size) throw new RangeError('a compressed event with less in it than it says');
  return inflated;
}
