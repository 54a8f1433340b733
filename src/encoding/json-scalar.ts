import { writeSigned64, writeUnsigned, writeUnsigned64 } from './digits.ts';
import {
  corrupt,
  dataStart,
  DOUBLE,
  INT16,
  INT32,
  INT64,
  LITERAL,
  OPAQUE,
  STRING,
  uint16,
  UINT16,
  uint32,
  UINT32,
  UINT64,
} from './json-binary.ts';
import { writeDouble } from './json-double.ts';
import { isQuotedOpaque, opaqueLength, writeOpaque } from './json-opaque.ts';
import { jsonStringLength, writeLongJsonString } from './json-string.ts';

/** Texts of the literals, by their code in binary JSON. */
const LITERALS = ['null', 'true', 'false'].map((text) => Buffer.from(text, 'latin1'));

/** Room for the text of a number: the longest is a double's (34 bytes). */
const scratch = Buffer.alloc(64);

/** Writes a scalar whose extent `valueBytes` has found; returns the offset behind its text. */
export function writeJsonScalar(
  type: number,
  source: Buffer,
  start: number,
  end: number,
  out: Buffer,
  at: number,
): number {
  switch (type) {
    case STRING:
      return writeLongJsonString(out, at, source, dataStart(source, start), end);
    case INT16:
      return writeSigned(out, at, (uint16(source, start) << 16) >> 16);
    case UINT16:
      return writeUnsigned(out, at, uint16(source, start));
    case INT32:
      return writeSigned(out, at, uint32(source, start) | 0);
    case UINT32:
      return writeUnsigned(out, at, uint32(source, start));
    case INT64:
      return writeSigned64(out, at, uint32(source, start), uint32(source, start + 4));
    case UINT64:
      return writeUnsigned64(out, at, uint32(source, start), uint32(source, start + 4));
    case DOUBLE:
      return writeDouble(out, at, source.readDoubleLE(start));
    case LITERAL:
      return writeJsonLiteral(source[start], out, at);
    case OPAQUE: {
      if (!isQuotedOpaque(source, start)) return writeOpaque(out, at, source, start, end, true);
      out[at] = 0x22;
      at = writeOpaque(out, at + 1, source, start, end, true);
      out[at] = 0x22;
      return at + 1;
    }
    default:
      throw corrupt(`unknown type ${type}`);
  }
}

/** Length of what `writeJsonScalar` writes. */
export function jsonScalarLength(type: number, source: Buffer, start: number, end: number): number {
  switch (type) {
    case STRING:
      return jsonStringLength(source, dataStart(source, start), end);
    case LITERAL:
      return jsonLiteralLength(source[start]);
    case OPAQUE:
      return opaqueLength(source, start, end, true) + (isQuotedOpaque(source, start) ? 2 : 0);
    default:
      return writeJsonScalar(type, source, start, end, scratch, 0);
  }
}

export function writeJsonLiteral(literal: number, out: Buffer, at: number): number {
  const text = literalText(literal);
  for (let i = 0; i < text.length; i++) out[at + i] = text[i];
  return at + text.length;
}

export function jsonLiteralLength(literal: number): number {
  return literalText(literal).length;
}

function literalText(literal: number): Buffer {
  if (literal >= LITERALS.length) throw corrupt('unknown literal');
  return LITERALS[literal];
}

function writeSigned(out: Buffer, at: number, n: number): number {
  if (n >= 0) return writeUnsigned(out, at, n);
  out[at] = 0x2d;
  return writeUnsigned(out, at + 1, -n);
}
