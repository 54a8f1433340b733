import { EventType, HEADER_BYTES, TYPE_AT } from './event-header.ts';
import { u16, u32 } from './little-endian.ts';
import type { OutboxTable } from './outbox-table.ts';
import { PackedReader } from './packed-reader.ts';
import type { RowPlan } from './row-plan.ts';
import { TABLE_ID_BYTES } from './table-map.ts';

/** Row images of one outbox table, as they lie in the log: a slice of somebody's buffer. */
export interface RowsEvent {
  readonly change: 'insert' | 'update' | 'delete';
  /** Of the row as it became; of the row as it was for a delete. */
  readonly plan: RowPlan;
  /** Of the row as it was, which precedes each row as it became; updates only. */
  readonly before: RowPlan | null;
  buffer: Buffer;
  start: number;
  end: number;
  /** The event's timestamp. */
  readonly seconds: number;
}

/** By the type of the event; a partial update has differences of JSON columns in the place of values. */
export const CHANGES: Readonly<Record<number, RowsEvent['change'] | 'partial'>> = {
  [EventType.WriteRowsV1]: 'insert',
  [EventType.WriteRows]: 'insert',
  [EventType.UpdateRowsV1]: 'update',
  [EventType.UpdateRows]: 'update',
  [EventType.DeleteRowsV1]: 'delete',
  [EventType.DeleteRows]: 'delete',
  [EventType.PartialUpdateRows]: 'partial',
};

/**
 * Table id, flags; from version 2 on further data, whose length counts itself; the number of columns, a bit for each
 * that the images hold (twice for updates: before and after), the images. Null when there are none.
 */
export function readRowsEvent(
  table: OutboxTable,
  change: RowsEvent['change'],
  b: Buffer,
  start: number,
  bodyEnd: number,
): RowsEvent | null {
  const flagsEnd = start + HEADER_BYTES + TABLE_ID_BYTES + 2;
  const isVersion2 = b[start + TYPE_AT] >= EventType.WriteRows;
  const reader = new PackedReader(b, isVersion2 ? flagsEnd + u16(b, flagsEnd) : flagsEnd, bodyEnd);
  const columns = reader.integer();
  const bitmapBytes = (columns + 7) >> 3;
  const first = table.plan(b, reader.skip(bitmapBytes), columns);
  const second = change === 'update' ? table.plan(b, reader.skip(bitmapBytes), columns) : null;
  if (reader.left === 0) return null;
  return {
    change,
    plan: second ?? first,
    before: second === null ? null : first,
    buffer: b,
    start: reader.at,
    end: bodyEnd,
    seconds: u32(b, start),
  };
}
