import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AckWindow } from '../../../src/delivery/ack-window.ts';
import { AckedRows } from '../../../src/delivery/acked-rows.ts';
import type { Batch } from '../../../src/delivery/batch.ts';
import { BufferPool } from '../../../src/delivery/buffer-pool.ts';
import { parseGtidSet } from '../../../src/delivery/gtid-set.ts';
import { Lane } from '../../../src/delivery/lane.ts';
import { type HeldRow, RetirePlan } from '../../../src/delivery/retire-plan.ts';
import type { Checkpoint, Position } from '../../../src/model/position.ts';
import type { RetireRows } from '../../../src/model/store.ts';
import { madeRow } from './rows.ts';

const SID = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
const LANES = 3;

type Step =
  | { readonly do: 'commit'; readonly lanes: readonly number[]; readonly valueBytes: number }
  | { readonly do: 'foreign'; readonly worthSaving: boolean }
  | { readonly do: 'send'; readonly lane: number }
  | { readonly do: 'ack'; readonly lane: number }
  | { readonly do: 'refuse'; readonly lane: number }
  | { readonly do: 'flush'; readonly take: number; readonly hold: number; readonly fails: boolean }
  | { readonly do: 'crash' };

const lane = fc.nat(LANES - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('commit' as const),
      lanes: fc.array(lane, { minLength: 1, maxLength: 6 }),
      valueBytes: fc.constantFrom(10, 300, 9_000, 30_000, 70_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('foreign' as const), worthSaving: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('send' as const), lane }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('ack' as const), lane }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refuse' as const), lane }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('flush' as const), take: fc.nat(5), hold: fc.nat(3), fails: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'crash' as const }) },
);

/** One committed transaction as the world knows it. */
interface Logged {
  readonly end: number;
  readonly ids: readonly number[];
}

/**
 * The world around the real window, lanes, pool and plans. The log is kept whole, so that after a crash the
 * transactions behind the checkpoint come again, as a binlog would give them.
 */
class World {
  readonly log: Logged[] = [];
  readonly retired = new Set<number>();
  saved: Checkpoint = { position: at(4), gtidSet: '', lastBegin: null, lastGtid: null, lastCommitMicros: null };
  nextId = 1;
  logEnd = 4;
  pool!: BufferPool;
  window!: AckWindow;
  lanes!: Lane[];
  sending!: (Batch | null)[];
  acked!: AckedRows;
  held!: readonly HeldRow[];
  /** Rows that found no room: the source would wait with them. */
  blocked!: boolean;

  constructor() {
    this.restart();
  }

  restart(): void {
    this.pool = new BufferPool(512 * 1024, 64 * 1024);
    this.window = new AckWindow(this.saved, parseGtidSet(this.saved.gtidSet ?? '', 'mysql'));
    this.lanes = Array.from({ length: LANES }, (_, partition) => new Lane('orders', partition, this.pool, [], 4));
    this.sending = Array.from({ length: LANES }, () => null);
    this.acked = new AckedRows();
    this.held = [];
    this.blocked = false;
    for (const transaction of this.log) if (transaction.end > this.saved.position.offset) this.route(transaction, 40);
  }

  route({ end, ids }: Logged, valueBytes: number): void {
    if (this.blocked) return;
    const gno = this.gnoAt(end);
    const transaction = {
      end: at(end),
      beginOffset: this.beginOf(end),
      gtid: { sid: SID, gno },
      commitMicros: end,
      skipped: [],
      rows: notRead,
      pieces: null,
      undecodable: null,
    };
    const number = this.window.open(transaction);
    for (const id of ids) {
      if (!this.lanes[id % LANES].append(madeRow(id, `k${id}`, valueBytes), number, id)) {
        this.blocked = true; // the source waits inside this transaction: it stays open
        return;
      }
      this.window.add(number);
    }
    this.window.routed(number);
  }

  /** Where the transaction that ends there begins. */
  beginOf(end: number): number {
    return this.log[this.gnoAt(end) - 2]?.end ?? 4;
  }

  gnoAt(end: number): number {
    return this.log.findIndex((transaction) => transaction.end === end) + 1;
  }
}

function at(offset: number): Position {
  return { file: 'binlog.000001', offset };
}

function notRead(): never {
  throw new Error('rows are routed by the test');
}

