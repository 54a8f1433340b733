import { fault } from '../model/fault.ts';
import { type Field, Form, type OutboxRow } from '../model/row.ts';
import { BinaryMembers } from './binary-members.ts';
import { fieldBound, fieldLength, writeField } from './field.ts';
import type { HeaderMembers } from './header-members.ts';
import { jsonTextBound } from './json-text.ts';
import { TextMembers } from './text-members.ts';
import { varintLength, writeVarint } from './varint.ts';

/** Names of the relay's own headers, length in front. */
const ID = Buffer.from('\x04id', 'latin1');
const EVENT_TYPE = Buffer.from('\x14event-type', 'latin1');
const REPLAY = Buffer.from('\x20cdc-relay-replay', 'latin1');
const MAX_VARINT_BYTES = 5;

const binaryMembers = new BinaryMembers();
const textMembers = new TextMembers();

/** Cheap upper bound of what `writeHeaders` writes. */
export function headersBound(row: OutboxRow): number {
  const own = row.headers.end - row.headers.start;
  return (
    MAX_VARINT_BYTES +
    ID.length +
    fieldBound(row.idempotencyKey) +
    EVENT_TYPE.length +
    fieldBound(row.eventType) +
    (row.replay.form === Form.Null ? 0 : REPLAY.length + fieldBound(row.replay)) +
    // A member's punctuation makes room for its lengths, or the member itself is longer than both of them.
    (row.headers.form === Form.Json ? jsonTextBound(own) : 2 * own)
  );
}

/** Length of what `writeHeaders` writes. Throws like it. */
export function headersLength(row: OutboxRow): number {
  const members = membersOf(row.headers);
  const count = members === null ? 0 : members.begin(row.headers);
  let length = varintLength(count + ownHeaders(row)) + ID.length + fieldLength(row.idempotencyKey);
  if (row.eventType.form !== Form.Null) length += EVENT_TYPE.length + fieldLength(row.eventType);
  if (row.replay.form !== Form.Null) length += REPLAY.length + fieldLength(row.replay);
  for (let i = 0; i < count; i++) {
    members!.next();
    const key = members!.keyLength();
    const value = members!.valueLength();
    length += varintLength(key) + key + varintLength(value) + Math.max(0, value);
  }
  return length;
}

/**
 * Writes a record's headers: `id` (the idempotency key), `event-type` where the row has one, `cdc-relay-replay` (a job's
 * number) where it is sent again, then the members of the row's own headers; returns the offset behind them. Throws a
 * `RelayError` (ROW_ENCODING).
 */
export function writeHeaders(out: Buffer, at: number, row: OutboxRow, exact: boolean): number {
  const members = membersOf(row.headers);
  const count = members === null ? 0 : members.begin(row.headers);
  at = writeVarint(out, at, count + ownHeaders(row));
  at = writeName(out, at, ID);
  at = writeField(out, at, row.idempotencyKey, exact);
  if (row.eventType.form !== Form.Null) {
    at = writeName(out, at, EVENT_TYPE);
    at = writeField(out, at, row.eventType, exact);
  }
  if (row.replay.form !== Form.Null) {
    at = writeName(out, at, REPLAY);
    at = writeField(out, at, row.replay, exact);
  }
  for (let i = 0; i < count; i++) {
    members!.next();
    at = members!.writeKey(out, writeVarint(out, at, members!.keyLength()));
    const value = members!.valueLength();
    at = writeVarint(out, at, value);
    if (value >= 0) at = members!.writeValue(out, at);
  }
  return at;
}

/** How many headers the relay itself adds. Consumers tell duplicates by `id`: no record goes without it. */
function ownHeaders(row: OutboxRow): number {
  if (row.idempotencyKey.form === Form.Null) throw fault('ROW_ENCODING', 'reject', 'the idempotency key is NULL');
  return 1 + (row.eventType.form === Form.Null ? 0 : 1) + (row.replay.form === Form.Null ? 0 : 1);
}

function membersOf(headers: Field): HeaderMembers | null {
  switch (headers.form) {
    case Form.Null:
      return null;
    case Form.Json:
      return binaryMembers;
    default:
      return textMembers;
  }
}

function writeName(out: Buffer, at: number, name: Buffer): number {
  for (let i = 0; i < name.length; i++) out[at + i] = name[i];
  return at + name.length;
}
