import { characterSetOf } from './collations.ts';
import { ColumnType } from './column-types.ts';
import type { Column, TableMap } from './table-map.ts';

/** What information_schema says about a table now; the log's events may be older. */
export interface TableDefinition {
  /** When the table was created or last rebuilt: events before it may have had other columns. */
  readonly createdAtSeconds: number;
  readonly columns: readonly ColumnDefinition[];
}

export interface ColumnDefinition {
  readonly name: string;
  /** `bigint`, `enum`, … */
  readonly dataType: string;
  /** `bigint unsigned`, `enum('a','b')`, … */
  readonly columnType: string;
  readonly characterSet: string | null;
  /** The most bytes that a text or bytes column holds; null for others. */
  readonly octetLength: number | null;
}

const T = ColumnType;
const TYPES: Readonly<Partial<Record<string, readonly number[]>>> = {
  tinyint: [T.Tiny],
  smallint: [T.Short],
  mediumint: [T.Int24],
  int: [T.Long],
  bigint: [T.LongLong],
  float: [T.Float],
  double: [T.Double],
  decimal: [T.NewDecimal],
  bit: [T.Bit],
  year: [T.Year],
  date: [T.Date, T.NewDate],
  time: [T.Time2, T.Time],
  datetime: [T.DateTime2, T.DateTime],
  timestamp: [T.Timestamp2, T.Timestamp],
  char: [T.String],
  binary: [T.String],
  varchar: [T.VarChar, T.VarString, T.VarCharCompressed],
  varbinary: [T.VarChar, T.VarString, T.VarCharCompressed],
  enum: [T.Enum],
  set: [T.Set],
  json: [T.Json],
};
const BLOBS = [T.Blob, T.BlobCompressed, T.Geometry, T.Vector, T.String] as readonly number[];

const TEXTS = /^(?:tiny|medium|long)?(?:text|blob)$/;

/** The type as the log numbers it today; `Null`, which no column has, for one that is not known here. */
export function typeOf({ dataType }: ColumnDefinition): number {
  return TYPES[dataType]?.[0] ?? (TEXTS.test(dataType) ? T.Blob : T.Null);
}

/** True when the table's columns of now may be those of the event: as many, and alike in all that the event says. */
export function fits(definition: TableDefinition, map: TableMap): boolean {
  return (
    definition.columns.length === map.columns.length &&
    definition.columns.every((column, i) => isLike(column, map.columns[i]))
  );
}

function isLike(now: ColumnDefinition, then: Column): boolean {
  if (!(TYPES[now.dataType] ?? BLOBS).includes(then.type)) return false;
  if (then.unsigned !== null && then.unsigned !== isUnsigned(now)) return false;
  const characterSet = then.collation === null ? null : characterSetOf(then.collation);
  if (characterSet !== null && characterSet !== (now.characterSet ?? 'binary').replace(/^utf8$/, 'utf8mb3'))
    return false;
  return sizeOf(now, then.type) === null || sizeOf(now, then.type) === sizeIn(then);
}

/** A number that changes with the column's size or precision; null for a type that has none in the event. */
function sizeOf({ columnType, octetLength }: ColumnDefinition, type: number): number | null {
  const [first = 0, second = 0] = (/\((\d+)(?:,(\d+))?\)/.exec(columnType) ?? [])
    .slice(1)
    .map((n: string | undefined) => Number(n ?? 0));
  switch (type) {
    case T.VarChar:
    case T.VarString:
    case T.String:
      return octetLength;
    case T.Blob:
      return octetLength === null ? null : Math.ceil(Math.log2(octetLength + 1) / 8);
    case T.NewDecimal:
      return first + second * 256;
    case T.Time2:
    case T.DateTime2:
    case T.Timestamp2:
      return first;
    default:
      return null;
  }
}

function sizeIn({ type, metadata, extent }: Column): number {
  return type === T.String ? (extent?.width ?? 0) : metadata;
}

/** The labels in `enum('a','it''s')`, as UTF-8; the server escapes a few characters in them. */
export function labelsOf({ columnType }: ColumnDefinition): Buffer[] | null {
  if (!/^(?:enum|set)\(/i.test(columnType)) return null;
  return [...columnType.matchAll(/'((?:[^'\\]|''|\\.)*)'/gs)].map(([, label]) =>
    Buffer.from(label.replaceAll(/''|\\(.)/gs, (_, c?: string) => (c === undefined ? "'" : (ESCAPED[c] ?? c)))),
  );
}

const ESCAPED: Readonly<Record<string, string>> = { n: '\n', r: '\r', '0': '\0', Z: '\x1a' };

/** The log counts YEAR among the numbers, as one without a sign. */
export function isUnsigned({ columnType }: ColumnDefinition): boolean {
  return /\bunsigned\b|^year\b/i.test(columnType);
}
