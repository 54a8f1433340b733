import { fault } from '../../../src/model/fault.ts';
import type { Checkpoint, Position } from '../../../src/model/position.ts';
import { type RowId, rowIds } from '../../../src/model/row-ids.ts';
import type { FlushRequest, Leader, RetireRows } from '../../../src/model/store.ts';
import { SimulatedSweepStore } from './simulated-sweep-store.ts';
import type { TableRow } from './table.ts';

/** A statement waits so long for a lock. */
export const LOCK_WAIT_MS = 50;

/** The flush of acknowledged rows, checkpoint and parked scopes. */
export class SimulatedFlushStore extends SimulatedSweepStore {
  /** The position is chosen first; rows that turn out to be held make it choose again, as often as that takes. */
  async flush<C extends Checkpoint>(leader: Leader, request: FlushRequest<C>): Promise<C | null> {
    const retire = idsOf(request.retire);
    const suspects = idsOf(request.suspects);
    if (suspects.length === 0) {
      const checkpoint = request.checkpoint([]);
      const parked = request.parked();
      if (checkpoint === null && parked === null && retire.length === 0) return null;
      const isDone = await this.server.transact(this.life, leader, 'flush', () => {
        const rows = this.server.rowsOf(retire);
        const isHeld = rows.some((row) => this.isHeldFor(row, LOCK_WAIT_MS));
        this.noteHeld('flush', isHeld);
        if (isHeld) return { rows: [], apply: () => false };
        return { rows, apply: () => this.#flushed(rows, checkpoint, request.high, parked) };
      });
      if (isDone) return checkpoint;
    }
    return this.server.transact(this.life, leader, 'flush', () => {
      if (this.life.state !== 'running') throw fault('MYSQL_UNREACHABLE', 'retry', 'the connection was silent');
      const rows = this.server.rowsOf([...retire, ...suspects]);
      const held = rows.filter((row) => this.server.isHeld(row));
      const free = rows.filter((row) => !this.server.isHeld(row));
      this.noteHeld('flush', held.length > 0);
      const ids = rowIds(held.map(({ id }) => id));
      const stillHeld: RetireRows[] = held.length === 0 ? [] : [{ outbox: 0, ids }];
      const checkpoint = request.checkpoint(stillHeld);
      const parked = request.parked();
      return {
        rows: free,
        apply: () => {
          this.#flushed(free, checkpoint, request.high, parked);
          return checkpoint;
        },
      };
    });
  }

  /** Held, and for longer than a statement waits. A commit that is under way is waited for. */
  protected isHeldFor(row: TableRow, waitMs: number): boolean {
    return row.holders > 0 || row.entry.visibleAtMs > this.server.loop.nowMs + waitMs;
  }

  #flushed(
    rows: readonly TableRow[],
    checkpoint: Checkpoint | null,
    high: Position,
    parked: ReturnType<FlushRequest<Checkpoint>['parked']>,
  ): boolean {
    for (const row of rows) if (row.status === 'pending') this.server.published(row);
    this.server.save(checkpoint, high);
    for (const entry of parked?.put ?? []) this.server.park(entry);
    for (const scope of parked?.remove ?? []) this.server.unpark(scope);
    return true;
  }
}

function idsOf(retire: readonly RetireRows[]): RowId[] {
  return retire.flatMap(({ ids }) => [...ids]);
}
