import { fault, type RelayError } from '../model/fault.ts';
import { ColumnType, isInteger } from './column-types.ts';
import { TimeFormat } from './column-time.ts';
import type { NamedColumn } from './named-columns.ts';

/** Where a value goes: an index into the reader's fields. A template's columns follow from `FirstPart` on. */
export const Target = {
  IdBytes: 0,
  Topic: 1,
  Key: 2,
  EventType: 3,
  Value: 4,
  Headers: 5,
  IdempotencyKey: 6,
  FirstPart: 7,
} as const;

export const TakeKind = {
  /** The value's bytes as they are. */
  Bytes: 0,
  /** MySQL's binary JSON. */
  Json: 1,
  /** BINARY(n): the log leaves trailing zero bytes out. */
  Padded: 2,
  /** An integer as decimal text. */
  Digits: 3,
  /** An ENUM's label. */
  Label: 4,
  /** An integer primary key. */
  Id: 5,
  StatusLabel: 6,
  StatusText: 7,
  AvailableAt: 8,
  CreatedAt: 9,
  /** BINARY(16) as a UUID's text. */
  Uuid: 10,
} as const;
export type TakeKind = (typeof TakeKind)[keyof typeof TakeKind];

/** What is done with a column's value. One shape for all kinds: it is looked at for every row. */
export interface Take {
  readonly kind: TakeKind;
  readonly target: number;
  readonly unsigned: boolean;
  /** Label: all of them. */
  readonly labels: readonly Buffer[];
  /** StatusLabel: the number of the label `pending`. */
  readonly pending: number;
  /** Padded: bytes of the whole value. */
  readonly width: number;
  readonly time: TimeFormat;
  readonly fractionBytes: number;
}

export const PENDING = Buffer.from('pending');

const NOTHING: Take = {
  kind: TakeKind.Bytes,
  target: 0,
  unsigned: false,
  labels: [],
  pending: 0,
  width: 0,
  time: TimeFormat.DateTime2,
  fractionBytes: 0,
};

const UUID_BYTES = 16;

/** Character sets whose bytes are UTF-8, or no text at all. */
const AS_THEY_ARE: ReadonlySet<string | null> = new Set(['utf8mb4', 'utf8mb3', 'ascii', 'binary']);
const WIDE: ReadonlySet<string | null> = new Set(['ucs2', 'utf16', 'utf16le', 'utf32']);

/** Throws a RelayError (halt) for a column that cannot be read in this part. */
export function takeId(column: NamedColumn, table: string): Take {
  if (isInteger(column.type)) return { ...NOTHING, kind: TakeKind.Id, unsigned: column.unsigned };
  return takeText(column, table, Target.IdBytes);
}

/** Topic, aggregate id, event type, idempotency key, non-integer id: text as SELECT shows it, or the bytes of a binary column. */
export function takeText(column: NamedColumn, table: string, target: number): Take {
  const { type } = column;
  if (isInteger(type)) {
    return { ...NOTHING, kind: TakeKind.Digits, target, unsigned: column.unsigned };
  }
  if (type === ColumnType.Enum && column.labels !== null) {
    const ascii = column.labels.every((label) => label.every((byte) => byte < 0x80));
    if (!AS_THEY_ARE.has(column.characterSet) && !(ascii && !WIDE.has(column.characterSet)))
      throw foreign(column, table);
    return { ...NOTHING, kind: TakeKind.Label, target, labels: column.labels };
  }
  return takeBytes(column, table, target);
}

/** The idempotency key: a BINARY(16) is a UUID, anything else the text that it is. */
export function takeKey(column: NamedColumn, table: string, target: number): Take {
  const take = takeText(column, table, target);
  return take.kind === TakeKind.Padded && take.width === UUID_BYTES ? { ...take, kind: TakeKind.Uuid } : take;
}

/** Payload and headers. */
export function takeDocument(column: NamedColumn, table: string, target: number): Take {
  if (column.type === ColumnType.Json) return { ...NOTHING, kind: TakeKind.Json, target };
  return takeBytes(column, table, target);
}

function takeBytes(column: NamedColumn, table: string, target: number): Take {
  const { type } = column;
  const bytes =
    type === ColumnType.VarChar ||
    type === ColumnType.VarString ||
    type === ColumnType.String ||
    type === ColumnType.Blob;
  if (!bytes) throw unreadable(column, table);
  if (!AS_THEY_ARE.has(column.characterSet)) throw foreign(column, table);
  if (type === ColumnType.String && column.characterSet === 'binary') {
    return { ...NOTHING, kind: TakeKind.Padded, target, width: column.extent?.width ?? 0 };
  }
  return { ...NOTHING, target };
}

export function takeStatus(column: NamedColumn, table: string): Take {
  if (column.type === ColumnType.Enum && column.labels !== null) {
    const pending = column.labels.findIndex((label) => label.equals(PENDING)) + 1;
    if (pending > 0) return { ...NOTHING, kind: TakeKind.StatusLabel, pending };
    throw fault('MYSQL_SCHEMA', 'halt', `column ${column.name} of ${table} has no label 'pending'`);
  }
  return { ...takeBytes(column, table, 0), kind: TakeKind.StatusText };
}

const TIMES: Readonly<Record<number, TimeFormat>> = {
  [ColumnType.DateTime2]: TimeFormat.DateTime2,
  [ColumnType.Timestamp2]: TimeFormat.Timestamp2,
  [ColumnType.DateTime]: TimeFormat.DateTime,
  [ColumnType.Timestamp]: TimeFormat.Timestamp,
};

export function takeTime(
  column: NamedColumn,
  table: string,
  kind: typeof TakeKind.AvailableAt | typeof TakeKind.CreatedAt,
): Take {
  const time = TIMES[column.type] as TimeFormat | undefined;
  if (time === undefined) throw unreadable(column, table);
  return { ...NOTHING, kind, time, fractionBytes: (column.metadata + 1) >> 1 };
}

function unreadable(column: NamedColumn, table: string): RelayError {
  return fault(
    'BINLOG_UNSUPPORTED',
    'halt',
    `column ${column.name} of ${table} has a type (${column.type}) that cannot be used for this`,
  );
}

function foreign(column: NamedColumn, table: string): RelayError {
  return fault(
    'BINLOG_UNSUPPORTED',
    'halt',
    `column ${column.name} of ${table} has the character set ${column.characterSet ?? 'unknown'}; ` +
      'utf8mb4, utf8mb3, ascii and binary can be read',
  );
}
