import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GtidRuns } from '../../../src/binlog/gtid-runs.ts';

describe('runs of GTIDs', () => {
  it('hold what was added, as few as the order allows', () => {
    const gtid = fc.record({ sid: fc.constantFrom('a', 'b'), gno: fc.integer({ min: 1, max: 6 }) });
    fc.assert(
      fc.property(fc.array(gtid), (gtids) => {
        const runs = new GtidRuns();
        for (const { sid, gno } of gtids) runs.add(sid, gno);
        const taken = runs.take();
        const all = taken.flatMap(({ sid, first, last }) =>
          Array.from({ length: last - first + 1 }, (_, n) => ({ sid, gno: first + n })),
        );
        expect(all).toEqual(gtids);
        for (const [n, { sid, first }] of taken.slice(1).entries()) {
          expect(taken[n].sid === sid && taken[n].last + 1 === first).toBe(false);
        }
        expect(runs.take()).toEqual([]);
      }),
    );
  });
});
