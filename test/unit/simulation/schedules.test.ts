import { describe, expect, test, vi } from 'vitest';
import type { Plan } from './plan.ts';
import { A, atEach, C, commit, delayed, E, FLOWING_MS, P, refused, runSchedule } from './run-schedule.ts';

vi.setConfig({ testTimeout: 60_000 });

/** One row in a batch, one batch at a time: what lies behind another can be seen. */
const ONE_BY_ONE = { batchRecords: 1, flushRows: 4, sweepRows: 4, poolBuffers: 8 };

describe('rows that the tail cannot give', () => {
  test('S5: a row of a statement, then an ordinary one of its aggregate', async () => {
    const { order, swept } = await runSchedule({
      writes: [commit(FLOWING_MS, [A], { kind: 'undecodable' }), commit(0, [A])],
    });
    expect(order).toEqual([0, 1]);
    expect(swept).toContain(0);
  });

  test('S7, M11: rows around the moment of the first start, visible only later', async () => {
    const outcomes = await atEach({ from: 0, to: 40, step: 1 }, (afterMs) => ({
      writes: [commit(afterMs, [A], { visibleAfterMs: 300 }), commit(1, [A]), commit(20, [A])],
    }));
    for (const { order } of outcomes) expect(order).toEqual([0, 1, 2]);
  });

  test('S11: a start with rows pending, more of the same aggregates coming', async () => {
    const { order, deliveries } = await runSchedule({
      startMs: 200,
      sizes: { ...ONE_BY_ONE, sweepRows: 1 },
      writes: Array.from({ length: 12 }, () => commit(25, [A])),
    });
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(deliveries).toEqual(Array(12).fill(1));
  });
});

describe('retries', () => {
  test('S8, S9: a row that is refused for a while keeps its siblings behind it, in the batch and in the lane', async () => {
    for (const batchRecords of [1, 2, 4]) {
      const { order, deliveries, world } = await runSchedule({
        sizes: { ...ONE_BY_ONE, batchRecords },
        writes: [commit(FLOWING_MS, [refused(A, 2), A, A, E]), commit(5, [A])],
      });
      expect(order).toEqual([3, 0, 1, 2, 4]);
      expect(deliveries).toEqual([1, 1, 1, 1, 1]);
      expect(world.watch.everParked).toContain("orders 'agg-a'");
    }
  });

  test('S10: the last rows of a pair are claimed and their send fails while more come', async () => {
    const outcomes = await atEach({ from: 100, to: 260, step: 8 }, (atMs) => ({
      sizes: ONE_BY_ONE,
      writes: [commit(FLOWING_MS, [refused(A, 2), A]), ...Array.from({ length: 12 }, () => commit(13, [A]))],
      faults: [{ kind: 'partition', atMs, forMs: 60, topic: 0, partition: 0, how: 'refused' }],
    }));
    for (const { order, deliveries } of outcomes) {
      expect(order).toEqual(deliveries.map((_, number) => number));
      expect(deliveries).toEqual(deliveries.map(() => 1));
    }
  });

  test('S10: rows routed and not visible while their pair is handed over', async () => {
    const outcomes = await atEach({ from: 0, to: 120, step: 10 }, (afterMs) => ({
      writes: [commit(FLOWING_MS, [refused(A)]), commit(afterMs, [A], { visibleAfterMs: 150 }), commit(5, [A])],
      faults: [{ kind: 'slow', atMs: FLOWING_MS, forMs: 400, call: 'barrier', byMs: 60 }],
    }));
    for (const { order } of outcomes) expect(order).toEqual([0, 1, 2]);
  });

  test('S10: a key that always has a row pending leaves the sweep all the same', async () => {
    const { swept, deliveries } = await runSchedule({
      sizes: { batchRecords: 40, flushRows: 40, sweepRows: 40, poolBuffers: 64 },
      writes: [commit(FLOWING_MS, [refused(A)]), ...Array.from({ length: 80 }, () => commit(5, [A]))],
    });
    expect(deliveries).toEqual(Array(81).fill(1));
    expect(swept).not.toContain(80);
  });

  test.each(['plain', 'undecodable'] as const)(
    'S10: a row that has failed for good blocks its pair until somebody acts, whenever the relay dies (%s)',
    async (kind) => {
      const failing = { ...A, poison: { code: 'MESSAGE_TOO_LARGE', times: Infinity } } as const;
      const outcomes = await atEach({ from: 101, to: 150, step: 1 }, (atMs) => ({
        onExhausted: 'block',
        writes: [commit(FLOWING_MS, [failing, A, C], { kind }), commit(60, [A])],
        faults: [{ kind: 'crash', atMs, downMs: 0 }],
      }));
      for (const { order } of outcomes) expect(order.filter((number) => number !== 2)).toEqual([0, 1, 3]);
    },
  );
});

