import { writeBytes } from '../encoding/bytes.ts';
import { Form, type OutboxRow } from '../model/row.ts';
import type { RowId } from '../model/row-ids.ts';
import { writeFingerprint } from './fingerprint.ts';

const FIRST_ROWS = 64;

/** Rows of one transaction and outbox that lie together in a batch. */
export interface TransactionRun {
  readonly transaction: number;
  readonly outbox: number;
  readonly rows: number;
  /** Their ids are bytes (`keys`), no integers (`ids`). */
  readonly hasKeys: boolean;
}

/** One row of a batch, as an object: never on the hot path. */
export interface BatchRow {
  readonly outbox: number;
  readonly id: RowId;
  readonly transaction: number;
}

const RUN_FIELDS = 4;
const FIRST_KEY_BYTES = 16 * FIRST_ROWS;

/** What must be known of rows when they have been acknowledged: their ids and their transactions, as columns. */
export class BatchRows {
  records = 0;
  /** Ids as unsigned 64-bit integers; two 32-bit halves are written, low first (little-endian hosts only). */
  #ids = new BigUint64Array(FIRST_ROWS);
  #halves = new Uint32Array(this.#ids.buffer);
  /** Of the idempotency keys: two halves a row. */
  #fingerprints = new Uint32Array(this.#halves.length);
  /** Ids that are no integers, one behind the other; instead of the halves stand where one begins, and its length. */
  #keys: Buffer | null = null;
  #keysEnd = 0;
  /** Runs: transaction, outbox, rows, 1 for keys. */
  #runs = new Float64Array(FIRST_ROWS * RUN_FIELDS);
  #runCount = 0;

  /** Of all rows; meaningless for rows with keys. */
  ids(): BigUint64Array {
    return this.#ids.subarray(0, this.records);
  }

  /** Of all rows, two halves each (`writeFingerprint`). */
  fingerprints(): Uint32Array {
    return this.#fingerprints.subarray(0, this.records * 2);
  }

  /** The lower 32 bits of the id of the row `index`; meaningless for a row with a key. */
  lowId(index: number): number {
    return this.#halves[index * 2];
  }

  /** The id of the row `index`, of a run with keys. */
  key(index: number): Buffer {
    const start = this.#halves[index * 2];
    return this.#keys!.subarray(start, start + this.#halves[index * 2 + 1]);
  }

  id(index: number, hasKey: boolean): RowId {
    return hasKey ? this.key(index).toString('hex') : this.#ids[index];
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

  /** Adds the rows of each outbox to its place. Without an object a run: every batch is counted. */
  countInto(byOutbox: (number | undefined)[]): void {
    for (let at = 0; at < this.#runCount * RUN_FIELDS; at += RUN_FIELDS) {
      const outbox = this.#runs[at + 1];
      byOutbox[outbox] = (byOutbox[outbox] ?? 0) + this.#runs[at + 2];
    }
  }

  /** The rows of some runs, all by default. `firstRow`: the place of the first one's first row. Slow: an object a row. */
  *rows(firstRun = 0, endRun = this.#runCount, firstRow = 0): Iterable<BatchRow> {
    let at = firstRow;
    for (let i = firstRun; i < endRun; i++) {
      const { transaction, outbox, rows, hasKeys } = this.run(i);
      for (const end = at + rows; at < end; at++) yield { outbox, id: this.id(at, hasKeys), transaction };
    }
  }

  protected clear(): void {
    this.records = 0;
    this.#keysEnd = 0;
    this.#runCount = 0;
  }

  protected note(row: OutboxRow, transaction: number): void {
    const { idBytes } = row;
    if (idBytes.form === Form.Null) this.#addId(transaction, row.outbox, row.idLow, row.idHigh);
    else this.#addKey(transaction, row.outbox, idBytes.buffer, idBytes.start, idBytes.end);
    writeFingerprint(this.#fingerprints, (this.records - 1) * 2, row.idempotencyKey);
  }

  /** Moves the rows whose byte in `taken` is 1 behind those of `into`; the others close up. All keep their order. */
  protected moveRows(taken: Uint8Array, into: BatchRows): void {
    const runs = this.#runCount;
    this.clear();
    let row = 0;
    for (let i = 0; i < runs; i++) {
      // Read before anything is added: what closes up never overtakes what is read, but may reach it.
      const { transaction, outbox, rows, hasKeys } = this.run(i);
      for (const end = row + rows; row < end; row++) {
        const to = taken[row] === 1 ? into : this;
        const low = this.#halves[row * 2];
        const high = this.#halves[row * 2 + 1];
        const print = this.#fingerprints[row * 2];
        const printHigh = this.#fingerprints[row * 2 + 1];
        if (hasKeys) to.#addKey(transaction, outbox, this.#keys!, low, low + high);
        else to.#addId(transaction, outbox, low, high);
        to.#fingerprints[to.records * 2 - 2] = print;
        to.#fingerprints[to.records * 2 - 1] = printHigh;
      }
    }
  }

  #addId(transaction: number, outbox: number, low: number, high: number): void {
    if (this.records === this.#ids.length) this.#growIds();
    this.#halves[this.records * 2] = low;
    this.#halves[this.records * 2 + 1] = high;
    this.#count(transaction, outbox, 0);
  }

  #addKey(transaction: number, outbox: number, buffer: Buffer, start: number, end: number): void {
    if (this.records === this.#ids.length) this.#growIds();
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
    this.#count(transaction, outbox, 1);
  }

  #count(transaction: number, outbox: number, kind: number): void {
    this.records++;
    const runs = this.#runs;
    const last = (this.#runCount - 1) * RUN_FIELDS;
    if (last >= 0 && runs[last] === transaction && runs[last + 1] === outbox && runs[last + 3] === kind) {
      runs[last + 2]++;
      return;
    }
    const at = this.#runCount * RUN_FIELDS;
    if (at === runs.length) this.#growRuns();
    this.#runs[at] = transaction;
    this.#runs[at + 1] = outbox;
    this.#runs[at + 2] = 1;
    this.#runs[at + 3] = kind;
    this.#runCount++;
  }

  #growIds(): void {
    const ids = new BigUint64Array(this.#ids.length * 2);
    ids.set(this.#ids);
    this.#ids = ids;
    this.#halves = new Uint32Array(ids.buffer);
    const fingerprints = new Uint32Array(this.#halves.length);
    fingerprints.set(this.#fingerprints);
    this.#fingerprints = fingerprints;
  }

  #growRuns(): void {
    const runs = new Float64Array(this.#runs.length * 2);
    runs.set(this.#runs);
    this.#runs = runs;
  }
}
