import type { RetireRows } from '../model/store.ts';
import type { AckWindow, Committable } from './ack-window.ts';
import type { Batch } from './batch.ts';

/** A row that was acknowledged but that the application held when it was to be retired. */
export interface HeldRow {
  readonly outbox: number;
  readonly id: bigint;
  readonly transaction: number;
}

/**
 * What one flush is to do: the rows of these batches and the rows held before, all settled in the window for now.
 * `fit` takes those back that turn out to be held still, as often as the flush is tried.
 */
export class RetirePlan {
  /** Rows that nobody has been seen to hold, by outbox, ids ascending. */
  readonly fresh: readonly RetireRows[];
  readonly suspects: readonly RetireRows[];
  #stillHeld: HeldRow[] = [];
  readonly #window: AckWindow;
  readonly #batches: readonly Batch[];
  readonly #heldBefore: readonly HeldRow[];

  /** `retires`: per outbox, false where rows are kept as they are. */
  constructor(
    window: AckWindow,
    batches: readonly Batch[],
    heldBefore: readonly HeldRow[],
    retires: readonly boolean[],
  ) {
    this.#window = window;
    this.#batches = batches;
    this.#heldBefore = heldBefore;
    this.fresh = collect(batches, retires);
    this.suspects = retires.flatMap((_, outbox) => {
      const ids = heldBefore.filter((row) => row.outbox === outbox).map((row) => row.id);
      return ids.length === 0 ? [] : [{ outbox, ids: BigUint64Array.from(ids).sort() }];
    });
    for (const batch of batches) settleBatch(window, batch);
    for (const row of heldBefore) window.settle(row.transaction, 1);
  }

  get stillHeld(): readonly HeldRow[] {
    return this.#stillHeld;
  }

  /** The checkpoint that fits when these rows stay unretired; null when there is nothing new to save. */
  fit(stillHeld: readonly RetireRows[]): Committable | null {
    for (const row of this.#stillHeld) this.#window.settle(row.transaction, 1);
    this.#stillHeld = this.#find(stillHeld);
    for (const row of this.#stillHeld) this.#window.unsettle(row.transaction, 1);
    return this.#window.committable();
  }

  #find(rows: readonly RetireRows[]): HeldRow[] {
    const found: HeldRow[] = [];
    for (const { outbox, ids } of rows) {
      const wanted = new Set(ids);
      for (const row of this.#heldBefore) if (row.outbox === outbox && wanted.delete(row.id)) found.push(row);
      for (const batch of this.#batches) {
        if (wanted.size === 0) break;
        for (const row of rowsOf(batch)) if (row.outbox === outbox && wanted.delete(row.id)) found.push(row);
      }
    }
    return found;
  }
}

export function settleBatch(window: AckWindow, batch: Batch): void {
  for (let i = 0; i < batch.runCount; i++) {
    const { transaction, rows } = batch.run(i);
    window.settle(transaction, rows);
  }
}

/** Slow (an object a row): only for a flush that met a lock. */
function* rowsOf(batch: Batch): Iterable<HeldRow> {
  const ids = batch.ids();
  let at = 0;
  for (let i = 0; i < batch.runCount; i++) {
    const { transaction, outbox, rows } = batch.run(i);
    for (const end = at + rows; at < end; at++) yield { outbox, id: ids[at], transaction };
  }
}

function collect(batches: readonly Batch[], retires: readonly boolean[]): RetireRows[] {
  const counts = retires.map(() => 0);
  for (const batch of batches) {
    for (let i = 0; i < batch.runCount; i++) counts[batch.run(i).outbox] += batch.run(i).rows;
  }
  const all = retires.map((retired, outbox) => (retired ? new BigUint64Array(counts[outbox]) : null));
  const filled = retires.map(() => 0);
  for (const batch of batches) {
    const ids = batch.ids();
    let at = 0;
    for (let i = 0; i < batch.runCount; i++) {
      const { outbox, rows } = batch.run(i);
      all[outbox]?.set(ids.subarray(at, at + rows), filled[outbox]);
      filled[outbox] += rows;
      at += rows;
    }
  }
  return all.flatMap((ids, outbox) => (ids === null || ids.length === 0 ? [] : [{ outbox, ids: ids.sort() }]));
}