test('S10: a row fails in the tail just when everything is parked, whenever the relay dies: it blocks its pair', async () => {
  const failing = { ...A, poison: { code: 'MESSAGE_TOO_LARGE', times: Infinity } } as const;
  // So soon that the table still has everything parked from the start: the next leader does not send the row again.
  const outcomes = await atEach({ from: 31, to: 80, step: 1 }, (atMs) => ({
    onExhausted: 'block',
    writes: [commit(30, [failing], { visibleAfterMs: 2 }), commit(0, [C], { kind: 'undecodable' }), commit(400, [A])],
    faults: [{ kind: 'crash', atMs, downMs: 0 }],
  }));
  for (const { order } of outcomes) expect(order.filter((number) => number !== 1)).toEqual([0, 2]);
});

describe('deaths', () => {
  test('S12: a claimed row of a dead leader, and one of its aggregate by the tail', async () => {
    const outcomes = await atEach({ from: 105, to: 190, step: 5 }, (atMs) => ({
      writes: [commit(FLOWING_MS, [A, A], { kind: 'undecodable' }), commit(100, [A])],
      faults: [
        { kind: 'slow', atMs: FLOWING_MS, forMs: 100, call: 'claimed rows', byMs: 60 },
        { kind: 'crash', atMs, downMs: 0 },
      ],
    }));
    for (const { order } of outcomes) expect(order).toEqual([0, 1, 2]);
    expect(outcomes.some(({ says }) => says('claims-released'))).toBe(true);
  });

  test.each<[string, Partial<Plan>]>([
    ['with another behind it', { writes: [commit(FLOWING_MS, [A, A], { kind: 'undecodable' })] }],
    ['alone', { writes: [commit(FLOWING_MS, [A], { kind: 'undecodable' })] }],
    ['alone, under no scope', { writes: [commit(FLOWING_MS, [delayed(A, 2)])] }],
    ['with another behind it, no log', { mode: 'sweep', writes: [commit(FLOWING_MS, [A, A])] }],
  ])(
    'S12: the application holds a claimed row of a dead leader, and its aggregate waits for it: %s',
    async (_, plan) => {
      const first = plan.writes!;
      const outcomes = await atEach({ from: 105, to: 600, step: 15 }, (atMs) => ({
        ...plan,
        writes: [...first, commit(700, [A, C]), commit(2_000, [C, P, A])],
        faults: [
          { kind: 'slow', atMs: FLOWING_MS, forMs: 600, call: 'claimed rows', byMs: 60 },
          { kind: 'hold', atMs: atMs - 2, forMs: 30_000, row: 0 },
          { kind: 'crash', atMs, downMs: 0 },
        ],
      }));
      // Its rows may have been sent before the leader died.
      const held = outcomes.filter(({ order, says }) => says('claims-held') && order[0] !== 0);
      expect(held.length).toBeGreaterThan(3);
      const ofA = first[0].rows.length;
      for (const { order } of held) {
        expect(order.slice(0, 3)).toEqual([ofA + 1, ofA + 2, ofA + 3]);
        expect(order.slice(3)).toEqual([...first[0].rows.keys(), ofA, ofA + 4]);
      }
    },
  );

  test('what was sent and deleted of half a transaction is not told as missing, whenever the log is purged', async () => {
    const outcomes = await atEach({ from: FLOWING_MS, to: FLOWING_MS + 40, step: 1 }, (atMs) => ({
      retire: 'delete',
      sizes: { batchRecords: 1, flushRows: 1, sweepRows: 1, poolBuffers: 4 },
      writes: [commit(FLOWING_MS, [A, A, A], { kind: 'pieces' })],
      faults: [{ kind: 'purge', atMs }],
    }));
    expect(outcomes.some(({ says }) => says('sent-rows-compared'))).toBe(true);
    expect(outcomes.some(({ says }) => says('sent-rows-missing'))).toBe(false);
  });

  test('M9: a pair parked inside everything is written before everything is released', async () => {
    const outcomes = await atEach({ from: 105, to: 260, step: 3 }, (atMs) => ({
      writes: [commit(FLOWING_MS, [refused(A, 3)], { kind: 'undecodable' }), commit(300, [A])],
      faults: [{ kind: 'crash', atMs, downMs: 0 }],
    }));
    for (const { order } of outcomes) expect(order).toEqual([0, 1]);
  });
});

