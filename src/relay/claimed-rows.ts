import type { Batch } from '../delivery/batch.ts';
import type { RowId } from '../model/row-ids.ts';
import type { Candidate, Outcome, RowFailure } from '../model/store.ts';
import type { ClaimedRows } from './settlement.ts';

interface Done {
  readonly published: RowId[];
  readonly failures: RowFailure[];
  readonly back: RowId[];
}

/** Rows that the sweep has claimed: what became of them, and whether that stands in the table. */
export class Claims implements ClaimedRows {
  /** Claimed and not settled: attempts, by outbox and id. */
  readonly #open = new Map<number, Map<RowId, number>>();
  /** Settled, and not written back. */
  readonly #done = new Map<number, Done>();
  #waiting: (() => void)[] = [];

  get isSettled(): boolean {
    for (const rows of this.#open.values()) if (rows.size > 0) return false;
    return true;
  }

  add(candidates: Iterable<Candidate>): void {
    for (const { outbox, id, attempts } of candidates) {
      let rows = this.#open.get(outbox);
      if (rows === undefined) this.#open.set(outbox, (rows = new Map<RowId, number>()));
      rows.set(id, attempts);
    }
  }

  acked(batch: Batch): void {
    for (const { outbox, id } of batch.rows()) if (this.#settle(outbox, id)) this.#of(outbox).published.push(id);
  }

  back(batch: Batch): void {
    for (const { outbox, id } of batch.rows()) this.backRow(outbox, id);
  }

  backRow(outbox: number, id: RowId): void {
    if (this.#settle(outbox, id)) this.#of(outbox).back.push(id);
  }

  failed(failure: RowFailure): void {
    if (this.#settle(failure.outbox, failure.id)) this.#of(failure.outbox).failures.push(failure);
  }

  attemptsOf(outbox: number, id: RowId): number {
    return this.#open.get(outbox)?.get(id) ?? 0;
  }

  /** Rows of the outbox that are claimed and not settled. */
  unsettled(outbox: number): RowId[] {
    return [...(this.#open.get(outbox)?.keys() ?? [])];
  }

  /** The row is not there any more: there is nothing to write. */
  gone(outbox: number, id: RowId): void {
    this.#settle(outbox, id);
  }

  /** Resolves when nothing is open, or `signal` is aborted. */
  async settled(signal: AbortSignal): Promise<void> {
    while (!this.isSettled && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      this.#waiting.push(() => resolve(undefined));
      const onAbort = (): void => resolve(undefined);
      signal.addEventListener('abort', onAbort, { once: true });
      await promise;
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** What is to be written back, by outbox; it is this caller's from now on. */
  take(): [outbox: number, outcome: Outcome][] {
    const all = [...this.#done];
    this.#done.clear();
    return all;
  }

  /** In their topics, but somebody holds the rows: to be written another time. */
  keep(outbox: number, published: readonly RowId[]): void {
    if (published.length > 0) this.#of(outbox).published.push(...published);
  }

  get hasUnwritten(): boolean {
    return this.#done.size > 0;
  }

  #settle(outbox: number, id: RowId): boolean {
    const wasOpen = this.#open.get(outbox)?.delete(id) === true;
    if (wasOpen && this.isSettled) {
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const wake of waiting) wake();
    }
    return wasOpen;
  }

  #of(outbox: number): Done {
    let done = this.#done.get(outbox);
    if (done === undefined) this.#done.set(outbox, (done = { published: [], failures: [], back: [] }));
    return done;
  }
}
