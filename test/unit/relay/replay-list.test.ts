import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ReplayList } from '../../../src/relay/replay-list.ts';

interface Row {
  readonly hash: number;
  readonly id: bigint;
}

/** Rows in the order of their ids, of few or many hashes. */
const rows: fc.Arbitrary<Row[]> = fc
  .array(fc.oneof(fc.constantFrom(0, 7, 2 ** 32 - 1), fc.integer({ min: 0, max: 2 ** 32 - 1 })), { maxLength: 300 })
  .map((hashes) => hashes.map((hash, i) => ({ hash, id: BigInt(i + 1) })));

/** All rows by lists and chunks, as a job goes through them; what is to come is asked anew behind each list. */
function through(all: readonly Row[], maxRows: number, chunkRows: () => number) {
  const sent: bigint[] = [];
  const chunks: { ids: readonly (bigint | string)[]; cut: boolean }[] = [];
  let from = 0;
  for (;;) {
    const list = new ReplayList(from, maxRows);
    for (const { hash, id } of all) list.add(hash, id);
    list.sort();
    for (let at = 0; ;) {
      const chunk = list.chunk(at, chunkRows());
      if (chunk === null) break;
      chunks.push({ ids: chunk.ids, cut: chunk.cut !== null });
      sent.push(...(chunk.ids as bigint[]));
      at = chunk.end;
    }
    if (list.isLast) return { sent, chunks };
    expect(list.endHash).toBeGreaterThan(from);
    from = list.endHash;
  }
}

test('every row once, those of a hash one behind the other in the order of their ids', () => {
  fc.assert(
    fc.property(rows, fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 40 }), (all, maxRows, chunkRows) => {
      const { sent } = through(all, maxRows, () => chunkRows);
      const byHash = all.toSorted((a, b) => a.hash - b.hash || (a.id < b.id ? -1 : 1));
      expect(sent).toEqual(byHash.map(({ id }) => id));
    }),
  );
});

test('a chunk has whole hashes, about as many rows as asked for; only a hash with ten times as many is cut', () => {
  fc.assert(
    fc.property(rows, fc.integer({ min: 1, max: 40 }), (all, chunkRows) => {
      const hashOf = new Map(all.map(({ hash, id }) => [id, hash]));
      const { chunks } = through(all, 1_000, () => chunkRows);
      for (const [i, { ids, cut }] of chunks.entries()) {
        expect(ids.length).toBeLessThanOrEqual(chunkRows * 10);
        const next = chunks.at(i + 1)?.ids[0] as bigint | undefined;
        const last = hashOf.get(ids.at(-1) as bigint);
        expect(next !== undefined && hashOf.get(next) === last).toBe(cut);
        if (cut) expect(new Set(ids.map((id) => hashOf.get(id as bigint))).size).toBe(1);
        const isLast = i === chunks.length - 1;
        const follows = all.filter(({ hash }) => next !== undefined && hash === hashOf.get(next)).length;
        if (!cut && !isLast && ids.length < chunkRows) expect(ids.length + follows).toBeGreaterThan(chunkRows * 10);
      }
    }),
  );
});

test('a cut hash goes on behind its last row', () => {
  const list = new ReplayList(0, 1_000);
  for (let id = 1n; id <= 25n; id++) list.add(7, id);
  list.add(9, 26n);
  list.sort();
  const first = list.chunk(0, 1)!;
  expect(first).toMatchObject({ end: 10, doneHash: 6, cut: { hash: 7, id: 10n } });
  expect(list.chunk(first.end, 2)).toMatchObject({ end: 25, doneHash: 7, cut: null });
  expect(list.chunk(25, 2)).toMatchObject({ ids: [26n], doneHash: 9, cut: null });
  expect(list.chunk(26, 2)).toBeNull();
});

test('more rows than a list takes: it narrows; one aggregate alone is listed whole', () => {
  const list = new ReplayList(0, 100);
  for (let i = 0; i < 1_000; i++) list.add((i * 2 ** 22) % 2 ** 32, BigInt(i));
  expect(list.length).toBeLessThanOrEqual(100);
  expect(list.isLast).toBe(false);
  const hot = new ReplayList(5, 100);
  for (let i = 0; i < 1_000; i++) hot.add(5, BigInt(i));
  expect(hot.length).toBe(1_000);
  expect(hot.endHash).toBe(6);
});

test('ids that are no integers keep the order in which they came', () => {
  const list = new ReplayList(0, 100);
  for (const [hash, id] of [
    [2, 'ff'],
    [1, 'bb'],
    [2, '01'],
    [1, 'aa'],
  ] as const)
    list.add(hash, id);
  list.sort();
  expect(list.chunk(0, 100)!.ids).toEqual(['bb', 'aa', 'ff', '01']);
});
