import { BATCH_HEADER_BYTES } from '../encoding/record-batch.ts';
import { writeRecord } from '../encoding/record.ts';
import type { OutboxRow } from '../model/row.ts';

const FIRST_ROWS = 64;

/** Rows of one transaction and outbox that lie together in a batch. */
export interface TransactionRun {
  readonly transaction: number;
  readonly outbox: number;
  readonly rows: number;
}

/**
 * A record batch under construction, and what must be known of its rows when it has been acknowledged: their ids and
 * the transactions they belong to, as columns. Reused: `begin` makes it new.
 */
export class Batch {
  /** Null when not in use: the buffer goes back to the pool as soon as the batch is acknowledged. */
  buffer: Buffer | null = null;
  /** Bytes written, header room included. */
  endBytes = 0;
  records = 0;
  baseTimestampMs = 0;
  maxTimestampMs = 0;
  /** Ids as unsigned 64-bit integers; two 32-bit halves are written, low first (little-endian hosts only). */
  #ids = new BigUint64Array(FIRST_ROWS);
  #halves = new Uint32Array(this.#ids.buffer);
  /** Runs as triples: transaction, outbox, rows. */
  #runs = new Float64Array(FIRST_ROWS * 3);
  #runCount = 0;

  begin(buffer: Buffer): void {
    this.buffer = buffer;
    this.endBytes = BATCH_HEADER_BYTES;
    this.records = 0;
    this.#runCount = 0;
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

  /** Writes one row; the caller has made sure of the room (`recordBound`). */
  append(row: OutboxRow, transaction: number, timestampMs: number): void {
    if (this.records === 0) this.baseTimestampMs = this.maxTimestampMs = timestampMs;
    else if (timestampMs > this.maxTimestampMs) this.maxTimestampMs = timestampMs;
    this.endBytes = writeRecord(this.buffer!, this.endBytes, row, this.records, timestampMs - this.baseTimestampMs);
    this.#note(row, transaction);
    this.records++;
  }

  ids(): BigUint64Array {
    return this.#ids.subarray(0, this.records);
  }

  get runCount(): number {
    return this.#runCount;
  }

  run(index: number): TransactionRun {
    const at = index * 3;
    return { transaction: this.#runs[at], outbox: this.#runs[at + 1], rows: this.#runs[at + 2] };
  }

  #note(row: OutboxRow, transaction: number): void {
    if (this.records === this.#ids.length) this.#growIds();
    this.#halves[this.records * 2] = row.idLow;
    this.#halves[this.records * 2 + 1] = row.idHigh;
    const last = (this.#runCount - 1) * 3;
    if (last >= 0 && this.#runs[last] === transaction && this.#runs[last + 1] === row.outbox) {
      this.#runs[last + 2]++;
      return;
    }
    const at = this.#runCount * 3;
    if (at === this.#runs.length) this.#growRuns();
    this.#runs[at] = transaction;
    this.#runs[at + 1] = row.outbox;
    this.#runs[at + 2] = 1;
    this.#runCount++;
  }

  #growIds(): void {
    const ids = new BigUint64Array(this.#ids.length * 2);
    ids.set(this.#ids);
    this.#ids = ids;
    this.#halves = new Uint32Array(ids.buffer);
  }

  #growRuns(): void {
    const runs = new Float64Array(this.#runs.length * 2);
    runs.set(this.#runs);
    this.#runs = runs;
  }
}
