import { ByteIds, type RowId, rowIds } from '../model/row-ids.ts';
import type { RetireRows } from '../model/store.ts';
import type { AckWindow, Committable } from './ack-window.ts';
import type { BatchPart } from './acked-rows.ts';
import type { Batch } from './batch.ts';
import type { BatchRow } from './batch-rows.ts';

/** A row that was acknowledged but that the application held when it was to be retired. */
export type HeldRow = BatchRow;

/**
 * What one flush is to do: the rows of these parts of batches and the rows held before, all settled in the window for now.
 * `fit` takes those back that turn out to be held still, as often as the flush is tried.
 */
export class RetirePlan {
  /** Rows that nobody has been seen to hold, by outbox, ids ascending. */
  readonly fresh: readonly RetireRows[];
  readonly suspects: readonly RetireRows[];
  #stillHeld: HeldRow[] = [];
  readonly #window: AckWindow;
  readonly #parts: readonly BatchPart[];
  readonly #heldBefore: readonly HeldRow[];

  /** `retires`: per outbox, false where rows are kept as they are. */
  constructor(
    window: AckWindow,
    parts: readonly BatchPart[],
    heldBefore: readonly HeldRow[],
    retires: readonly boolean[],
  ) {
    this.#window = window;
    this.#parts = parts;
    this.#heldBefore = heldBefore;
    this.fresh = collect(parts, retires);
    this.suspects = retires.flatMap((_, outbox) => {
      const ids = heldBefore.filter((row) => row.outbox === outbox).map((row) => row.id);
      return kinds(ids).map((kind) => ({ outbox, ids: rowIds(kind) }));
    });
    for (const { batch, firstRun, endRun } of parts) settleRuns(window, batch, firstRun, endRun);
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
      const wanted = new Set<RowId>(ids);
      for (const row of this.#heldBefore) if (row.outbox === outbox && wanted.delete(row.id)) found.push(row);
      for (const part of this.#parts) {
        if (wanted.size === 0) break;
        for (const row of part.batch.rows(part.firstRun, part.endRun, part.firstRow)) {
          if (row.outbox === outbox && wanted.delete(row.id)) found.push(row);
        }
      }
    }
    return found;
  }
}

/** All runs of a batch by default. */
export function settleRuns(window: AckWindow, batch: Batch, firstRun = 0, endRun = batch.runCount): void {
  for (let i = firstRun; i < endRun; i++) {
    const { transaction, rows } = batch.run(i);
    window.settle(transaction, rows);
  }
}

/** Integers and keys apart: a table has one of them, until its primary key changes. */
function kinds(ids: readonly RowId[]): RowId[][] {
  const keys = ids.filter((id) => typeof id === 'string');
  const integers = ids.filter((id) => typeof id !== 'string');
  return [integers, keys].filter((kind) => kind.length > 0);
}

function collect(parts: readonly BatchPart[], retires: readonly boolean[]): RetireRows[] {
  return retires.flatMap((retired, outbox): RetireRows[] => {
    if (!retired) return [];
    const ids = integersOf(parts, outbox);
    const keys = keysOf(parts, outbox);
    return [...(ids.length === 0 ? [] : [{ outbox, ids }]), ...(keys.length === 0 ? [] : [{ outbox, ids: keys }])];
  });
}

function integersOf(parts: readonly BatchPart[], outbox: number): BigUint64Array {
  const all = new BigUint64Array(count(parts, outbox, false));
  let filled = 0;
  eachRun(parts, outbox, false, (batch, at, rows) => {
    all.set(batch.ids().subarray(at, at + rows), filled);
    filled += rows;
  });
  return all.sort();
}

function keysOf(parts: readonly BatchPart[], outbox: number): ByteIds {
  const rows = count(parts, outbox, true);
  const bytes = Buffer.allocUnsafe(rows === 0 ? 0 : parts.reduce((sum, { batch }) => sum + batch.keyBytes, 0));
  const places = new Uint32Array(rows * 2);
  let end = 0;
  let filled = 0;
  eachRun(parts, outbox, true, (batch, at, count) => {
    end = batch.copyKeys(at, count, bytes, end, places, filled);
    filled += 2 * count;
  });
  return ByteIds.sorted(bytes, places);
}

function count(parts: readonly BatchPart[], outbox: number, hasKeys: boolean): number {
  let all = 0;
  eachRun(parts, outbox, hasKeys, (_, __, rows) => (all += rows));
  return all;
}

/** `at`: the run's first row in its batch. */
function eachRun(
  parts: readonly BatchPart[],
  outbox: number,
  hasKeys: boolean,
  visit: (batch: Batch, at: number, rows: number) => void,
): void {
  for (const { batch, firstRun, endRun, firstRow } of parts) {
    let at = firstRow;
    for (let i = firstRun; i < endRun; i++) {
      const run = batch.run(i);
      if (run.outbox === outbox && run.hasKeys === hasKeys) visit(batch, at, run.rows);
      at += run.rows;
    }
  }
}
