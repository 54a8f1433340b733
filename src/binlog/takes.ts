import type { Charset } from '../encoding/charset.ts';
import { charsetNamed, isUtf8 } from '../encoding/charsets.ts';
import { fault, type RelayError } from '../model/fault.ts';
import { type ColumnText, decimalText, setText } from './column-text.ts';
import { ColumnType, isInteger } from './column-types.ts';
import { TimeFormat } from './column-time.ts';
import type { NamedColumn } from './named-columns.ts';
import { DATE_TEXT, datetimeText, timestampText, timeText, YEAR_TEXT } from './time-text.ts';

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
  /** Text of a character set that is not UTF-8. */
  Foreign: 11,
  /** What has a text of its own: DECIMAL, DATE, SET, … */
  Shown: 12,
} as const;
export type TakeKind = (typeof TakeKind)[keyof typeof TakeKind];

/** What is done with a column's value. One shape for all kinds: it is looked at for every row. */
export interface Take {
  readonly kind: TakeKind;
  readonly target: number;
  readonly unsigned: boolean;
  /** Label: all of them. */
  readonly labels: readonly Buffer[];
  /** Foreign, and StatusText where that is not UTF-8. */
  readonly charset: Charset | null;
  /** Shown. */
  readonly text: ColumnText | null;
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
  charset: null,
  text: null,
  pending: 0,
  width: 0,
  time: TimeFormat.DateTime2,
  fractionBytes: 0,
};

const UUID_BYTES = 16;

/** Throws a RelayError (halt) for a column that cannot be read in this part. */
export function takeId(column: NamedColumn, table: string): Take {
  if (isInteger(column.type)) return { ...NOTHING, kind: TakeKind.Id, unsigned: column.unsigned };
  const take = isString(column.type) ? takeText(column, table, Target.IdBytes) : null;
  if (take === null) throw unreadable(column, table, 'a primary key: an integer, text or bytes can be');
  return take;
}

/** Any part: text as SELECT shows it, or the bytes of a binary column. */
export function takeText(column: NamedColumn, table: string, target: number): Take {
  const { type, metadata } = column;
  if (isDressed(column)) throw unreadable(column, table);
  if (isInteger(type)) return { ...NOTHING, kind: TakeKind.Digits, target, unsigned: column.unsigned };
  if (isString(type)) return takeString(column, table, target);
  const shown = (text: ColumnText): Take => ({ ...NOTHING, kind: TakeKind.Shown, target, text });
  switch (type) {
    case ColumnType.Enum:
      return { ...NOTHING, kind: TakeKind.Label, target, labels: labelsOf(column, table) };
    case ColumnType.Set:
      return shown(setText(labelsOf(column, table)));
    case ColumnType.NewDecimal:
      return shown(decimalText(metadata));
    case ColumnType.Date:
      return shown(DATE_TEXT);
    case ColumnType.Time2:
      return shown(timeText(metadata));
    case ColumnType.DateTime2:
      return shown(datetimeText(metadata));
    case ColumnType.Timestamp2:
      return shown(timestampText(metadata));
    case ColumnType.Year:
      return shown(YEAR_TEXT);
    case ColumnType.Bit:
      return { ...NOTHING, target };
    default:
      // FLOAT and DOUBLE among them: how many digits the server shows depends on version, product and the way asked.
      throw unreadable(column, table);
  }
}

/** The idempotency key: a BINARY(16) is a UUID, anything else the text that it is. */
export function takeKey(column: NamedColumn, table: string, target: number): Take {
  const take = takeText(column, table, target);
  return take.kind === TakeKind.Padded && take.width === UUID_BYTES ? { ...take, kind: TakeKind.Uuid } : take;
}

/** Payload and headers. */
export function takeDocument(column: NamedColumn, table: string, target: number): Take {
  if (column.type === ColumnType.Json) return { ...NOTHING, kind: TakeKind.Json, target };
  return takeText(column, table, target);
}

function takeString(column: NamedColumn, table: string, target: number): Take {
  const { type, characterSet, extent } = column;
  if (type === ColumnType.String && characterSet === 'binary') {
    return { ...NOTHING, kind: TakeKind.Padded, target, width: extent?.width ?? 0 };
  }
  if (characterSet !== null && isUtf8(characterSet)) return { ...NOTHING, target };
  const charset = characterSet === null ? null : charsetNamed(characterSet);
  if (charset === null) throw unknownSet(column, table);
  return { ...NOTHING, kind: TakeKind.Foreign, target, charset };
}

function isString(type: number): boolean {
  return (
    type === ColumnType.VarChar ||
    type === ColumnType.VarString ||
    type === ColumnType.String ||
    type === ColumnType.Blob
  );
}

/** ZEROFILL: the server shows a value otherwise than the log can tell. COMPRESSED: not in its own bytes. */
function isDressed({ declared }: NamedColumn): boolean {
  return declared !== null && /\bzerofill\b|\bcompressed\b/i.test(declared);
}

function labelsOf(column: NamedColumn, table: string): readonly Buffer[] {
  if (column.labels === null) throw unreadable(column, table);
  return column.labels;
}

export function takeStatus(column: NamedColumn, table: string): Take {
  if (column.type === ColumnType.Enum && column.labels !== null) {
    const pending = column.labels.findIndex((label) => label.equals(PENDING)) + 1;
    if (pending > 0) return { ...NOTHING, kind: TakeKind.StatusLabel, pending };
    throw fault('MYSQL_SCHEMA', 'halt', `column ${column.name} of ${table} has no label 'pending'`);
  }
  if (!isString(column.type) || column.characterSet === 'binary') throw unreadable(column, table, 'a status');
  return { ...takeString(column, table, 0), kind: TakeKind.StatusText };
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
  if (time === undefined) throw unreadable(column, table, 'a time: DATETIME or TIMESTAMP can be');
  return { ...NOTHING, kind, time, fractionBytes: (column.metadata + 1) >> 1 };
}

function unreadable(column: NamedColumn, table: string, role = 'text'): RelayError {
  const type = column.declared === null ? `type ${column.type} of the log` : nameOf(column.declared);
  return fault('BINLOG_UNSUPPORTED', 'halt', `column ${column.name} of ${table} is ${type}, which cannot be ${role}`);
}

/** `ENUM`, `FLOAT(7,2)`, `INT(5) UNSIGNED ZEROFILL`: labels left out, they may be many. */
function nameOf(declared: string): string {
  return declared.replace(/\((?=').*\)/s, '').toUpperCase();
}

function unknownSet(column: NamedColumn, table: string): RelayError {
  const set = column.characterSet ?? 'that is not known';
  return fault('BINLOG_UNSUPPORTED', 'halt', `column ${column.name} of ${table} has a character set ${set}`);
}
