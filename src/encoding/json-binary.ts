import { fault, type RelayError } from '../model/fault.ts';

/**
 * MySQL's binary JSON (sql-common/json_binary.h): where things are, and whether they can be there.
 *
 * A document is a type byte and a value. An object or array is: element count, size in bytes, key entries (offset of
 * the key's text, its length in 16 bits; objects only), value entries (type, then the value itself or its offset),
 * keys, values. Counts, sizes and offsets take 2 bytes in the small format and 4 in the large one; offsets count from
 * the container's first byte. All integers are little endian.
 *
 * The binary log is trusted as little as any other input: a value is looked at only after `valueBytes` has found it
 * whole, and all parts of a container must fit into its size together. So no byte is read outside the document, and
 * text stays in proportion to it even where corrupt offsets make containers share their parts.
 */
const SMALL_OBJECT = 0x00;
const LARGE_OBJECT = 0x01;
const SMALL_ARRAY = 0x02;
const LARGE_ARRAY = 0x03;
export const LITERAL = 0x04;
export const INT16 = 0x05;
export const UINT16 = 0x06;
export const INT32 = 0x07;
export const UINT32 = 0x08;
export const INT64 = 0x09;
export const UINT64 = 0x0a;
export const DOUBLE = 0x0b;
export const STRING = 0x0c;
export const OPAQUE = 0x0f;

/** The literal; 1 is true, 2 is false. */
export const LITERAL_NULL = 0;

/** Containers within containers: the server refuses deeper documents (JSON_DOCUMENT_MAX_DEPTH). */
export const MAX_DEPTH = 100;

export function corrupt(what: string): RelayError {
  return fault('ROW_ENCODING', 'reject', `binary JSON is corrupt: ${what}`);
}

export function isContainer(type: number): boolean {
  return type <= LARGE_ARRAY;
}

export function isLarge(type: number): boolean {
  return (type & 1) === 1;
}

export function isObject(type: number): boolean {
  return type <= LARGE_OBJECT;
}

/** True for the types whose value stands in the value entry itself. */
export function isInlined(type: number, large: boolean): boolean {
  return (type >= LITERAL && type <= UINT16) || (large && (type === INT32 || type === UINT32));
}

export function uint16(source: Buffer, at: number): number {
  return source[at] | (source[at + 1] << 8);
}

export function uint32(source: Buffer, at: number): number {
  return (source[at] | (source[at + 1] << 8) | (source[at + 2] << 16) | (source[at + 3] << 24)) >>> 0;
}

/** A count, size or offset. */
export function size(source: Buffer, at: number, large: boolean): number {
  return large ? uint32(source, at) : uint16(source, at);
}

/**
 * Bytes that the value of this type at `start` takes; a container's header is known to fit into it. Throws a
 * `RelayError` (ROW_ENCODING) when it does not end by `end` or is of no known type.
 */
export function valueBytes(type: number, source: Buffer, start: number, end: number): number {
  const room = end - start;
  let bytes;
  switch (type) {
    case SMALL_OBJECT:
    case LARGE_OBJECT:
    case SMALL_ARRAY:
    case LARGE_ARRAY:
      bytes = containerBytes(type, source, start, room);
      break;
    case LITERAL:
      bytes = 1;
      break;
    case INT16:
    case UINT16:
      bytes = 2;
      break;
    case INT32:
    case UINT32:
      bytes = 4;
      break;
    case INT64:
    case UINT64:
    case DOUBLE:
      bytes = 8;
      break;
    case STRING:
      bytes = dataBytes(source, start, end);
      break;
    case OPAQUE:
      bytes = room > 0 ? 1 + dataBytes(source, start + 1, end) : Infinity;
      break;
    default:
      throw corrupt(`unknown type ${type}`);
  }
  if (bytes > room) throw corrupt('a value does not end within its container');
  return bytes;
}

function containerBytes(type: number, source: Buffer, start: number, room: number): number {
  const large = isLarge(type);
  const width = large ? 4 : 2;
  if (room < 2 * width) return Infinity;
  const bytes = size(source, start + width, large);
  const entry = 1 + width + (isObject(type) ? width + 2 : 0);
  if (2 * width + size(source, start, large) * entry > bytes) {
    throw corrupt('a container is smaller than its entries');
  }
  return bytes;
}

/** Bytes of a length-prefixed run of data, prefix included; Infinity when the prefix has no end. */
function dataBytes(source: Buffer, start: number, end: number): number {
  let length = 0;
  let scale = 1;
  // Seven bits a byte, low end first; five bytes hold the 32 bits that a length may have.
  for (let at = start; at < end && at < start + 5; at++) {
    const byte = source[at];
    length += (byte & 0x7f) * scale;
    if (byte < 0x80) return at + 1 - start + length;
    scale *= 0x80;
  }
  return Infinity;
}

/** Where the data behind a length prefix begins; the prefix is known to have an end. */
export function dataStart(source: Buffer, at: number): number {
  while (source[at] >= 0x80) at++;
  return at + 1;
}
