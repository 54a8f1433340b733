import { formatGtid, type Position } from '../model/position.ts';
import type { Transaction } from '../model/source.ts';
import type { GtidSet } from './gtid-set.ts';

const FIRST_CAPACITY = 1024;

/**
 * Open transactions by number, as columns: with single-row transactions there are 100,000 of them a second, so none
 * of them is an object here. Grows by doubling; numbers never repeat.
 */
export class TransactionRing {
  first = 0;
  next = 0;
  #capacity = FIRST_CAPACITY;
  #unsettled = new Int32Array(FIRST_CAPACITY);
  /** -1: not in the file of its end. */
  #beginOffset = new Float64Array(FIRST_CAPACITY);
  #endOffset = new Float64Array(FIRST_CAPACITY);
  #file = new Int32Array(FIRST_CAPACITY);
  #commitMicros = new Float64Array(FIRST_CAPACITY);
  /** Index into `#names`, -1 for a transaction without GTID. */
  #sid = new Int32Array(FIRST_CAPACITY);
  #gno = new Float64Array(FIRST_CAPACITY);
  /** File names and GTID source ids seen, few and long-lived. */
  readonly #names: string[] = [];
  readonly #nameAt = new Map<string, number>();
  #settled = 0;

  /** Adds a transaction with one unsettled count (its routing) and returns its number. */
  push(transaction: Transaction): number {
    if (this.next - this.first === this.#capacity) this.#grow();
    const number = this.next++;
    const at = number & (this.#capacity - 1);
    const { end, gtid } = transaction;
    this.#unsettled[at] = 1;
    this.#beginOffset[at] = transaction.beginOffset;
    this.#endOffset[at] = end.offset;
    this.#file[at] = this.#name(end.file);
    this.#commitMicros[at] = transaction.commitMicros;
    this.#sid[at] = gtid === null ? -1 : this.#name(gtid.sid);
    this.#gno[at] = gtid?.gno ?? 0;
    return number;
  }

  /** Changes the number of unsettled rows. */
  count(number: number, by: number): void {
    if (number < this.first || number >= this.next) throw new RangeError(`transaction ${number} is not open`);
    const at = number & (this.#capacity - 1);
    const unsettled = this.#unsettled[at] + by;
    if (unsettled < 0) throw new RangeError(`transaction ${number} has more rows settled than routed`);
    this.#unsettled[at] = unsettled;
    // A row that comes back takes its transaction out of the settled prefix again.
    if (by > 0 && number < this.#settled) this.#settled = number;
  }

  /** Rows of an open transaction that are not settled. */
  counted(number: number): number {
    return this.#unsettled[number & (this.#capacity - 1)];
  }

  /** The first transaction that has something unsettled: all before it are settled. */
  settledThrough(): number {
    let at = this.#settled;
    while (at < this.next && this.#unsettled[at & (this.#capacity - 1)] === 0) at++;
    this.#settled = at;
    return at;
  }

  end(number: number): Position {
    const at = number & (this.#capacity - 1);
    return { file: this.#names[this.#file[at]], offset: this.#endOffset[at] };
  }

  endOffset(number: number): number {
    return this.#endOffset[number & (this.#capacity - 1)];
  }

  /** Null: not in the file of its end. */
  begin(number: number): Position | null {
    const at = number & (this.#capacity - 1);
    const offset = this.#beginOffset[at];
    return offset < 0 ? null : { file: this.#names[this.#file[at]], offset };
  }

  commitMicros(number: number): number {
    return this.#commitMicros[number & (this.#capacity - 1)];
  }

  gtidText(number: number): string | null {
    const at = number & (this.#capacity - 1);
    return this.#sid[at] === -1 ? null : formatGtid({ sid: this.#names[this.#sid[at]], gno: this.#gno[at] });
  }

  addGtid(number: number, set: GtidSet): void {
    const at = number & (this.#capacity - 1);
    if (this.#sid[at] === -1) return;
    set.add({ sid: this.#names[this.#sid[at]], first: this.#gno[at], last: this.#gno[at] });
  }

  dropBefore(number: number): void {
    this.first = number;
  }

  #name(name: string): number {
    let at = this.#nameAt.get(name);
    if (at === undefined) this.#nameAt.set(name, (at = this.#names.push(name) - 1));
    return at;
  }

  #grow(): void {
    const capacity = this.#capacity * 2;
    const move = <T extends Int32Array | Float64Array>(from: T, to: T): T => {
      for (let number = this.first; number < this.next; number++) {
        to[number & (capacity - 1)] = from[number & (this.#capacity - 1)]!;
      }
      return to;
    };
    this.#unsettled = move(this.#unsettled, new Int32Array(capacity));
    this.#beginOffset = move(this.#beginOffset, new Float64Array(capacity));
    this.#endOffset = move(this.#endOffset, new Float64Array(capacity));
    this.#file = move(this.#file, new Int32Array(capacity));
    this.#commitMicros = move(this.#commitMicros, new Float64Array(capacity));
    this.#sid = move(this.#sid, new Int32Array(capacity));
    this.#gno = move(this.#gno, new Float64Array(capacity));
    this.#capacity = capacity;
  }
}
