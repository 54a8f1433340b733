import { BATCH_HEADER_BYTES } from '../encoding/record-batch.ts';
import { RecordCursor } from '../encoding/record-walk.ts';
import { writeRecord } from '../encoding/record.ts';
import type { OutboxRow } from '../model/row.ts';
import { BatchRecords, type RecordView } from './batch-records.ts';
import { BatchRows } from './batch-rows.ts';

/** Instead of a transaction's number: rows that the sweep sends. A batch has only those, or none of them. */
export const SWEPT = -1;

/**
 * A record batch under construction, and what must be known of its rows when it has been acknowledged. Reused: `begin`
 * makes it new.
 */
export class Batch extends BatchRows {
  /** Null when not in use: the buffer goes back to the pool as soon as the batch is acknowledged. */
  buffer: Buffer | null = null;
  /** Bytes written, header room included. */
  endBytes = 0;
  baseTimestampMs = 0;
  maxTimestampMs = 0;
  /** Its rows are the sweep's. */
  isSwept = false;

  begin(buffer: Buffer): void {
    this.clear();
    this.buffer = buffer;
    this.endBytes = BATCH_HEADER_BYTES;
  }

  /** Moves what is written into a larger buffer; returns the one it was in. */
  moveTo(larger: Buffer): Buffer {
    const smaller = this.buffer!;
    smaller.copy(larger, 0, 0, this.endBytes);
    this.buffer = larger;
    return smaller;
  }

  get roomBytes(): number {
    return this.buffer!.length - this.endBytes;
  }

  /**
   * Writes one row; the caller has made sure of the room (`recordBound`). Throws a `RelayError` (ROW_ENCODING); the
   * batch is then as it was.
   */
  append(row: OutboxRow, transaction: number, timestampMs: number): void {
    if (this.records === 0) {
      this.baseTimestampMs = this.maxTimestampMs = timestampMs;
      this.isSwept = transaction === SWEPT;
    }
    this.endBytes = writeRecord(this.buffer!, this.endBytes, row, this.records, timestampMs - this.baseTimestampMs);
    if (timestampMs > this.maxTimestampMs) this.maxTimestampMs = timestampMs;
    this.note(row, transaction);
  }

  /** Where the first `records` records end in the buffer. */
  front(records: number): number {
    return this.#walk(records).end;
  }

  /** The latest timestamp of the first `records` records. */
  maxTimestampMsOf(records: number): number {
    return this.#walk(records).maxTimestampMs;
  }

  /**
   * Takes out the records for which `takes` says so; the others close up in the buffer, which must not be on its way.
   * What comes back has no buffer and knows its rows, in order; null: none. This batch may then have no record left.
   */
  extract(takes: (record: RecordView) => boolean, fresh: () => Batch = () => new Batch()): Batch | null {
    const taken = new Uint8Array(this.records);
    const records = new BatchRecords(this, this.buffer!, this.endBytes);
    let any = false;
    while (records.next()) {
      if (!takes(records)) continue;
      taken[records.index] = 1;
      any = true;
    }
    return any ? this.#takeOut(taken, fresh()) : null;
  }

  /** Takes out the first `records` records; otherwise like `extract`. */
  cutFront(records: number, fresh: () => Batch = () => new Batch()): Batch {
    this.#check(records);
    return this.#takeOut(new Uint8Array(this.records).fill(1, 0, records), fresh());
  }

  #takeOut(taken: Uint8Array, out: Batch): Batch {
    const cursor = new RecordCursor().over(this.buffer!, this.endBytes);
    let end = BATCH_HEADER_BYTES;
    let kept = 0;
    let maxTimestampMs = -Infinity;
    for (let i = 0; cursor.next(); i++) {
      if (taken[i] === 1) continue;
      end = cursor.moveTo(end, kept++);
      maxTimestampMs = Math.max(maxTimestampMs, this.baseTimestampMs + cursor.timestampDeltaMs);
    }
    // The base timestamp stays, although its record may be gone: the others' differences are to it.
    if (kept > 0) this.maxTimestampMs = maxTimestampMs;
    this.endBytes = end;
    out.clear();
    out.buffer = null;
    out.isSwept = this.isSwept;
    this.moveRows(taken, out);
    return out;
  }

  #walk(records: number): { end: number; maxTimestampMs: number } {
    this.#check(records);
    if (records === this.records) return { end: this.endBytes, maxTimestampMs: this.maxTimestampMs };
    const cursor = new RecordCursor().over(this.buffer!, this.endBytes);
    let maxTimestampMs = -Infinity;
    for (let i = 0; i < records; i++) {
      cursor.next();
      maxTimestampMs = Math.max(maxTimestampMs, this.baseTimestampMs + cursor.timestampDeltaMs);
    }
    return { end: cursor.end, maxTimestampMs };
  }

  #check(records: number): void {
    if (records < 1 || records > this.records) {
      throw new RangeError(`${records} of the ${this.records} records of a batch`);
    }
  }
}
