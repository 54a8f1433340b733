import { writeBytes } from '../encoding/bytes.ts';
import { BATCH_HEADER_BYTES } from '../encoding/record-batch.ts';
import { writeRecord } from '../encoding/record.ts';
import { type Field, Form, type OutboxRow } from '../model/row.ts';

const FIRST_ROWS = 64;

/** Rows of one transaction and outbox that lie together in a batch. */
export interface TransactionRun {
  readonly transaction: number;
  readonly outbox: number;
  readonly rows: number;
  /** Their ids are bytes (`keys`), no integers (`ids`). */
  readonly hasKeys: boolean;
}

const RUN_FIELDS = 4;
const FIRST_KEY_BYTES = 16 * FIRST_ROWS;

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
  /** Ids that are no integers, one behind the other; instead of the halves stand where one begins, and its length. */
  #keys: Buffer | null = null;
  #keysEnd = 0;
  /** Runs: transaction, outbox, rows, 1 for keys. */
  #runs = new Float64Array(FIRST_ROWS * RUN_FIELDS);
  #runCount = 0;

  begin(buffer: Buffer): void {
    this.buffer = buffer;
    this.endBytes = BATCH_HEADER_BYTES;
    this.records = 0;
    this.#keysEnd = 0;
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

  /** Of all rows; meaningless for rows with keys. */
  ids(): BigUint64Array {
    return this.#ids.subarray(0, this.records);
  }

  /** The id of the row `index`, of a run with keys. */
  key(index: number): Buffer {
    const start = this.#halves[index * 2];
    return this.#keys!.subarray(start, start + this.#halves[index * 2 + 1]);
  }

  /** Copies the keys of `rows` rows from `index` on to `out`, and where each begins and ends to `places`. */
  copyKeys(index: number, rows: number, out: Buffer, outAt: number, places: Uint32Array, placesAt: number): number {
    for (let i = index; i < index + rows; i++) {
      const start = this.#halves[i * 2];
      places[placesAt++] = outAt;
      outAt += this.#keys!.copy(out, outAt, start, start + this.#halves[i * 2 + 1]);
      places[placesAt++] = outAt;
    }
    return outAt;
  }

  /** Bytes of all keys. */
  get keyBytes(): number {
    return this.#keysEnd;
  }

  get runCount(): number {
    return this.#runCount;
  }

  run(index: number): TransactionRun {
    const runs = this.#runs;
    const at = index * RUN_FIELDS;
    return { transaction: runs[at], outbox: runs[at + 1], rows: runs[at + 2], hasKeys: runs[at + 3] === 1 };
  }

  #note(row: OutboxRow, transaction: number): void {
    if (this.records === this.#ids.length) this.#growIds();
    const hasKey = row.idBytes.form !== Form.Null;
    if (hasKey) {
      this.#noteKey(row.idBytes);
    } else {
      this.#halves[this.records * 2] = row.idLow;
      this.#halves[this.records * 2 + 1] = row.idHigh;
    }
    const runs = this.#runs;
    const last = (this.#runCount - 1) * RUN_FIELDS;
    const kind = hasKey ? 1 : 0;
    if (last >= 0 && runs[last] === transaction && runs[last + 1] === row.outbox && runs[last + 3] === kind) {
      runs[last + 2]++;
      return;
    }
    const at = this.#runCount * RUN_FIELDS;
    if (at === runs.length) this.#growRuns();
    this.#runs[at] = transaction;
    this.#runs[at + 1] = row.outbox;
    this.#runs[at + 2] = 1;
    this.#runs[at + 3] = kind;
    this.#runCount++;
  }

  #noteKey({ buffer, start, end }: Field): void {
    const length = end - start;
    let keys = (this.#keys ??= Buffer.allocUnsafe(FIRST_KEY_BYTES));
    if (this.#keysEnd + length > keys.length) {
      keys = Buffer.allocUnsafe(Math.max(keys.length * 2, this.#keysEnd + length));
      this.#keys.copy(keys, 0, 0, this.#keysEnd);
      this.#keys = keys;
    }
    this.#halves[this.records * 2] = this.#keysEnd;
    this.#halves[this.records * 2 + 1] = length;
    this.#keysEnd = writeBytes(keys, this.#keysEnd, buffer, start, end);
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