function run(world: World, step: Step): void {
  switch (step.do) {
    case 'commit': {
      world.logEnd += 100;
      const ids = step.lanes.map((lane) => {
        while (world.nextId % LANES !== lane) world.nextId++;
        return world.nextId++;
      });
      const logged = { end: world.logEnd, ids };
      world.log.push(logged);
      world.route(logged, step.valueBytes);
      return;
    }
    case 'foreign':
      world.logEnd += 10;
      world.log.push({ end: world.logEnd, ids: [] });
      if (!world.blocked) {
        const gno = world.log.length;
        const end = world.logEnd;
        const last = { end: at(end), beginOffset: world.beginOf(end), gtid: { sid: SID, gno }, commitMicros: end };
        const skipped = [{ sid: SID, first: gno, last: gno }];
        world.window.reached({ reached: at(end), last, skipped, worthSaving: step.worthSaving });
      }
      return;
    case 'send':
      world.sending[step.lane] ??= world.lanes[step.lane].next();
      return;
    case 'ack': {
      if (world.sending[step.lane] === null) return;
      world.acked.add(world.lanes[step.lane].acked());
      world.sending[step.lane] = null;
      return;
    }
    case 'refuse':
      return; // the batch stays on its way: the sender repeats it
    case 'flush':
      flush(world, step.take, step.hold, step.fails);
      return;
    case 'crash':
      world.restart();
  }
}

/** As the flusher and the store do it together: fit once or twice, then all or nothing. */
function flush(world: World, take: number, hold: number, fails: boolean, tailGoesOn = true): void {
  const plan = new RetirePlan(world.window, world.acked.take(take + 1), world.held, [true]);
  const all = [...plan.fresh, ...plan.suspects].flatMap((rows) => [...rows.ids]);
  const stillHeld: RetireRows[] =
    hold === 0 || all.length === 0 ? [] : [{ outbox: 0, ids: BigUint64Array.from(all.slice(0, hold)) }];
  // A first try that met other locks and was rolled back.
  if (fails && all.length > 0) plan.fit([{ outbox: 0, ids: BigUint64Array.from(all.slice(-2)) }]);
  const checkpoint = plan.fit(stillHeld);
  const heldIds = new Set(stillHeld.flatMap((rows) => [...rows.ids]).map(Number));
  for (const id of all) if (!heldIds.has(Number(id))) world.retired.add(Number(id));
  world.held = plan.stillHeld;
  expect(world.held.map((row) => Number(row.id)).sort()).toEqual([...heldIds].sort());
  if (checkpoint === null) return;
  check(world, checkpoint);
  if (tailGoesOn) {
    run(world, { do: 'foreign', worthSaving: fails });
    run(world, { do: 'commit', lanes: [0], valueBytes: 10 });
  }
  world.window.committed(checkpoint);
  world.saved = { ...checkpoint };
}

function check(world: World, next: Checkpoint): void {
  expect(next.position.offset).toBeGreaterThanOrEqual(world.saved.position.offset);
  const ends = [4, ...world.log.map((transaction) => transaction.end)];
  expect(ends).toContain(next.position.offset);
  for (const { end, ids } of world.log) {
    if (end > next.position.offset) continue;
    for (const id of ids) expect(world.retired, `row ${id} is behind the checkpoint and not retired`).toContain(id);
  }
  const through = world.log.filter((transaction) => transaction.end <= next.position.offset).length;
  const expected = through === 0 ? '' : through === 1 ? `${SID}:1` : `${SID}:1-${through}`;
  expect(next.gtidSet).toBe(expected);
  if (through === 0) return;
  const end = next.position.offset;
  expect(next.lastBegin).toEqual(at(world.beginOf(end)));
  expect(next).toMatchObject({ lastGtid: `${SID}:${through}`, lastCommitMicros: end });
}

describe('checkpoint, lanes and pool under random schedules', () => {
  test('the checkpoint never passes an unsettled row, never lies inside a transaction, never goes back', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const world = new World();
        for (const step of steps) run(world, step);
      }),
      { numRuns: 1_000 },
    );
  });

  test('when everything is acknowledged the pool has all its buffers back and the checkpoint is at the end', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const world = new World();
        for (const step of steps) run(world, step);
        if (world.blocked) world.restart();
        for (let round = 0; round < 500; round++) {
          for (let lane = 0; lane < LANES; lane++) {
            run(world, { do: 'send', lane });
            run(world, { do: 'ack', lane });
          }
        }
        flush(world, world.acked.count, 0, false, false);
        if (world.blocked) return; // the log does not fit the pool at once; a source would have gone on
        expect(world.pool.takenBytes).toBe(0);
        expect(world.lanes.every((lane) => lane.isEmpty)).toBe(true);
        expect(world.window.openTransactions).toBe(0);
      }),
      { numRuns: 300 },
    );
  });
});
