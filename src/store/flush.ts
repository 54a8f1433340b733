import { RelayError } from '../model/fault.ts';
import type { Checkpoint } from '../model/position.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { Settings } from '../model/settings.ts';
import type { FlushRequest, Leader, ParkedChanges, RetireRows } from '../model/store.ts';
import type { OffsetsRow } from './offsets-row.ts';
import { OutboxRetirement } from './outbox-retirement.ts';
import type { ParkedTable } from './parked-table.ts';
import { DEADLOCK_TRIES, isLockWait, rollBack } from './relay-transaction.ts';
import { RowLocks } from './row-locks.ts';
import type { Session } from './session.ts';

/**
 * The flush: one transaction whose first statement is the compare-and-set of the offsets row. One lock order for all
 * transactions of the relay, and the tail knows its own transactions by that first statement and skips them.
 */
export class Flush {
  readonly #offsets: OffsetsRow;
  readonly #parked: ParkedTable;
  readonly #retirements: readonly OutboxRetirement[];
  readonly #locks: readonly RowLocks[];

  constructor(settings: Settings, offsets: OffsetsRow, parked: ParkedTable) {
    this.#offsets = offsets;
    this.#parked = parked;
    this.#retirements = settings.outboxes.map((outbox) => new OutboxRetirement(outbox));
    this.#locks = settings.outboxes.map((outbox) => new RowLocks(outbox));
  }

  /** Returns what was saved. Throws a `RelayError`; nothing is changed then, unless the connection died in COMMIT. */
  async run<C extends Checkpoint>(session: Session, leader: Leader, request: FlushRequest<C>): Promise<C | null> {
    let { retire, suspects } = request;
    for (let tries = 1; ; tries++) {
      try {
        return suspects.length === 0
          ? await this.#plain(session, leader, { ...request, retire, suspects })
          : await this.#aroundLocks(session, leader, { ...request, retire, suspects });
      } catch (error) {
        await rollBack(session);
        if (!(error instanceof RelayError)) throw error;
        if (isLockWait(error) && retire.length > 0) {
          // Somebody holds one of these rows, and 1205 does not say which: look at each without waiting.
          suspects = merge(suspects, retire);
          retire = [];
        } else if (error.fault.code !== 'MYSQL_DEADLOCK' || tries === DEADLOCK_TRIES) {
          throw error;
        }
      }
    }
  }

  /** Nobody is known to hold a row: position first, then the rows. */
  async #plain<C extends Checkpoint>(session: Session, leader: Leader, request: FlushRequest<C>): Promise<C | null> {
    const { checkpoint, parked } = fitting(request, []);
    if (checkpoint === null && parked === null && request.retire.length === 0) return null;
    await session.change('flush', 'START TRANSACTION');
    await this.#offsets.save(session, leader, checkpoint, request.high);
    if (parked !== null) await this.#parked.write(session, parked);
    for (const rows of request.retire) await this.#retirements[rows.outbox].retire(session, rows.ids);
    await session.change('flush', 'COMMIT');
    return checkpoint;
  }

  /** Some rows may be held: lock what can be locked, leave the rest, and save the position that fits. */
  async #aroundLocks<C extends Checkpoint>(
    session: Session,
    leader: Leader,
    request: FlushRequest<C>,
  ): Promise<C | null> {
    await session.change('flush', 'START TRANSACTION');
    await this.#offsets.compareAndSet(session, leader);
    const stillHeld: RetireRows[] = [];
    let changed = request.retire.length > 0;
    for (const rows of request.retire) await this.#retirements[rows.outbox].retire(session, rows.ids);
    for (const rows of request.suspects) {
      const { free, held } = await this.#locks[rows.outbox].take(session, rows.ids);
      if (free.length > 0) {
        await this.#retirements[rows.outbox].retire(session, free);
        changed = true;
      }
      if (held.length > 0) stillHeld.push({ outbox: rows.outbox, ids: held });
    }
    const { checkpoint, parked } = fitting(request, stillHeld);
    changed ||= checkpoint !== null || parked !== null;
    if (changed) await this.#offsets.save(session, leader, checkpoint, request.high);
    if (parked !== null) await this.#parked.write(session, parked);
    // While all that is left is held, looking at it leaves no trace in the log.
    await session.change('flush', changed ? 'COMMIT' : 'ROLLBACK');
    return checkpoint;
  }
}

/** Both in one turn of the event loop: nothing is routed or parked between them. */
function fitting<C extends Checkpoint>(
  request: FlushRequest<C>,
  stillHeld: readonly RetireRows[],
): { checkpoint: C | null; parked: ParkedChanges | null } {
  const checkpoint = request.checkpoint(stillHeld);
  const parked = request.parked();
  const isEmpty = parked === null || (parked.put.length === 0 && parked.remove.length === 0);
  return { checkpoint, parked: isEmpty ? null : parked };
}

function merge(a: readonly RetireRows[], b: readonly RetireRows[]): RetireRows[] {
  const merged = new Map<string, { outbox: number; ids: RowId[] }>();
  for (const { outbox, ids } of [...a, ...b]) {
    const kind = `${outbox} ${typeof [...ids][0]}`;
    merged.set(kind, { outbox, ids: [...(merged.get(kind)?.ids ?? []), ...ids] });
  }
  return [...merged.values()].map(({ outbox, ids }) => ({ outbox, ids: rowIds(ids) }));
}
