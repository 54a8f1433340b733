import type { Xid } from './xa-prepare.ts';

const MOST = 10_000;

/**
 * What is known of the XA transactions that were prepared: do they hold outbox rows? It outlives a stream, for the
 * decision may come in a later one; of the decided as many again are kept, for a stream may begin before them. Bounded:
 * what is forgotten, and what was prepared before the first stream, may hold some.
 */
export class PreparedXa {
  readonly #most: number;
  readonly #open = new Map<Xid, boolean>();
  readonly #decided = new Map<Xid, boolean>();

  constructor(most = MOST) {
    this.#most = most;
  }

  prepared(xid: Xid, holdsRows: boolean): void {
    // Names may be used again: the first decision of a stream that begins earlier may be that of the one before.
    keep(this.#open, xid, holdsRows || this.#decided.get(xid) === true, this.#most);
  }

  /** True when the transaction holds outbox rows, or may. Null: its name is not known. */
  decided(xid: Xid | null): boolean {
    if (xid === null) return true;
    const holdsRows = this.#open.get(xid) ?? this.#decided.get(xid) ?? true;
    this.#open.delete(xid);
    keep(this.#decided, xid, holdsRows, this.#most);
    return holdsRows;
  }

  /** Part of the log has not been read: what was prepared in it is not known. */
  forget(): void {
    this.#open.clear();
    this.#decided.clear();
  }
}

/** The oldest goes. */
function keep(map: Map<Xid, boolean>, xid: Xid, holdsRows: boolean, most: number): void {
  map.delete(xid);
  map.set(xid, holdsRows);
  if (map.size <= most) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
