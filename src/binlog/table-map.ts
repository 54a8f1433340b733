import { ColumnType, extentOf, hasSign, isCharacter, metadataBytes, realType, type Extent } from './column-types.ts';
import { HEADER_BYTES } from './event-header.ts';
import { PackedReader } from './packed-reader.ts';

export interface Column {
  /** Null without `binlog_row_metadata=FULL`. */
  readonly name: string | null;
  /** The real type: ENUM and SET, not STRING. */
  readonly type: number;
  /** Fractional digits, length bytes, precision …, as the type has it. */
  readonly metadata: number;
  /** Null for a type whose length is not known here. */
  readonly extent: Extent | null;
  /** Null when the event does not say, or it is no number. */
  readonly unsigned: boolean | null;
  /** Of a character, ENUM or SET column; null when the event does not say. */
  readonly collation: number | null;
  /** Of an ENUM or SET, in the column's character set; null without FULL metadata. */
  readonly labels: readonly Buffer[] | null;
}

export interface TableMap {
  readonly schema: string;
  readonly table: string;
  readonly columns: readonly Column[];
  /** Column indexes; null without FULL metadata, or without a primary key. */
  readonly primaryKey: readonly number[] | null;
}

export const TABLE_ID_BYTES = 6;
/** Behind table id and flags. */
export const TABLE_NAMES_AT = HEADER_BYTES + TABLE_ID_BYTES + 2;

/** Optional metadata (MySQL source, `Optional_metadata_field_type`). */
const SIGNEDNESS = 1;
const DEFAULT_CHARSET = 2;
const COLUMN_CHARSET = 3;
const COLUMN_NAME = 4;
const SET_LABELS = 5;
const ENUM_LABELS = 6;
const PRIMARY_KEY = 8;
const PRIMARY_KEY_WITH_PREFIX = 9;
const ENUM_SET_DEFAULT_CHARSET = 10;
const ENUM_SET_COLUMN_CHARSET = 11;

/**
 * TABLE_MAP: table id (6), flags (2), schema and table (length, name, 0), number of columns, a type byte each,
 * metadata, a bit each for nullability, optional metadata (type, length, value) to the end.
 * `mariadb`: written by one. Throws a RangeError when a field reaches beyond the event.
 */
export function readTableMap(buffer: Buffer, start: number, bodyEnd: number, mariadb: boolean): TableMap {
  const reader = new PackedReader(buffer, start + TABLE_NAMES_AT, bodyEnd);
  const schema = readName(buffer, reader);
  const table = readName(buffer, reader);
  const count = reader.integer();
  const types = buffer.subarray(reader.skip(count), reader.at);
  const metadata = readMetadata(buffer, reader, types);
  reader.skip((count + 7) >> 3);
  const real = metadata.map((each, i) => realType(types[i], each));
  const optional = readOptional(buffer, reader, real, mariadb);
  const columns = real.map((type, i) => ({
    name: optional.names?.[i] ?? null,
    type,
    metadata: metadata[i],
    extent: extentOf(type, metadata[i]),
    unsigned: optional.unsigned[i] ?? null,
    collation: optional.collations[i] ?? null,
    labels: optional.labels[i] ?? null,
  }));
  return { schema, table, columns, primaryKey: optional.primaryKey };
}

function readName(buffer: Buffer, reader: PackedReader): string {
  const length = reader.integer();
  const at = reader.skip(length);
  reader.skip(1);
  return buffer.toString('utf8', at, at + length);
}

function readMetadata(buffer: Buffer, reader: PackedReader, types: Buffer): number[] {
  const bytes = reader.integer();
  const inner = new PackedReader(buffer, reader.skip(bytes), reader.at);
  return Array.from(types, (type) => {
    const size = metadataBytes(type);
    return size === 0 ? 0 : buffer.readUIntLE(inner.skip(size), size);
  });
}

interface Optional {
  unsigned: boolean[];
  collations: number[];
  labels: Buffer[][];
  names: string[] | null;
  primaryKey: number[] | null;
}

/** The lists of the optional metadata are about some columns only, by type, in the table's order. */
function readOptional(buffer: Buffer, all: PackedReader, types: readonly number[], mariadb: boolean): Optional {
  const of = (fits: (type: number) => boolean) => [...types.keys()].filter((i) => fits(types[i]));
  const found: Optional = { unsigned: [], collations: [], labels: [], names: null, primaryKey: null };
  const character = () => of((type) => isCharacter(type, mariadb));
  const enums = () => of((type) => type === ColumnType.Enum);
  const sets = () => of((type) => type === ColumnType.Set);
  const enumsAndSets = () => of((type) => type === ColumnType.Enum || type === ColumnType.Set);
  while (all.left > 0) {
    const field = all.byte();
    const length = all.integer();
    const reader = new PackedReader(buffer, all.skip(length), all.at);
    switch (field) {
      case SIGNEDNESS:
        for (const [n, i] of of(hasSign).entries()) {
          found.unsigned[i] = (buffer[all.at - length + (n >> 3)] & (0x80 >> (n & 7))) !== 0;
        }
        break;
      case DEFAULT_CHARSET:
        readDefaultCollation(reader, character(), found.collations);
        break;
      case ENUM_SET_DEFAULT_CHARSET:
        readDefaultCollation(reader, enumsAndSets(), found.collations);
        break;
      case COLUMN_CHARSET:
        for (const i of character()) found.collations[i] = reader.integer();
        break;
      case ENUM_SET_COLUMN_CHARSET:
        for (const i of enumsAndSets()) found.collations[i] = reader.integer();
        break;
      case COLUMN_NAME:
        found.names = types.map(() => readText(buffer, reader).toString('utf8'));
        break;
      case ENUM_LABELS:
        for (const i of enums()) found.labels[i] = readLabels(buffer, reader);
        break;
      case SET_LABELS:
        for (const i of sets()) found.labels[i] = readLabels(buffer, reader);
        break;
      case PRIMARY_KEY:
        found.primaryKey = [];
        while (reader.left > 0) found.primaryKey.push(reader.integer());
        break;
      case PRIMARY_KEY_WITH_PREFIX:
        found.primaryKey = [];
        while (reader.left > 0) {
          found.primaryKey.push(reader.integer());
          reader.integer();
        }
        break;
    }
  }
  return found;
}

/** One for all, then pairs of (index in the list, collation) for those that differ. */
function readDefaultCollation(reader: PackedReader, columns: readonly number[], collations: number[]): void {
  const usual = reader.integer();
  for (const i of columns) collations[i] = usual;
  while (reader.left > 0) {
    const n = reader.integer();
    if (n >= columns.length) throw new RangeError('character set of a column that is not there');
    collations[columns[n]] = reader.integer();
  }
}

function readLabels(buffer: Buffer, reader: PackedReader): Buffer[] {
  const count = reader.integer();
  if (count > reader.left) throw new RangeError('more labels than the event can hold');
  return Array.from({ length: count }, () => readText(buffer, reader));
}

/** A copy: what is read here outlives the event. */
function readText(buffer: Buffer, reader: PackedReader): Buffer {
  const length = reader.integer();
  const at = reader.skip(length);
  return Buffer.from(buffer.subarray(at, at + length));
}
