import { murmur2 } from '../encoding/murmur2.ts';
import type { RowId } from '../model/row-ids.ts';
import type { BatchRuns } from './acked-rows.ts';
import { Batch } from './batch.ts';

/** Rows in hand are many and wanted ones few: most of them are told apart by some bits of their ids. */
const SLOTS = 2 ** 16;

/**
 * Strikes from `wanted` (ids by outbox) every row that is in one of these batches or runs. Makes no object for rows that
 * are not wanted.
 */
export function inHand(held: Iterable<Batch | BatchRuns>, wanted: ReadonlyMap<number, Set<RowId>>): void {
  const slots = new Map<number, Uint8Array>();
  for (const [outbox, ids] of wanted) if (ids.size > 0) slots.set(outbox, slotsOf(ids));
  for (const batchOrRuns of held) {
    const { batch, firstRun, endRun, firstRow } = batchOrRuns instanceof Batch ? whole(batchOrRuns) : batchOrRuns;
    let at = firstRow;
    for (let i = firstRun; i < endRun; i++) {
      const { outbox, rows, hasKeys } = batch.run(i);
      const ids = wanted.get(outbox);
      if (ids !== undefined && ids.size > 0) strike(batch, at, at + rows, hasKeys, ids, slots.get(outbox)!);
      at += rows;
    }
  }
}

function strike(
  batch: Batch,
  first: number,
  end: number,
  hasKeys: boolean,
  wanted: Set<RowId>,
  slots: Uint8Array,
): void {
  for (let row = first; row < end; row++) {
    const slot = hasKeys ? slotOfKey(batch.key(row)) : batch.lowId(row) % SLOTS;
    if (slots[slot] === 1) wanted.delete(batch.id(row, hasKeys));
  }
}

function whole(batch: Batch): BatchRuns {
  return { batch, firstRun: 0, endRun: batch.runCount, firstRow: 0 };
}

function slotsOf(ids: Iterable<RowId>): Uint8Array {
  const slots = new Uint8Array(SLOTS);
  for (const id of ids) {
    slots[typeof id === 'string' ? slotOfKey(Buffer.from(id, 'hex')) : Number(id % BigInt(SLOTS))] = 1;
  }
  return slots;
}

function slotOfKey(key: Buffer): number {
  return murmur2(key, 0, key.length) & (SLOTS - 1);
}