describe('lanes', () => {
  test('S20: a partition that takes nothing is parked; the others flow and the checkpoint passes', async () => {
    const others = Array.from({ length: 20 }, () => commit(150, [C]));
    const { order, deliveries, world } = await runSchedule({
      writes: [commit(FLOWING_MS, [A, E]), ...others, commit(0, [A])],
      faults: [
        { kind: 'partition', atMs: 50, forMs: 5_000, topic: 0, partition: 0, how: 'refused' },
        { kind: 'crash', atMs: 4_000, downMs: 0 },
      ],
    });
    expect(world.watch.everParked).toContain('orders/0');
    expect(order.slice(0, 20)).toEqual(others.map((_, index) => index + 2));
    // The checkpoint had passed what was parked: nothing is sent again after the crash.
    expect(deliveries).toEqual(deliveries.map(() => 1));
  });

  test('S13, M10: the topic grows while one of its partitions is parked, and its keys move', async () => {
    const { order, world, says } = await runSchedule({
      writes: [commit(FLOWING_MS, [E]), commit(40_000, [E]), commit(60_000, [E]), commit(10, [E])],
      faults: [
        { kind: 'partition', atMs: 50, forMs: 60_000, topic: 0, partition: 0, how: 'refused' },
        { kind: 'grow', atMs: 1_000 },
      ],
    });
    expect(order).toEqual([0, 1, 2, 3]);
    expect(world.watch.everParked).toContain('orders/0');
    expect(says('topic-grown')).toBe(true);
  });

  test.each([
    { kind: 'crash', atMs: 4_000, downMs: 0 },
    { kind: 'lock', atMs: 4_000 },
  ] as const)('M10: the next leader finds more partitions than the parked one is of ($kind)', async (end) => {
    const { order, says } = await runSchedule({
      writes: [commit(FLOWING_MS, [E]), commit(5_000, [E])],
      faults: [
        { kind: 'partition', atMs: 50, forMs: 7_000, topic: 0, partition: 0, how: 'refused' },
        { kind: 'grow', atMs: 3_000 },
        end,
      ],
    });
    expect(order).toEqual([0, 1]);
    expect(says('scope-released {"scope":"topic","topic":"orders"')).toBe(true);
  });

  test('M8: a batch that is appended and never acknowledged, its lane given up', async () => {
    // The pass begins with another row than the batch that the broker knows: it must not pass for that one.
    const outcomes = await atEach({ from: 5, to: 305, step: 50 }, (afterMs) => ({
      sizes: { ...ONE_BY_ONE, sweepRows: 1 },
      writes: [commit(FLOWING_MS, [A]), commit(afterMs, [E], { idsBefore: 1 }), commit(2_000, [A])],
      faults: [{ kind: 'partition', atMs: 50, forMs: 4_000, topic: 0, partition: 0, how: 'unanswered' }],
    }));
    for (const { order, world } of outcomes) {
      expect(order.filter((number) => number !== 1)).toEqual([0, 2]);
      expect(world.watch.everParked).toContain('orders/0');
    }
  });

  test('S20: rows behind the checkpoint that were marked are not sent again by the next leader', async () => {
    const { deliveries } = await runSchedule({
      writes: [commit(FLOWING_MS, [A]), ...Array.from({ length: 5 }, () => commit(20, [C]))],
      faults: [
        { kind: 'partition', atMs: 50, forMs: 2_000, topic: 0, partition: 0, how: 'refused' },
        { kind: 'crash', atMs: 350, downMs: 0 },
      ],
    });
    expect(deliveries).toEqual([1, 1, 1, 1, 1, 1]);
  });
});
