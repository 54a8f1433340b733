import type { InsertRun } from './large-transaction.ts';
import type { RowsEvent } from './rows-event.ts';

/** A slice worth less than this part of the memory that it keeps alive is copied out of it. */
const WORTH_PINNING = 0.5;

/** The outbox rows of the transaction that the stream is in. */
export class OpenTransaction {
  events: RowsEvent[] = [];
  bytes = 0;
  /** Rows that it inserted were changed by it: to be folded at the commit. */
  changed = false;
  /** Events before this one are copies, or pin little. */
  #settled = 0;
  /** It holds more than can be kept: rows are only counted. */
  isLarge = false;
  /** Events of inserts in the log, those that were rolled back too. */
  #inserts = 0;
  #rolledBack: InsertRun[] = [];
  readonly #savepoints: { readonly name: string; readonly events: number; readonly inserts: number }[] = [];

  get hasRows(): boolean {
    return this.isLarge || this.events.length > 0;
  }

  /** Inserts that were rolled back to a savepoint; ascending, apart from one another. */
  get rolledBack(): readonly InsertRun[] {
    return this.#rolledBack;
  }

  add(event: RowsEvent): void {
    if (event.change === 'insert') this.#inserts += 1;
    else this.changed = true;
    if (this.isLarge) return;
    this.events.push(event);
    this.bytes += event.end - event.start;
  }

  /** Gives up the rows. */
  outgrow(): void {
    this.isLarge = true;
    this.events = [];
    this.#settled = 0;
  }

  /** One of the same name is replaced. */
  savepoint(name: string): void {
    const same = this.#savepoints.findIndex((each) => each.name === name);
    if (same >= 0) this.#savepoints.splice(same, 1);
    this.#savepoints.push({ name, events: this.events.length, inserts: this.#inserts });
  }

  /** False when there is no such savepoint. The savepoint itself stays. */
  rollBackTo(name: string): boolean {
    const at = this.#savepoints.findLastIndex((each) => each.name === name);
    if (at < 0) return false;
    this.#savepoints.length = at + 1;
    const { events, inserts } = this.#savepoints[at];
    while ((this.#rolledBack.at(-1)?.from ?? -1) >= inserts) this.#rolledBack.pop();
    if (this.#inserts > inserts) this.#rolledBack.push({ from: inserts, to: this.#inserts });
    if (this.isLarge) return true;
    this.events.length = events;
    this.#settled = Math.min(this.#settled, this.events.length);
    this.bytes = this.events.reduce((sum, { start, end }) => sum + end - start, 0);
    return true;
  }

  /** Hands over the events and is empty again. */
  take(): RowsEvent[] {
    const { events } = this;
    this.clear();
    return events;
  }

  clear(): void {
    if (this.events.length > 0) this.events = [];
    this.bytes = 0;
    this.changed = false;
    this.isLarge = false;
    this.#inserts = 0;
    if (this.#rolledBack.length > 0) this.#rolledBack = [];
    this.#settled = 0;
    if (this.#savepoints.length > 0) this.#savepoints.length = 0;
  }

  /**
   * The end of a socket chunk: a transaction that stays open may do so for long, and its slices must not keep whole
   * chunks alive. Slices of one buffer lie next to one another in the list.
   */
  settle(): void {
    const { events } = this;
    let first = this.#settled;
    while (first < events.length) {
      const memory = events[first].buffer.buffer;
      let last = first;
      let bytes = 0;
      while (last < events.length && events[last].buffer.buffer === memory) {
        bytes += events[last].end - events[last].start;
        last += 1;
      }
      if (bytes < memory.byteLength * WORTH_PINNING) copyOut(events, first, last, bytes);
      first = last;
    }
    this.#settled = first;
  }
}

function copyOut(events: readonly RowsEvent[], first: number, last: number, bytes: number): void {
  const own = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (let i = first; i < last; i++) {
    const event = events[i];
    event.buffer.copy(own, at, event.start, event.end);
    const length = event.end - event.start;
    event.buffer = own;
    event.start = at;
    event.end = at += length;
  }
}
