import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AckedRows, type BatchPart } from '../../../src/delivery/acked-rows.ts';
import { Batch } from '../../../src/delivery/batch.ts';
import { madeRow } from './rows.ts';

/** A batch of these transactions' rows; ids are the transactions'. */
function batchOf(transactions: readonly number[]): Batch {
  const batch = new Batch();
  batch.begin(Buffer.alloc(64 * 1024));
  for (const transaction of transactions) batch.append(madeRow(transaction, 'a', 1), transaction, 0);
  return batch;
}

function idsOf(parts: readonly BatchPart[]): number[] {
  return parts.flatMap(({ batch, firstRow, rows }) => [...batch.ids().subarray(firstRow, firstRow + rows)].map(Number));
}

describe('acknowledged rows', () => {
  test('are taken by transaction out of whatever batch they lie in', () => {
    const acked = new AckedRows();
    acked.add(batchOf([1, 4, 7]));
    acked.add(batchOf([2, 5, 5]));
    acked.add(batchOf([3, 6]));
    const first = acked.take(3);
    expect(idsOf(first).sort()).toEqual([1, 2, 3]);
    expect(first.every(({ isLast }) => !isLast)).toBe(true);
    // One transaction is not torn: 5 comes with both its rows.
    const second = acked.take(2);
    expect(idsOf(second).sort()).toEqual([4, 5, 5]);
    expect(second.filter(({ isLast }) => isLast)).toHaveLength(1);
    expect(idsOf(acked.take(100)).sort()).toEqual([6, 7]);
    expect(acked.count).toBe(0);
    expect(acked.take(100)).toEqual([]);
  });

  test('all come out once, each batch has one last part, and what is taken is older than what stays', () => {
    const batches = fc.array(fc.array(fc.nat(30), { minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(batches, fc.integer({ min: 1, max: 15 }), (all, maxRows) => {
        const acked = new AckedRows();
        for (const transactions of all) acked.add(batchOf(transactions.sort((a, b) => a - b)));
        const out: number[] = [];
        let last = 0;
        while (acked.count > 0) {
          const before = acked.count;
          const parts = acked.take(maxRows);
          const ids = idsOf(parts);
          expect(ids.length).toBeGreaterThanOrEqual(Math.min(maxRows, before));
          expect(acked.count).toBe(before - ids.length);
          expect(Math.min(...ids)).toBeGreaterThanOrEqual(Math.max(0, ...out));
          last += parts.filter(({ isLast }) => isLast).length;
          out.push(...ids);
        }
        expect(last).toBe(all.length);
        expect(out.sort((a, b) => a - b)).toEqual(all.flat().sort((a, b) => a - b));
      }),
    );
  });
});
