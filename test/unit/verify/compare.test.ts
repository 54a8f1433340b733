import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Buckets, SpillError, SpillFile } from '../../../src/verify/buckets.ts';
import { compare, type Compared, type TopicFacts } from '../../../src/verify/compare.ts';
import { AT, BUCKETS, Flag, RECORD_BYTES, ROW_BYTES, writeContent } from '../../../src/verify/entries.ts';

interface Row {
  readonly id: string;
  readonly key?: string | null;
  readonly value?: string | null;
  readonly order: number;
  readonly outbox?: number;
  readonly flags?: number;
  readonly createdMs?: number;
}

interface Sent {
  readonly id: string;
  readonly key?: string | null;
  readonly value?: string | null;
  readonly offset: number;
  readonly flags?: number;
}

const PLAIN: TopicFacts = { compacted: false, expiredBeforeMs: [-Infinity] };
const bytes = (text: string | null) => (text === null ? null : Buffer.from(text));

function compared(
  rows: readonly Row[],
  sent: readonly Sent[],
  topic: TopicFacts = PLAIN,
  youngFromMs = Infinity,
): Compared {
  const spill = new SpillFile();
  try {
    const [ofRows, ofRecords] = [new Buckets(spill, ROW_BYTES, BUCKETS), new Buckets(spill, RECORD_BYTES, BUCKETS)];
    for (const { id, key = 'k', value = id, order, outbox = 0, flags = 0, createdMs = 0 } of rows) {
      const entry = Buffer.alloc(ROW_BYTES);
      writeContent(entry, {
        topic: 0,
        id: Buffer.from(id),
        key: bytes(key),
        value: bytes(value),
        headers: Buffer.from(id),
      });
      entry[AT.outbox] = outbox;
      entry[AT.flags] = flags | (value === null ? Flag.Tombstone : 0);
      entry.writeDoubleBE(createdMs, AT.place);
      entry.writeBigUInt64BE(BigInt(order), AT.order);
      ofRows.add(entry[AT.identity], entry);
    }
    for (const { id, key = 'k', value = id, offset, flags = 0 } of sent) {
      const entry = Buffer.alloc(RECORD_BYTES);
      writeContent(entry, {
        topic: 0,
        id: Buffer.from(id),
        key: bytes(key),
        value: bytes(value),
        headers: Buffer.from(id),
      });
      entry[AT.flags] = flags;
      entry.writeDoubleBE(offset, AT.place);
      ofRecords.add(entry[AT.identity], entry);
    }
    return compare({
      rows: ofRows,
      records: ofRecords,
      spill,
      topics: [topic],
      youngFromMs: [youngFromMs, youngFromMs],
      limit: 100,
    });
  } finally {
    spill.close();
  }
}

const nonZero = ({ counts }: Compared) => Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));

test('first deliveries count, whatever is sent again behind them', () => {
  const rows = ['a', 'b', 'c'].map((id, order) => ({ id, order }));
  const sent = ['a', 'b', 'a', 'c', 'b'].map((id, offset) => ({ id, offset }));
  expect(nonZero(compared(rows, sent))).toEqual({ rows: 3, found: 3, duplicates: 2 });
});

test('rows of two outboxes in one topic have no order among themselves, only among their own', () => {
  const rows = ['a', 'b', 'c', 'd'].map((id, n) => ({ id, order: n % 2, outbox: n < 2 ? 0 : 1 }));
  const inOrder = ['a', 'b', 'c', 'd'].map((id, offset) => ({ id, offset }));
  expect(nonZero(compared(rows, inOrder))).toEqual({ rows: 4, found: 4 });
  const turned = ['a', 'b', 'd', 'c'].map((id, offset) => ({ id, offset }));
  expect(nonZero(compared(rows, turned))).toEqual({ rows: 4, found: 4, reordered: 1 });
});

test('what a row of another outbox may have replaced is not missing where the topic is compacted', () => {
  const rows = ['a', 'b'].map((id, outbox) => ({ id, order: 1 - outbox, outbox }));
  const compacted = { ...PLAIN, compacted: true };
  expect(nonZero(compared(rows, [{ id: 'b', offset: 1 }], compacted))).toEqual({ rows: 2, found: 1, compacted: 1 });
  expect(nonZero(compared(rows, [], compacted))).toEqual({ rows: 2, missing: 2 });
});

test('a row that comes before one of an earlier place is out of order, a delayed one only later', () => {
  const rows = ['a', 'b', 'c', 'd'].map((id, order) => ({ id, order }));
  const sent = ['b', 'c', 'd', 'a'].map((id, offset) => ({ id, offset }));
  expect(nonZero(compared(rows, sent))).toEqual({ rows: 4, found: 4, reordered: 3 });
  const delayed = rows.map((row) => (row.id === 'a' ? { ...row, flags: Flag.Delayed } : row));
  expect(nonZero(compared(delayed, sent))).toEqual({ rows: 4, found: 4, outOfTurn: 1 });
});

test('rows of one moment, and rows without an aggregate, have no order', () => {
  const sent = [
    { id: 'b', offset: 0 },
    { id: 'a', offset: 1 },
  ];
  const tied = compared(
    [
      { id: 'a', order: 7 },
      { id: 'b', order: 7 },
    ],
    sent,
  );
  expect(tied.counts.reordered).toBe(0);
  const flags = Flag.Unordered;
  expect(
    compared(
      [
        { id: 'a', order: 1, flags },
        { id: 'b', order: 2, flags },
      ],
      sent,
    ).counts.reordered,
  ).toBe(0);
  expect(
    compared(
      [
        { id: 'a', order: 1 },
        { id: 'b', order: 2 },
      ],
      sent,
    ).counts.reordered,
  ).toBe(1);
});

