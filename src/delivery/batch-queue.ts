import { BATCH_HEADER_BYTES } from '../encoding/record-batch.ts';
import { recordBound, recordLength } from '../encoding/record.ts';
import type { OutboxRow } from '../model/row.ts';
import { Batch, SWEPT } from './batch.ts';
import type { RecordView } from './batch-records.ts';
import type { BufferPool } from './buffer-pool.ts';
import type { SpareBatches } from './lane.ts';

/** Batches in their order: full ones, and behind them the one under construction. */
export class BatchQueue {
  readonly #pool: BufferPool;
  readonly #spare: SpareBatches;
  readonly #maxRecords: number;
  /** A row that is larger than all buffers of the pool gets one of its own. */
  readonly #takesOversize: boolean;
  #limitBytes: number;
  readonly #full: Batch[] = [];
  #building: Batch | null = null;

  constructor(pool: BufferPool, spare: SpareBatches, maxRecords: number, takesOversize: boolean) {
    this.#pool = pool;
    this.#spare = spare;
    this.#maxRecords = maxRecords;
    this.#takesOversize = takesOversize;
    this.#limitBytes = pool.largestBytes;
  }

  /** No batch is filled beyond it; a row that is larger is alone in its batch. */
  limit(bytes: number | null): void {
    this.#limitBytes = Math.min(this.#pool.largestBytes, bytes ?? Infinity);
  }

  get isEmpty(): boolean {
    return this.#building === null && this.#full.length === 0;
  }

  /** Bytes of the buffers. */
  get bytes(): number {
    return this.#full.reduce((sum, { buffer }) => sum + buffer!.length, this.#building?.buffer!.length ?? 0);
  }

  /**
   * Adds a row behind all others. False: no room now; nothing was written. Throws a `RelayError` (ROW_ENCODING) for a row
   * that cannot be a record; nothing was written either.
   */
  append(row: OutboxRow, transaction: number, timestampMs: number): boolean {
    const bound = recordBound(row);
    let batch = this.#building;
    if (batch !== null && !this.#takes(batch, row, bound, transaction, timestampMs)) {
      this.#full.push(batch);
      this.#building = batch = null;
    }
    batch ??= this.#begin(row, bound);
    if (batch === null) return false;
    try {
      batch.append(row, transaction, timestampMs);
    } catch (error) {
      if (batch.records === 0) {
        this.#building = null;
        this.drop(batch);
      }
      throw error;
    }
    return true;
  }

  /** The oldest batch, which is the queue's no longer. */
  shift(): Batch | null {
    const batch = this.#full.shift() ?? this.#building;
    if (batch === this.#building) this.#building = null;
    return batch;
  }

  /** Moves all batches of another queue behind these. */
  join(other: BatchQueue): void {
    if (this.#building !== null) this.#full.push(this.#building);
    this.#full.push(...other.#full.splice(0));
    this.#building = other.#building;
    other.#building = null;
  }

  /** Takes out matching records, in order; what is left closes up. Batches without a buffer come back. */
  extract(takes: (record: RecordView) => boolean): Batch[] {
    const taken: Batch[] = [];
    const stays = (batch: Batch): boolean => {
      const part = batch.extract(takes, this.fresh);
      if (part !== null) taken.push(part);
      if (batch.records > 0) return true;
      this.drop(batch);
      return false;
    };
    this.#full.splice(0, Infinity, ...this.#full.filter(stays));
    if (this.#building !== null && !stays(this.#building)) this.#building = null;
    return taken;
  }

  /** Takes everything out. */
  drain(): Batch[] {
    const all = [...this.batches()];
    this.#full.length = 0;
    this.#building = null;
    return all.map((batch) => this.strip(batch));
  }

  *batches(): Iterable<Batch> {
    yield* this.#full;
    if (this.#building !== null) yield this.#building;
  }

  /** A batch object without a buffer. */
  readonly fresh = (): Batch => this.#spare.pop() ?? new Batch();

  /** Gives the buffer of a batch back; what is known of its rows stays. */
  strip(batch: Batch): Batch {
    const buffer = batch.buffer!;
    batch.buffer = null;
    this.#pool.give(buffer);
    return batch;
  }

  /** A batch that has no records left. */
  drop(batch: Batch): void {
    this.#spare.push(this.strip(batch));
  }

  #takes(batch: Batch, row: OutboxRow, bound: number, transaction: number, timestampMs: number): boolean {
    return (
      batch.records < this.#maxRecords &&
      batch.isSwept === (transaction === SWEPT) &&
      this.#makeRoom(batch, row, bound, timestampMs)
    );
  }

  #makeRoom(batch: Batch, row: OutboxRow, bound: number, timestampMs: number): boolean {
    const limitBytes = this.#limitBytes;
    let endBytes = batch.endBytes + bound;
    if (endBytes <= limitBytes && endBytes <= batch.buffer!.length) return true;
    if (endBytes > limitBytes) {
      endBytes = batch.endBytes + recordLength(row, batch.records, timestampMs - batch.baseTimestampMs);
      if (endBytes > limitBytes) return false;
      if (endBytes <= batch.buffer!.length) return true;
    }
    const larger = this.#pool.take(endBytes);
    if (larger === null) return false;
    this.#pool.give(batch.moveTo(larger));
    return true;
  }

  #begin(row: OutboxRow, bound: number): Batch | null {
    let buffer: Buffer | null;
    if (BATCH_HEADER_BYTES + bound <= this.#pool.largestBytes) {
      buffer = this.#pool.take(BATCH_HEADER_BYTES + bound);
    } else {
      const exactBytes = BATCH_HEADER_BYTES + recordLength(row, 0, 0);
      if (exactBytes <= this.#pool.largestBytes) buffer = this.#pool.take(this.#pool.largestBytes);
      else buffer = this.#takesOversize ? this.#pool.takeOversize(exactBytes) : null;
    }
    if (buffer === null) return null;
    this.#building = this.fresh();
    this.#building.begin(buffer);
    return this.#building;
  }
}
