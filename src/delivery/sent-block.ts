import { comparePositions, type Position } from '../model/position.ts';
import { rowIds, type RowId, type RowIds } from '../model/row-ids.ts';
import type { AckWindow } from './ack-window.ts';
import { type Batch, SWEPT } from './batch.ts';

const FIRST_ROWS = 64;

/** 64 bits in two halves. */
export interface Fingerprint {
  readonly low: number;
  readonly high: number;
}

/**
 * Rows of one outbox that one server had and Kafka took, as columns, in the order of their acknowledgements: id,
 * fingerprint, and where the log stood behind their transaction.
 */
export class SentBlock {
  readonly serverUuid: string;
  readonly beganMs: number;
  readonly hasKeys: boolean;
  rows = 0;
  #placed = 0;
  #ids = new BigUint64Array(FIRST_ROWS);
  #keys = Buffer.alloc(0);
  #keysEnd = 0;
  /** Of the key i: where it begins and ends. */
  #places = new Uint32Array(0);
  #fingerprints = new Uint32Array(FIRST_ROWS * 2);
  /** NaN: the row was the sweep's, its transaction is not known. */
  #offsets = new Float64Array(FIRST_ROWS);
  #files = new Uint32Array(FIRST_ROWS);
  readonly #fileNames: string[] = [];

  constructor(serverUuid: string, beganMs: number, hasKeys: boolean) {
    this.serverUuid = serverUuid;
    this.beganMs = beganMs;
    this.hasKeys = hasKeys;
    if (hasKeys) this.#places = new Uint32Array(FIRST_ROWS * 2);
  }

  /** `rows` of the batch from `index` on. */
  add(batch: Batch, index: number, rows: number): void {
    const at = this.rows;
    if (at + rows > this.#offsets.length) this.#grow(Math.max(this.#offsets.length * 2, at + rows));
    if (this.hasKeys) this.#addKeys(batch, index, rows);
    else this.#ids.set(batch.ids().subarray(index, index + rows), at);
    this.#fingerprints.set(batch.fingerprints().subarray(index * 2, (index + rows) * 2), at * 2);
    this.rows += rows;
  }

  /** The next `rows` of those added are of one transaction. */
  place(rows: number, transaction: number, window: AckWindow): void {
    const end = transaction === SWEPT ? null : window.endOf(transaction);
    const offset = end?.offset ?? NaN;
    const file = end === null ? 0 : this.#file(end.file);
    for (const to = this.#placed + rows; this.#placed < to; this.#placed++) {
      this.#offsets[this.#placed] = offset;
      this.#files[this.#placed] = file;
    }
  }

  /**
   * Puts into `found` the rows whose transactions end behind `after` (null: all), and those of the sweep if they are
   * wanted.
   */
  collect(found: Map<RowId, Fingerprint>, after: Position | null, withSwept: boolean): void {
    const ids = this.#allIds();
    for (let i = 0; i < this.rows; i++) {
      const offset = this.#offsets[i];
      const isWanted = Number.isNaN(offset)
        ? withSwept
        : after === null || comparePositions({ file: this.#fileNames[this.#files[i]], offset }, after) > 0;
      if (!isWanted) continue;
      found.set(ids(i), { low: this.#fingerprints[i * 2], high: this.#fingerprints[i * 2 + 1] });
    }
  }

  #allIds(): (index: number) => RowId {
    if (!this.hasKeys) return (index) => this.#ids[index];
    return (index) => this.#keys.toString('hex', this.#places[index * 2], this.#places[index * 2 + 1]);
  }

  #addKeys(batch: Batch, index: number, rows: number): void {
    const needed = this.#keysEnd + batch.keyBytes;
    if (needed > this.#keys.length) {
      const keys = Buffer.allocUnsafe(Math.max(this.#keys.length * 2, needed));
      this.#keys.copy(keys, 0, 0, this.#keysEnd);
      this.#keys = keys;
    }
    this.#keysEnd = batch.copyKeys(index, rows, this.#keys, this.#keysEnd, this.#places, this.rows * 2);
  }

  #file(name: string): number {
    const last = this.#fileNames.length - 1;
    if (this.#fileNames[last] === name) return last;
    return this.#fileNames.push(name) - 1;
  }

  #grow(rows: number): void {
    if (this.hasKeys) this.#places = larger(this.#places, new Uint32Array(rows * 2));
    else this.#ids = larger(this.#ids, new BigUint64Array(rows));
    this.#fingerprints = larger(this.#fingerprints, new Uint32Array(rows * 2));
    this.#offsets = larger(this.#offsets, new Float64Array(rows));
    this.#files = larger(this.#files, new Uint32Array(rows));
  }
}

function larger<T extends { set(from: T): void }>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** Some hundred at a time. */
export function* inChunks(ids: readonly RowId[], size: number): Iterable<RowIds> {
  for (let at = 0; at < ids.length; at += size) yield rowIds(ids.slice(at, at + size));
}
