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
   * True when the first of two rows of one aggregate must be delivered first: it is in front in the order of the
   * commits and in that of the ids. Rows that have waited go by id, all others by commit; where the two orders differ
   * (transactions of several writers about one aggregate), either is right. A delayed row comes when it is due.
   */
  mustPrecede(first: { eventId: string; id: string }, second: { eventId: string; id: string }): boolean {
    const [a, b] = [this.rows.get(first.eventId), this.rows.get(second.eventId)];
    if (a === undefined || b === undefined || a.kind === 'delayed' || b.kind === 'delayed') return false;
    if (BigInt(first.id) >= BigInt(second.id)) return false;
    return a.transaction === b.transaction || a.transaction.committedMs <= b.transaction.committingMs;
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
