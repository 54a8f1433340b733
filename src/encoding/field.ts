import { fault } from '../model/fault.ts';
import { type Field, Form } from '../model/row.ts';
import { writeBytes } from './bytes.ts';
import { jsonTextBound, jsonTextLength, writeJson } from './json-text.ts';
import { UUID_TEXT_BYTES, writeUuid } from './uuid.ts';
import { varintLength, writeVarint } from './varint.ts';

/** Kafka's length of what is null: -1. */
const NULL_LENGTH = -1;

/** Cheap upper bound of what `writeField` writes. */
export function fieldBound(field: Field): number {
  return MAX_VARINT_BYTES + contentBound(field);
}

const MAX_VARINT_BYTES = 5;

function contentBound(field: Field): number {
  switch (field.form) {
    case Form.Null:
      return 0;
    case Form.Text:
      return field.end - field.start;
    case Form.Json:
      return jsonTextBound(field.end - field.start);
    case Form.Uuid:
      return UUID_TEXT_BYTES;
  }
}

/** Length of what `writeField` writes. Throws a `RelayError` (ROW_ENCODING) where that would. */
export function fieldLength(field: Field): number {
  if (field.form === Form.Null) return varintLength(NULL_LENGTH);
  const length = contentLength(field);
  return varintLength(length) + length;
}

function contentLength(field: Field): number {
  switch (field.form) {
    case Form.Null:
      return 0;
    case Form.Text:
      return field.end - field.start;
    case Form.Json:
      return jsonTextLength(field.buffer, field.start, field.end);
    case Form.Uuid:
      return uuidLength(field);
  }
}

/**
 * Writes a field with its length as a varint in front; returns the offset behind it. With `exact`, no byte behind the
 * field's own last one is touched; otherwise `fieldBound` bytes may be. Throws a `RelayError` (ROW_ENCODING).
 */
export function writeField(out: Buffer, at: number, field: Field, exact: boolean): number {
  const { form, buffer, start, end } = field;
  switch (form) {
    case Form.Null:
      return writeVarint(out, at, NULL_LENGTH);
    case Form.Text:
      return writeBytes(out, writeVarint(out, at, end - start), buffer, start, end);
    case Form.Json: {
      // The text is mostly about as long as its binary form: where its length is as wide, nothing has to be moved.
      const width = varintLength(exact ? jsonTextLength(buffer, start, end) : end - start);
      return writeLengthInFront(out, at, width, writeJson(buffer, start, end, out, at + width));
    }
    case Form.Uuid:
      return writeUuid(out, writeVarint(out, at, uuidLength(field)), buffer, start, end);
  }
}

function uuidLength({ start, end }: Field): number {
  if (end - start > 16) throw fault('ROW_ENCODING', 'reject', `a UUID of ${end - start} bytes`);
  return UUID_TEXT_BYTES;
}

/**
 * Puts the length of `out[at + width, end)` at `at`, where `width` bytes were left for it; moves the bytes when it
 * takes another width. Returns the offset behind them.
 */
export function writeLengthInFront(out: Buffer, at: number, width: number, end: number): number {
  const length = end - at - width;
  const needed = varintLength(length);
  if (needed !== width) out.copyWithin(at + needed, at + width, end);
  writeVarint(out, at, length);
  return at + needed + length;
}
