import { RecordCursor } from '../encoding/record-walk.ts';
import type { RowId } from '../model/row-ids.ts';
import type { BatchRows } from './batch-rows.ts';

/** A record of a batch, as one decides by whether it is taken out. A flyweight: valid until the next one. */
export interface RecordView {
  /** Its place in the batch. */
  readonly index: number;
  readonly transaction: number;
  readonly outbox: number;
  /** Made when it is asked for. */
  readonly id: RowId;
  /** Its key is null: `buffer[start, end)` is its header `id` then. */
  readonly isKeyless: boolean;
  readonly buffer: Buffer;
  /** Of its key. */
  readonly start: number;
  readonly end: number;
}

/** Walks records and what is known of their rows together. */
export class BatchRecords implements RecordView {
  index = -1;
  transaction = 0;
  outbox = 0;
  readonly #rows: BatchRows;
  readonly #cursor: RecordCursor;
  #run = -1;
  #runEnd = 0;
  #idIsBytes = false;

  /** `endBytes`: behind the last record. */
  constructor(rows: BatchRows, buffer: Buffer, endBytes: number) {
    this.#rows = rows;
    this.#cursor = new RecordCursor().over(buffer, endBytes);
  }

  get id(): RowId {
    return this.#rows.id(this.index, this.#idIsBytes);
  }

  get isKeyless(): boolean {
    return this.#cursor.keyStart < 0;
  }

  get buffer(): Buffer {
    return this.#cursor.buffer;
  }

  get start(): number {
    return this.isKeyless ? this.#cursor.headerStart : this.#cursor.keyStart;
  }

  get end(): number {
    return this.isKeyless ? this.#cursor.headerEnd : this.#cursor.keyEnd;
  }

  next(): boolean {
    if (!this.#cursor.next()) return false;
    if (++this.index === this.#runEnd) {
      const run = this.#rows.run(++this.#run);
      this.transaction = run.transaction;
      this.outbox = run.outbox;
      this.#idIsBytes = run.hasKeys;
      this.#runEnd += run.rows;
    }
    return true;
  }
}
