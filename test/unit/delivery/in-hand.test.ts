import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AckedRows } from '../../../src/delivery/acked-rows.ts';
import { Batch } from '../../../src/delivery/batch.ts';
import { inHand } from '../../../src/delivery/in-hand.ts';
import { Form } from '../../../src/model/row.ts';
import type { RowId } from '../../../src/model/row-ids.ts';
import { fill } from '../encoding/rows.ts';
import { madeRow } from './rows.ts';

interface Ref {
  readonly outbox: number;
  readonly id: RowId;
}

/** Few enough that rows are met, and pairs among them that only their high bits tell apart. */
const ref: fc.Arbitrary<Ref> = fc.record({
  outbox: fc.nat(2),
  id: fc.oneof(
    fc
      .tuple(fc.bigInt({ min: 0n, max: 9n }), fc.constantFrom(0n, 1n << 16n, 1n << 32n, 1n << 63n))
      .map(([a, b]) => a + b),
    fc.constantFrom('', '00', '0000', 'ff00', 'a0b1c2d3e4f5'),
  ),
});

function batchOf(refs: readonly Ref[]): Batch {
  const batch = new Batch();
  batch.begin(Buffer.alloc(64 * 1024));
  refs.forEach(({ outbox, id }, i) => {
    const row = madeRow(typeof id === 'bigint' ? Number(id & 0xffff_ffffn) : 0, 'a', 1, outbox);
    if (typeof id === 'bigint') row.idHigh = Number(id >> 32n);
    else fill(row.idBytes, Form.Text, Buffer.from(id, 'hex'));
    batch.append(row, i, 0);
  });
  return batch;
}

function setsOf(refs: readonly Ref[]): Map<number, Set<RowId>> {
  return new Map(
    [0, 1].map((outbox) => [outbox, new Set(refs.filter((ref) => ref.outbox === outbox).map(({ id }) => id))]),
  );
}

test('what is in hand is struck, in batches and in what is left of them, and nothing else', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(ref, { minLength: 1, maxLength: 12 }), { maxLength: 4 }),
      fc.array(ref, { maxLength: 20 }),
      fc.array(ref, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 12 }),
      (held, wanted, ackedRefs, taken) => {
        const acked = new AckedRows();
        acked.add(batchOf(ackedRefs));
        acked.take(taken);
        expect([...acked.rows()].map(({ outbox, id }) => ({ outbox, id }))).toEqual(ackedRefs.slice(taken));
        const left = setsOf(wanted);
        inHand([...held.map(batchOf), ...acked.remaining()], left);
        const inAnyHand = [...held.flat(), ...ackedRefs.slice(taken)];
        const isHeld = (ref: Ref) => inAnyHand.some(({ outbox, id }) => outbox === ref.outbox && id === ref.id);
        expect(left).toEqual(setsOf(wanted.filter((ref) => !isHeld(ref))));
      },
    ),
    { numRuns: 500 },
  );
});
