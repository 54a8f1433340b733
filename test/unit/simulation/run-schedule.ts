import type { Plan, PlannedRow, Write } from './plan.ts';
import { simulate } from './simulate.ts';
import type { TableRow } from './table.ts';
import { Broken } from './watch.ts';
import type { World } from './world.ts';

/** Aggregates by index: A and E share a partition until the topic grows, C has another, P is of another topic. */
export const A = row(0);
export const E = row(1);
export const C = row(2);
export const P = row(3);

/** When the first relay has delivered what there was and the tail flows, if nothing is in its way. */
export const FLOWING_MS = 100;

function row(aggregate: number): PlannedRow {
  return { aggregate, delayMs: 0, valueBytes: 10, poison: null };
}

/** Refused so often when it comes alone. */
export function refused(of: PlannedRow, times = 1): PlannedRow {
  return { ...of, poison: { code: 'CORRUPT_MESSAGE', times } };
}

export function delayed(of: PlannedRow, delayMs: number): PlannedRow {
  return { ...of, delayMs };
}

export function commit(afterMs: number, rows: readonly PlannedRow[], more: Partial<Write> = {}): Write {
  return { afterMs, kind: 'plain', rows, idsBefore: 0, visibleAfterMs: 0, ...more };
}

export function planOf(plan: Partial<Plan>): Plan {
  return {
    mode: 'tail',
    retire: 'mark',
    delaysMs: [],
    seed: 1,
    startMs: 0,
    onExhausted: 'release',
    hasDeadLetters: false,
    sizes: { batchRecords: 4, flushRows: 4, sweepRows: 4, poolBuffers: 8 },
    writes: [],
    faults: [],
    ...plan,
  };
}

/** What came of a schedule. Rows by their numbers, in commit order. */
export interface Outcome {
  readonly world: World;
  /** First deliveries in their order, without the last rows that each schedule ends with. */
  readonly order: readonly number[];
  /** Rows that went by the sweep. */
  readonly swept: readonly number[];
  readonly deliveries: readonly number[];
  readonly lines: readonly string[];
  /** A line of the relay's log, or of what happened, has this in it. */
  readonly says: (text: string) => boolean;
}

/** Runs a schedule; throws what was broken, and all that happened before. */
export async function runSchedule(plan: Partial<Plan>): Promise<Outcome> {
  const lines: string[] = [];
  const whole = planOf(plan);
  let world: World;
  try {
    world = await simulate(whole, (line) => lines.push(line()));
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    throw new Broken([error.message, ...lines].join('\n'));
  }
  const planned = world.server.rows.filter(({ entry }) => whole.writes.length > 0 && !isLast(world, entry.index));
  const { watch } = world;
  const isPlanned = (row: TableRow): boolean => planned.includes(row);
  return {
    world,
    order: watch.order.filter(isPlanned).map(({ number }) => number),
    swept: [...watch.swept].filter(isPlanned).map(({ number }) => number),
    deliveries: planned.map((row) => watch.deliveries(row)),
    lines,
    says: (text) => lines.some((line) => line.includes(text)),
  };
}

/** Of the rows that the simulation itself commits at the end. */
function isLast(world: World, entry: number): boolean {
  return world.plan.mode === 'tail' && world.server.log.entries[entry] === world.lastWrite;
}

/** The same schedule with something in it at each of many moments: whichever it hits, everything must hold. */
export async function atEach(
  moments: { readonly from: number; readonly to: number; readonly step: number },
  plan: (atMs: number) => Partial<Plan>,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let atMs = moments.from; atMs <= moments.to; atMs += moments.step) outcomes.push(await runSchedule(plan(atMs)));
  return outcomes;
}
