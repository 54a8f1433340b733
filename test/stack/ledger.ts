import type { ExpectedRow } from './expected-rows.ts';
import type { LaneOrder } from './invariants.ts';

/** What a transaction of a writer has come to. Times are `performance.now()`. */
export interface WrittenTransaction {
  /** Before its COMMIT was sent. */
  committingMs: number;
  /** When that was answered; Infinity: it never was. */
  committedMs: number;
  /** `unknown`: the connection ended before the answer to its COMMIT. The table tells. */
  fate: 'open' | 'committed' | 'rolled back' | 'unknown';
}

/** `poison`: no topic takes it. `delayed`: available some seconds later. */
export type RowKind = 'plain' | 'delayed' | 'poison';

export interface WrittenRow {
  readonly kind: RowKind;
  readonly transaction: WrittenTransaction;
}

/** Every row that writers have written, by header id, and what has become of its transaction. */
export class Ledger {
  readonly rows = new Map<string, WrittenRow>();

  begin(): WrittenTransaction {
    return { committingMs: Infinity, committedMs: Infinity, fate: 'open' };
  }

  row(eventId: string, kind: RowKind, transaction: WrittenTransaction): void {
    this.rows.set(eventId, { kind, transaction });
  }

  /** COMMIT, or what stands for it. Throws what `commit` throws: nobody knows then whether it took effect. */
  async commit(transaction: WrittenTransaction, commit: () => Promise<unknown>): Promise<void> {
    transaction.committingMs = performance.now();
    transaction.fate = 'unknown';
    await commit();
    transaction.committedMs = performance.now();
    transaction.fate = 'committed';
  }

  /**
   * The order of one aggregate: a row must be out before another when it is in front of it in the order of the commits
   * and in that of the ids. Rows that have waited go by id, all others by commit; where the two orders differ
   * (transactions of several writers about one aggregate), either is right. A delayed row comes when it is due.
   */
  laneOrder(): LaneOrder {
    return new LedgerOrder(this);
  }

  count(): Readonly<Record<RowKind | 'rolledBack' | 'unknown', number>> {
    const counts = { plain: 0, delayed: 0, poison: 0, rolledBack: 0, unknown: 0 };
    for (const { kind, transaction } of this.rows.values()) {
      if (transaction.fate === 'committed') counts[kind]++;
      else if (transaction.fate === 'unknown') counts.unknown++;
      else counts.rolledBack++;
    }
    return counts;
  }
}

interface Seen {
  readonly row: ExpectedRow;
  readonly id: bigint;
  readonly transaction: WrittenTransaction;
}

class LedgerOrder implements LaneOrder {
  readonly #ledger: Ledger;
  /** Rows that are out; not those that another one is behind in both orders: whatever passes them passes that one. */
  #furthest: Seen[] = [];
  /** Of each transaction, the row with the highest id that is out. */
  readonly #last = new Map<WrittenTransaction, Seen>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  passed(row: ExpectedRow): ExpectedRow | null {
    const written = this.#ledger.rows.get(row.eventId);
    if (written === undefined || written.kind === 'delayed') return null;
    const { transaction } = written;
    const { committedMs } = transaction;
    const seen = { row, id: BigInt(row.id), transaction };
    const sibling = this.#last.get(transaction);
    if (sibling !== undefined && sibling.id > seen.id) return sibling.row;
    this.#last.set(transaction, seen);
    const later = this.#furthest.find((each) => each.id > seen.id && each.transaction.committingMs >= committedMs);
    const isBehind = (a: Seen, b: Seen): boolean =>
      a.id >= b.id && a.transaction.committingMs >= b.transaction.committingMs;
    if (!this.#furthest.some((each) => isBehind(each, seen))) {
      this.#furthest = [...this.#furthest.filter((each) => !isBehind(seen, each)), seen];
    }
    return later?.row ?? null;
  }
}
