import { type Clock, pause } from '../model/clock.ts';
import { type RowId } from '../model/row-ids.ts';
import type { Session } from '../store/session.ts';
import type { PublishedRows } from './published-rows.ts';

/** Rows looked at, and so removed at most, in one step. */
export const CHUNK_ROWS = 1_000;

/** How a transaction is made around `work`; null from it: nothing to be kept. */
export type Transaction = (session: Session, work: () => Promise<number | null>) => Promise<number | null>;

/** One step of a walk. */
export interface Step {
  readonly removed: number;
  /** Old, and held by somebody else: left for a later walk. */
  readonly held: number;
  /** Rows that will be old one day. */
  readonly young: number;
  /** Where the next step begins; null at the end of the table. */
  readonly last: RowId | null;
}

export interface WalkOptions {
  readonly rows: PublishedRows;
  readonly from: RowId | null;
  /** Null: only count. */
  readonly transaction: Transaction | null;
  readonly afterMs: number;
  readonly clock: Clock;
  /** Ends the walk behind the step that is under way. */
  readonly signal: AbortSignal;
}

/**
 * Walks an outbox by its primary key and removes what is old, a small transaction a step. Between two steps it rests as
 * long as the step took, so that it never takes more than half of what one connection can do.
 */
export async function* walk(
  use: <T>(work: (session: Session) => Promise<T>) => Promise<T>,
  options: WalkOptions,
): AsyncGenerator<Step> {
  const { rows, afterMs, clock, signal } = options;
  let from = options.from;
  while (!signal.aborted) {
    const startedMs = clock.nowMs();
    const at = from;
    const step = await use(async (session) => {
      const before = await rows.before(session, afterMs);
      return before === null ? null : takeStep(session, options, at, before);
    });
    if (step === null) return;
    yield step;
    if (step.last === null) return;
    from = step.last;
    await pause(clock, clock.nowMs() - startedMs, signal);
  }
}

async function takeStep(
  session: Session,
  { rows, transaction }: WalkOptions,
  from: RowId | null,
  before: string,
): Promise<Step> {
  const { old, young, last } = await rows.look(session, from, before, CHUNK_ROWS);
  if (old.length === 0) return { removed: 0, held: 0, young, last };
  if (transaction === null) return { removed: old.length, held: 0, young, last };
  const removed = await transaction(session, async () => {
    const count = await rows.remove(session, old, before);
    return count === 0 ? null : count;
  });
  return { removed: removed ?? 0, held: old.length - (removed ?? 0), young, last };
}
