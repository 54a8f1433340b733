import type { RowId } from '../model/row-ids.ts';

/** Hashes are 32 bits. */
const HASHES = 2 ** 32;
const FIRST_ROWS = 1_024;
/** A chunk may be so many times as large as was asked for; an aggregate that has more rows is cut. */
const MOST_TIMES = 10;
/** What an id takes in memory that is no integer, in those that are. */
const TEXT_WEIGHT = 8;

/** Rows next to each other in the list: whole aggregates, but where it is cut. */
export interface ReplayChunk {
  readonly ids: readonly RowId[];
  /** Where the next chunk begins. */
  readonly end: number;
  /** Hashes up to it are done with when the chunk is. */
  readonly doneHash: number;
  /** Not null: more rows of this hash follow. */
  readonly cut: { readonly hash: number; readonly id: RowId } | null;
}

/**
 * Rows to be sent again, as pairs of a hash (of topic and aggregate) and an id: a dozen bytes a row. Rows of one hash lie
 * together, in the order in which they were added. When there are too many, the list narrows to a smaller range of
 * hashes by itself: the others are another list's.
 */
export class ReplayList {
  readonly fromHash: number;
  readonly #maxRows: number;
  #endHash = HASHES;
  #length = 0;
  #hashes = new Uint32Array(FIRST_ROWS);
  #ints = new BigUint64Array(FIRST_ROWS);
  /** Ids that are no integers. */
  #texts: string[] | null = null;
  /** By hash, then as they were added; null: not sorted yet. */
  #order: Uint32Array | null = null;

  constructor(fromHash: number, maxRows: number) {
    this.fromHash = fromHash;
    this.#maxRows = maxRows;
  }

  get length(): number {
    return this.#length;
  }

  /** The first hash that is not this list's. */
  get endHash(): number {
    return this.#endHash;
  }

  /** True when there is nothing behind its hashes. */
  get isLast(): boolean {
    return this.#endHash === HASHES;
  }

  add(hash: number, id: RowId): void {
    if (hash < this.fromHash || hash >= this.#endHash) return;
    if (this.#length === this.#hashes.length) this.#grow();
    this.#hashes[this.#length] = hash;
    if (typeof id === 'bigint') this.#ints[this.#length] = id;
    else (this.#texts ??= [])[this.#length] = id;
    this.#length++;
    const most = this.#texts === null ? this.#maxRows : this.#maxRows / TEXT_WEIGHT;
    while (this.#length > most && this.#endHash - this.fromHash > 1) this.#narrow();
  }

  /** To be called when all rows are added. */
  sort(): void {
    const pairs = new Uint32Array(this.#length * 2);
    for (let i = 0; i < this.#length; i++) {
      pairs[i * 2] = i;
      pairs[i * 2 + 1] = this.#hashes[i];
    }
    // As 64-bit numbers (little-endian hosts only), sorted without a call for each comparison.
    new BigUint64Array(pairs.buffer).sort();
    this.#order = Uint32Array.from({ length: this.#length }, (_, i) => pairs[i * 2]);
  }

  /** The chunk that begins at `at`, of about `rows` rows; null at the end. */
  chunk(at: number, rows: number): ReplayChunk | null {
    if (at >= this.#length) return null;
    const most = rows * MOST_TIMES;
    let end = at;
    while (end < this.#length && end - at < rows) {
      const groupEnd = this.#groupEnd(end);
      if (groupEnd - at > most) {
        if (end > at) break;
        const cutAt = at + most;
        const hash = this.#hashAt(at);
        return { ...this.#slice(at, cutAt), doneHash: hash - 1, cut: { hash, id: this.#idAt(cutAt - 1) } };
      }
      end = groupEnd;
    }
    return { ...this.#slice(at, end), doneHash: this.#hashAt(end - 1), cut: null };
  }

  #slice(at: number, end: number): { ids: RowId[]; end: number } {
    return { ids: Array.from({ length: end - at }, (_, i) => this.#idAt(at + i)), end };
  }

  #groupEnd(at: number): number {
    const hash = this.#hashAt(at);
    let end = at + 1;
    while (end < this.#length && this.#hashAt(end) === hash) end++;
    return end;
  }

  #hashAt(place: number): number {
    return this.#hashes[this.#order![place]];
  }

  #idAt(place: number): RowId {
    const index = this.#order![place];
    return this.#texts === null ? this.#ints[index] : this.#texts[index];
  }

  #narrow(): void {
    this.#endHash = this.fromHash + Math.ceil((this.#endHash - this.fromHash) / 2);
    let kept = 0;
    for (let i = 0; i < this.#length; i++) {
      if (this.#hashes[i] >= this.#endHash) continue;
      this.#hashes[kept] = this.#hashes[i];
      this.#ints[kept] = this.#ints[i];
      if (this.#texts !== null) this.#texts[kept] = this.#texts[i];
      kept++;
    }
    this.#length = kept;
    if (this.#texts !== null) this.#texts.length = kept;
  }

  #grow(): void {
    const hashes = new Uint32Array(this.#hashes.length * 2);
    hashes.set(this.#hashes);
    this.#hashes = hashes;
    const ints = new BigUint64Array(hashes.length);
    ints.set(this.#ints);
    this.#ints = ints;
  }
}