test('rows that share a key get its records one after the other', () => {
  const rows = [
    { id: 'a', value: '1', order: 1 },
    { id: 'a', value: '2', order: 2 },
  ];
  const both = [
    { id: 'a', value: '1', offset: 0 },
    { id: 'a', value: '2', offset: 1 },
  ];
  expect(nonZero(compared(rows, both))).toEqual({ rows: 2, found: 2 });
  expect(nonZero(compared(rows, both.slice(0, 1)))).toEqual({ rows: 2, found: 1, missing: 1 });
});

test('a compacted topic excuses what a later record of the key has replaced, and nothing else', () => {
  const compacted = { ...PLAIN, compacted: true };
  const rows = ['a', 'b', 'c'].map((id, order) => ({ id, order }));
  expect(nonZero(compared(rows, [{ id: 'c', offset: 9 }], compacted))).toEqual({ rows: 3, found: 1, compacted: 2 });
  // The last of a key stays for ever.
  expect(nonZero(compared(rows, [{ id: 'a', offset: 0 }], compacted))).toMatchObject({ found: 1, missing: 2 });
  const other = { id: 'later', offset: 9 };
  expect(nonZero(compared(rows, [other], compacted))).toEqual({ rows: 3, compacted: 3, strays: 1 });
  const ended = [...rows, { id: 'd', order: 9, value: null }];
  expect(nonZero(compared(ended, [], compacted))).toEqual({ rows: 4, compacted: 4 });
  expect(nonZero(compared(rows, [{ ...other, key: 'another' }], compacted))).toMatchObject({ missing: 3 });
});

test('what retention has removed, and what may be on its way, is not called missing', () => {
  const cut = { compacted: false, expiredBeforeMs: [1_000] };
  const rows = [
    { id: 'old', order: 1, createdMs: 999 },
    { id: 'lost', order: 2, createdMs: 1_000 },
    { id: 'young', order: 3, createdMs: 5_000 },
    { id: 'without a time', order: 4, createdMs: NaN },
  ];
  expect(nonZero(compared(rows, [], cut, 5_000))).toEqual({ rows: 4, expired: 1, undelivered: 1, missing: 2 });
});

test('a replay counts as delivery where nothing else is left, and never as duplicate', () => {
  const rows = [{ id: 'a', order: 1 }];
  const replay = { id: 'a', offset: 5, flags: Flag.Replayed };
  expect(nonZero(compared(rows, [replay]))).toEqual({ rows: 1, found: 1, replayed: 1 });
  expect(nonZero(compared(rows, [{ id: 'a', offset: 0 }, replay]))).toEqual({ rows: 1, found: 1, replayed: 1 });
  expect(nonZero(compared(rows, [{ ...replay, value: 'x' }]))).toMatchObject({ altered: 1 });
});

test('any deliveries: counted as a plain model counts them, in memory and by the file', () => {
  const event = fc.record({ row: fc.nat(11), alter: fc.integer({ min: 0, max: 9 }) });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), (events) => {
      const rows = Array.from({ length: 12 }, (_, n) => ({ id: `row-${n}`, key: `k${n % 3}`, order: n }));
      const sent = events.map(({ row, alter }, offset) => {
        const { id, key } = rows[row];
        return { id, key, offset, value: alter === 0 ? 'other' : id };
      });
      const first = rows.map(({ id }) => sent.findIndex((each) => each.id === id));
      const reordered = rows.filter(
        (_, n) => first[n] >= 0 && rows.some((_row, m) => m < n && m % 3 === n % 3 && first[m] > first[n]),
      ).length;
      const { counts } = compared(rows, sent);
      const found = first.filter((at) => at >= 0).length;
      const altered = rows.filter(({ id }) => sent.some((each) => each.id === id && each.value === 'other')).length;
      expect(counts).toMatchObject({ rows: 12, found, missing: 12 - found, duplicates: sent.length - found });
      expect(counts).toMatchObject({ altered, reordered, strays: 0 });
    }),
    { numRuns: 200 },
  );
});

test('buckets give back what they were given, also what went through the file', () => {
  const spill = new SpillFile();
  const buckets = new Buckets(spill, 12, 4);
  const entry = Buffer.alloc(12);
  const count = 40_000;
  for (let n = 0; n < count; n++) {
    entry.writeUInt32BE(n, 4);
    buckets.add(n % 4, entry);
  }
  expect(spill.bytes).toBeGreaterThan(0);
  for (let bucket = 0; bucket < 4; bucket++) {
    const all = buckets.take(bucket);
    expect(all.length).toBe((count / 4) * 12);
    for (let i = 0; i < count / 4; i++) {
      if (all.readUInt32BE(i * 12 + 4) !== i * 4 + bucket) throw new Error(`entry ${i} of bucket ${bucket}`);
    }
    expect(buckets.take(bucket)).toHaveLength(0);
  }
  spill.close();
});

test('what cannot be written down ends it with the reason of the system', () => {
  vi.stubEnv('TMPDIR', '/proc/nowhere');
  onTestFinished(() => void vi.unstubAllEnvs());
  const full = (): unknown => new SpillFile().write(Buffer.alloc(1));
  expect(full).toThrow(SpillError);
  expect(full).toThrow(expect.objectContaining({ code: 'ENOENT' }));
});
