import {
  corrupt,
  isContainer,
  isInlined,
  isLarge,
  isObject,
  LITERAL_NULL,
  MAX_DEPTH,
  size,
  STRING,
  uint16,
  valueBytes,
} from './json-binary.ts';
import { jsonLiteralLength, jsonScalarLength, writeJsonLiteral, writeJsonScalar } from './json-scalar.ts';
import { jsonStringLength, writeJsonString } from './json-string.ts';

/**
 * Writes the document `source[start, end)` in MySQL's binary JSON as the server's own text, byte for byte what
 * `CAST(column AS CHAR)` shows, in UTF-8; returns the offset behind it. `out` has room for `jsonTextBound(end - start)`
 * or `jsonTextLength(...)` bytes. Throws a `RelayError` (ROW_ENCODING) when the document is corrupt.
 */
export function writeJson(source: Buffer, start: number, end: number, out: Buffer, at: number): number {
  // The server takes an empty value for null: INSERT IGNORE may store one.
  if (start === end) return writeJsonLiteral(LITERAL_NULL, out, at);
  const type = source[start];
  return writeJsonValue(type, source, start + 1, start + 1 + valueBytes(type, source, start + 1, end), out, at);
}

/** Length of what `writeJson` writes, at about the same cost. Throws like it. */
export function jsonTextLength(source: Buffer, start: number, end: number): number {
  if (start === end) return jsonLiteralLength(LITERAL_NULL);
  const type = source[start];
  return jsonValueLength(type, source, start + 1, start + 1 + valueBytes(type, source, start + 1, end));
}

/**
 * No document of so many bytes has a longer text. What grows most is a control character (`\u00xx` for one byte);
 * every other part with its commas, colons and quotes stays below six times its entries and bytes.
 */
export function jsonTextBound(bytes: number): number {
  return bytes === 0 ? jsonLiteralLength(LITERAL_NULL) : 6 * bytes;
}

/** As `writeJson`, for a value whose type stands elsewhere and whose extent `valueBytes` has found. */
export function writeJsonValue(
  type: number,
  source: Buffer,
  start: number,
  end: number,
  out: Buffer,
  at: number,
  depth = 1,
): number {
  if (!isContainer(type)) return writeJsonScalar(type, source, start, end, out, at);
  if (depth > MAX_DEPTH) throw corrupt('nested too deeply');
  const large = isLarge(type);
  const object = isObject(type);
  const width = large ? 4 : 2;
  const count = size(source, start, large);
  let keyEntry = start + 2 * width;
  let entry = keyEntry + (object ? count * (width + 2) : 0);
  let free = end - entry - count * (width + 1);

  out[at++] = object ? 0x7b : 0x5b;
  for (let i = 0; i < count; i++) {
    if (i > 0) {
      out[at] = 0x2c;
      out[at + 1] = 0x20;
      at += 2;
    }
    if (object) {
      const key = start + size(source, keyEntry, large);
      const keyEnd = key + uint16(source, keyEntry + width);
      keyEntry += width + 2;
      free -= keyEnd - key;
      if (keyEnd > end || free < 0) throw corrupt('a key does not fit into its object');
      at = writeJsonString(out, at, source, key, keyEnd);
      out[at] = 0x3a;
      out[at + 1] = 0x20;
      at += 2;
    }
    const valueType = source[entry];
    if (isInlined(valueType, large)) {
      at = writeJsonScalar(valueType, source, entry + 1, entry + 1 + width, out, at);
    } else {
      const value = start + size(source, entry + 1, large);
      // Most values are strings of less than 128 bytes: those without a call (a third more documents a second).
      const short = valueType === STRING && value < end && source[value] < 0x80;
      const taken = short ? 1 + source[value] : valueBytes(valueType, source, value, end);
      free -= taken;
      if (free < 0 || value + taken > end) throw corrupt('values do not fit into their container');
      at = short
        ? writeJsonString(out, at, source, value + 1, value + taken)
        : writeJsonValue(valueType, source, value, value + taken, out, at, depth + 1);
    }
    entry += width + 1;
  }
  out[at] = object ? 0x7d : 0x5d;
  return at + 1;
}

/** Length of what `writeJsonValue` writes. */
export function jsonValueLength(type: number, source: Buffer, start: number, end: number, depth = 1): number {
  if (!isContainer(type)) return jsonScalarLength(type, source, start, end);
  if (depth > MAX_DEPTH) throw corrupt('nested too deeply');
  const large = isLarge(type);
  const object = isObject(type);
  const width = large ? 4 : 2;
  const count = size(source, start, large);
  let keyEntry = start + 2 * width;
  let entry = keyEntry + (object ? count * (width + 2) : 0);
  let free = end - entry - count * (width + 1);

  // Brackets, commas and colons.
  let length = 2 + 2 * Math.max(0, count - 1) + (object ? 2 * count : 0);
  for (let i = 0; i < count; i++) {
    if (object) {
      const key = start + size(source, keyEntry, large);
      const keyEnd = key + uint16(source, keyEntry + width);
      keyEntry += width + 2;
      free -= keyEnd - key;
      if (keyEnd > end || free < 0) throw corrupt('a key does not fit into its object');
      length += jsonStringLength(source, key, keyEnd);
    }
    const valueType = source[entry];
    if (isInlined(valueType, large)) {
      length += jsonScalarLength(valueType, source, entry + 1, entry + 1 + width);
    } else {
      const value = start + size(source, entry + 1, large);
      const taken = valueBytes(valueType, source, value, end);
      free -= taken;
      if (free < 0) throw corrupt('values do not fit into their container');
      length += jsonValueLength(valueType, source, value, value + taken, depth + 1);
    }
    entry += width + 1;
  }
  return length;
}
