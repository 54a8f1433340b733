import type { OutboxRow } from '../model/row.ts';
import { fieldBound, fieldLength, writeField, writeLengthInFront } from './field.ts';
import { headersBound, headersLength, writeHeaders } from './record-headers.ts';
import { varintLength, varlongLength, writeVarint, writeVarlong } from './varint.ts';

/**
 * One record of a batch (magic 2): length, attributes (none are defined), timestamp and offset as differences from
 * the batch's, key, value, headers. https://kafka.apache.org/documentation/#record
 */
const MAX_VARINT_BYTES = 5;
const MAX_VARLONG_BYTES = 10;
const ATTRIBUTES_BYTES = 1;
/** Most of a record without key, value and own headers. */
const USUAL_FRAME_BYTES = 64;

/** Cheap upper bound of the bytes that a row's record takes, its length in front included. Never throws. */
export function recordBound(row: OutboxRow): number {
  return (
    2 * MAX_VARINT_BYTES +
    ATTRIBUTES_BYTES +
    MAX_VARLONG_BYTES +
    fieldBound(row.key) +
    fieldBound(row.value) +
    headersBound(row)
  );
}

/** Exactly the bytes that `writeRecord` takes, at about the same cost. Throws like it. */
export function recordLength(row: OutboxRow, offsetDelta: number, timestampDeltaMs: number): number {
  const body = bodyLength(row, offsetDelta, timestampDeltaMs);
  return varintLength(body) + body;
}

/**
 * Writes a row's record at `at`; returns the offset behind it. `out` has room for `recordBound(row)` bytes (what lies
 * behind the record may be overwritten) or for just `recordLength(...)`, which costs a dry run. The timestamp's
 * difference may be negative. Throws a `RelayError` (ROW_ENCODING), its detail free of the row's content.
 */
export function writeRecord(
  out: Buffer,
  at: number,
  row: OutboxRow,
  offsetDelta: number,
  timestampDeltaMs: number,
): number {
  // Lengths stand in front of what they measure: they are guessed, and what follows is moved where that was wrong.
  // Without room for a guess that is too wide they are computed first.
  const exact = out.length - at < recordBound(row);
  const width = varintLength(exact ? bodyLength(row, offsetDelta, timestampDeltaMs) : usualLength(row));
  let end = at + width;
  out[end++] = 0;
  end = writeVarlong(out, end, timestampDeltaMs);
  end = writeVarint(out, end, offsetDelta);
  end = writeField(out, end, row.key, exact);
  end = writeField(out, end, row.value, exact);
  end = writeHeaders(out, end, row, exact);
  return writeLengthInFront(out, at, width, end);
}

function bodyLength(row: OutboxRow, offsetDelta: number, timestampDeltaMs: number): number {
  return (
    ATTRIBUTES_BYTES +
    varlongLength(timestampDeltaMs) +
    varintLength(offsetDelta) +
    fieldLength(row.key) +
    fieldLength(row.value) +
    headersLength(row)
  );
}

function usualLength({ key, value, headers }: OutboxRow): number {
  return USUAL_FRAME_BYTES + (key.end - key.start) + (value.end - value.start) + (headers.end - headers.start);
}
