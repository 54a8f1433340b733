import type { ProducerIdentity } from '../model/publisher.ts';
import type { OutboxRow } from '../model/row.ts';
import type { Batch } from './batch.ts';
import type { RecordView } from './batch-records.ts';
import { BatchQueue } from './batch-queue.ts';
import type { BufferPool } from './buffer-pool.ts';

/** Sequence numbers are 31 bits and wrap to zero (Kafka protocol, record batch). */
const SEQUENCES = 2 ** 31;

/** Batch objects (not their buffers) that are done with and may begin anew. */
export type SpareBatches = Batch[];

/**
 * The FIFO of one topic-partition: batches behind the one on its way, and apart from them what is held for a hand-over.
 *
 * At most one batch is out at a time (`sending`): with that, and the identical bytes sent again when nobody knows what
 * became of them, what a broker appends is in order and there once. A batch goes out at once when the lane is idle;
 * under load it fills while the one before is on its way.
 *
 * Batches that leave the lane come back without a buffer: the pool has it again, their rows are to be settled.
 */
export class Lane {
  readonly topic: string;
  readonly partition: number;
  /** The identity that numbers this lane's batches; null until its first send. */
  producer: ProducerIdentity | null = null;
  #nextSequence = 0;
  #maxBatchBytes: number | null = null;
  readonly #queue: BatchQueue;
  readonly #held: BatchQueue;
  #sending: Batch | null = null;

  constructor(topic: string, partition: number, pool: BufferPool, spare: SpareBatches, maxRecords: number) {
    this.topic = topic;
    this.partition = partition;
    this.#queue = new BatchQueue(pool, spare, maxRecords, true);
    this.#held = new BatchQueue(pool, spare, maxRecords, false);
  }

  /** Batches are not filled beyond it; a row that is larger is alone in its batch. Null: the pool's largest buffer. */
  get maxBatchBytes(): number | null {
    return this.#maxBatchBytes;
  }

  set maxBatchBytes(bytes: number | null) {
    this.#maxBatchBytes = bytes;
    this.#queue.limit(bytes);
    this.#held.limit(bytes);
  }

  /** Nothing is on its way, to be sent or held. */
  get isEmpty(): boolean {
    return this.#queue.isEmpty && this.#sending === null && this.#held.isEmpty;
  }

  /** Of the buffers of what is on its way and to be sent. */
  get bytes(): number {
    return this.#queue.bytes + (this.#sending?.buffer!.length ?? 0);
  }

  /** Of the buffers of what is held. */
  get heldBytes(): number {
    return this.#held.bytes;
  }

  get nextSequence(): number {
    return this.#nextSequence;
  }

  /** The batch on its way. */
  get sending(): Batch | null {
    return this.#sending;
  }

  /** Everything, held or not. */
  *batches(): Iterable<Batch> {
    if (this.#sending !== null) yield this.#sending;
    yield* this.#queue.batches();
    yield* this.#held.batches();
  }

  /**
   * Adds a row behind all others of the lane. False: no room now; nothing was written. Throws a `RelayError`
   * (ROW_ENCODING) for a row that cannot be a record; nothing was written either.
   */
  append(row: OutboxRow, transaction: number, timestampMs: number): boolean {
    return this.#queue.append(row, transaction, timestampMs);
  }

  /** The next batch to go, oldest first; null when one is on its way or there is none. */
  next(): Batch | null {
    if (this.#sending !== null) return null;
    return (this.#sending = this.#queue.shift());
  }

  /** The batch on its way is in the topic. Its buffer goes back to the pool; its ids stay for the flush. */
  acked(): Batch {
    const batch = this.#sending!;
    this.#count(batch.records);
    this.#sending = null;
    return this.#queue.strip(batch);
  }

  /** The first `records` records of the batch on its way are in the topic; the others are on their way still. */
  ackedFront(records: number): Batch {
    if (records === this.#sending!.records) return this.acked();
    const front = this.#sending!.cutFront(records, this.#queue.fresh);
    this.#count(records);
    return front;
  }

  /** Takes matching records out of the batch on its way, of which no send may be under way. Null: none. */
  dropSending(takes: (record: RecordView) => boolean): Batch | null {
    const batch = this.#sending!;
    const dropped = batch.extract(takes, this.#queue.fresh);
    if (batch.records === 0) {
      this.#sending = null;
      this.#queue.drop(batch);
    }
    return dropped;
  }

  /** Takes matching records out of what is to be sent; not out of the batch on its way. */
  takeOut(takes: (record: RecordView) => boolean): Batch[] {
    return this.#queue.extract(takes);
  }

  /** Takes everything out: what is held, too, and the batch on its way, of which no send may be under way. */
  takeAll(): Batch[] {
    const sending = this.#sending === null ? [] : [this.#queue.strip(this.#sending)];
    this.#sending = null;
    return [...sending, ...this.#queue.drain(), ...this.#held.drain()];
  }

  /**
   * Like `append`, but the row is not sent before `releaseHeld`. Never of a row larger than all buffers of the pool: what
   * is waited for may need the one that there is for such rows.
   */
  hold(row: OutboxRow, transaction: number, timestampMs: number): boolean {
    return this.#held.append(row, transaction, timestampMs);
  }

  /** What is held follows behind everything else. */
  releaseHeld(): void {
    this.#queue.join(this.#held);
  }

  takeHeld(): Batch[] {
    return this.#held.drain();
  }

  /** Takes matching records out of what is held. */
  extractHeld(takes: (record: RecordView) => boolean): Batch[] {
    return this.#held.extract(takes);
  }

  /** Numbers start again under the new identity: a broker must not take the next batch for one that it has. */
  renew(producer: ProducerIdentity): void {
    this.producer = producer;
    this.#nextSequence = 0;
  }

  #count(records: number): void {
    this.#nextSequence = (this.#nextSequence + records) % SEQUENCES;
  }
}
