import { BATCH_HEADER_BYTES } from '../encoding/record-batch.ts';
import { recordBound, recordLength } from '../encoding/record.ts';
import type { ProducerIdentity } from '../model/publisher.ts';
import type { OutboxRow } from '../model/row.ts';
import { Batch } from './batch.ts';
import type { BufferPool } from './buffer-pool.ts';

/** Sequence numbers are 31 bits and wrap to zero (Kafka protocol, record batch). */
const SEQUENCES = 2 ** 31;

/** Batch objects (not their buffers) that are done with and may begin anew. */
export type SpareBatches = Batch[];

/**
 * The FIFO of one topic-partition: one batch under construction, full ones behind the one on its way.
 *
 * At most one batch is out at a time (`sending`): with that, and the identical bytes sent again when nobody knows what
 * became of them, what a broker appends is in order and there once. A batch goes out at once when the lane is idle;
 * under load it fills while the one before is on its way.
 */
export class Lane {
  readonly topic: string;
  readonly partition: number;
  /** The identity that numbers this lane's batches; null until its first send. */
  producer: ProducerIdentity | null = null;
  #nextSequence = 0;
  readonly #pool: BufferPool;
  readonly #spare: SpareBatches;
  readonly #maxRecords: number;
  #building: Batch | null = null;
  readonly #full: Batch[] = [];
  #sending: Batch | null = null;

  constructor(topic: string, partition: number, pool: BufferPool, spare: SpareBatches, maxRecords: number) {
    this.topic = topic;
    this.partition = partition;
    this.#pool = pool;
    this.#spare = spare;
    this.#maxRecords = maxRecords;
  }

  get isEmpty(): boolean {
    return this.#building === null && this.#full.length === 0 && this.#sending === null;
  }

  get nextSequence(): number {
    return this.#nextSequence;
  }

  /** Adds a row behind all others of the lane. False: no room now; nothing was written. */
  append(row: OutboxRow, transaction: number, timestampMs: number): boolean {
    const bound = recordBound(row);
    let batch = this.#building;
    if (batch !== null && (batch.records >= this.#maxRecords || !this.#makeRoom(batch, row, bound, timestampMs))) {
      this.#full.push(batch);
      this.#building = batch = null;
    }
    batch ??= this.#begin(row, bound);
    if (batch === null) return false;
    batch.append(row, transaction, timestampMs);
    return true;
  }

  /** The next batch to go, oldest first; null when one is on its way or there is none. */
  next(): Batch | null {
    if (this.#sending !== null) return null;
    const batch = this.#full.shift() ?? this.#building;
    if (batch !== null && batch === this.#building) this.#building = null;
    this.#sending = batch;
    return batch;
  }

  /** The batch on its way is in the topic. Its buffer goes back to the pool; its ids stay for the flush. */
  acked(): Batch {
    const batch = this.#sending!;
    this.#nextSequence = (this.#nextSequence + batch.records) % SEQUENCES;
    this.#sending = null;
    this.#pool.give(batch.buffer!);
    batch.buffer = null;
    return batch;
  }

  /** Numbers start again under the new identity: a broker must not take the next batch for one that it has. */
  renew(producer: ProducerIdentity): void {
    this.producer = producer;
    this.#nextSequence = 0;
  }

  #makeRoom(batch: Batch, row: OutboxRow, bound: number, timestampMs: number): boolean {
    if (batch.roomBytes >= bound) return true;
    if (batch.endBytes + bound > this.#pool.largestBytes) {
      return batch.roomBytes >= recordLength(row, batch.records, timestampMs - batch.baseTimestampMs);
    }
    const larger = this.#pool.take(batch.endBytes + bound);
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
      buffer =
        exactBytes <= this.#pool.largestBytes
          ? this.#pool.take(this.#pool.largestBytes)
          : this.#pool.takeOversize(exactBytes);
    }
    if (buffer === null) return null;
    this.#building = this.#spare.pop() ?? new Batch();
    this.#building.begin(buffer);
    return this.#building;
  }
}
