import { type Fault, fault } from '../../../src/model/fault.ts';
import type { ParkedEntry } from '../../../src/model/parked.ts';
import type { Checkpoint, Position } from '../../../src/model/position.ts';
import type { Field } from '../../../src/model/row.ts';
import type { RowId } from '../../../src/model/row-ids.ts';
import type {
  Candidate,
  FoundRows,
  Leader,
  NewBeginning,
  ReleasedClaims,
  RowFailure,
  SavedOffsets,
  ServerFacts,
} from '../../../src/model/store.ts';
import type { Call } from './plan.ts';
import type { Leadership } from './leadership.ts';
import type { Life } from './life.ts';
import { type OwnChange, type Server, SERVER_UUID } from './server.ts';
import { purged } from './simulated-source.ts';
import { LOCK_WAIT_MS, SimulatedFlushStore } from './simulated-flush.ts';
import { candidateOf } from './simulated-sweep-store.ts';
import { cursorOf, headerId, type TableRow, textField } from './table.ts';

/** MySQL as one process of the relay sees it. */
export class SimulatedStore extends SimulatedFlushStore {
  readonly #leadership: Leadership;

  constructor(server: Server, life: Life, leadership: Leadership, hasLog: boolean) {
    super(server, life, hasLog);
    this.#leadership = leadership;
  }

  serverFacts(): Promise<ServerFacts> {
    return this.life.ask('other', () => ({
      version: '8.4.0',
      flavour: 'mysql' as const,
      serverUuid: SERVER_UUID,
      gtidMode: false,
    }));
  }

  head(): Promise<Checkpoint> {
    return this.life.ask('other', () => this.server.log.head());
  }

  lead(signal: AbortSignal, onStandby: () => void): Promise<Leader> {
    return this.#leadership.lead(this.life, signal, onStandby);
  }

  isPaused(): Promise<boolean> {
    return this.life.ask('other', () => this.server.pauses > 0);
  }

  rested(leader: Leader): Promise<void> {
    return this.#change(leader, 'other', [], () => undefined);
  }

  saved(): Promise<SavedOffsets | null> {
    return this.life.ask('other', () => this.server.offsets);
  }

  positionFault({ position }: Checkpoint): Promise<Fault | null> {
    const { log } = this.server;
    return this.life.ask('other', () => (log.behind(position) < log.firstIndex ? purged() : null));
  }

  parked(): Promise<readonly ParkedEntry[]> {
    return this.life.ask('other', () =>
      [...this.server.parked.values()].map(({ dueAtMs, ...entry }) => ({
        ...entry,
        dueInMs: dueAtMs === null ? null : Math.max(0, dueAtMs - this.server.loop.nowMs),
      })),
    );
  }

  begin(leader: Leader, { checkpoint, high, parkEverything }: NewBeginning): Promise<void> {
    return this.#change(leader, 'other', [], () => {
      this.server.save(checkpoint, high);
      if (parkEverything === null) return;
      const scope = { kind: 'everything' } as const;
      this.server.park({ scope, partitions: 0, dueInMs: 0, attempts: 1, reason: parkEverything, row: null });
    });
  }

  leaveHistory(): Promise<number> {
    throw new Error('no schedule starts at the head with rows in the table');
  }

  outboxRows(): Promise<{ any: boolean; pending: number | null }> {
    return this.life.ask('other', () => {
      const visible = this.server.rows.filter((row) => row.entry.isVisible && this.server.isThere(row));
      return { any: visible.length > 0, pending: visible.filter(({ status }) => status === 'pending').length };
    });
  }

  barrier(leader: Leader, high: Position | null): Promise<void> {
    return this.#change(leader, 'barrier', [], () => {
      if (high !== null) this.server.save(null, high);
    });
  }

  readRows(_outbox: number, ids: readonly RowId[], dueBeforeMs: number): Promise<FoundRows> {
    return this.life.ask('read rows', () => {
      const rows = this.server.rowsOf(ids);
      // A row that the log shows and SELECT does not is locked by the commit.
      if (rows.some((row) => this.isHeldFor(row, LOCK_WAIT_MS))) {
        throw fault('MYSQL_LOCK_WAIT', 'retry', 'a row is held');
      }
      const due = rows.filter((row) => row.status === 'pending' && row.availableAtMs < dueBeforeMs);
      return { rows: cursorOf(due), gone: ids.filter((id) => this.server.row(id) === undefined) };
    });
  }

  idempotencyKeys(_outbox: number, ids: Iterable<RowId>): Promise<ReadonlyMap<RowId, Field>> {
    return this.life.ask('other', () => {
      const visible = this.server.rowsOf(ids).filter(({ entry }) => entry.isVisible);
      return new Map(visible.map((row) => [row.id, textField(headerId(row))]));
    });
  }

  fail(leader: Leader, failures: readonly RowFailure[]): Promise<readonly RowFailure[]> {
    return this.server.transact(this.life, leader, 'fail', () => {
      const held = failures.filter(({ id }) => this.server.rowsOf([id]).some((row) => this.server.isHeld(row)));
      this.noteHeld('fail', held.length > 0);
      const free = failures.filter((failure) => !held.includes(failure));
      return {
        rows: this.server.rowsOf(free.map(({ id }) => id)),
        apply: () => {
          for (const failure of free) {
            const row = this.server.row(failure.id);
            if (row?.status === 'pending') this.account(row, failure);
          }
          return held;
        },
      };
    });
  }

  releaseClaims(leader: Leader, only: readonly Candidate[] | null): Promise<ReleasedClaims> {
    return this.server.transact(this.life, leader, 'other', (): OwnChange<ReleasedClaims> => {
      const claimed = this.server.rows.filter(({ id, status, claimedBy }) => {
        const isAsked = only === null || only.some((row) => row.id === id);
        return isAsked && status === 'processing' && claimedBy !== leader.epoch;
      });
      const rows = claimed.filter((row) => !this.server.isHeld(row));
      const held = claimed.filter((row) => this.server.isHeld(row)).map(candidateOf);
      return {
        rows,
        apply: () => {
          for (const row of rows) this.setPending(row);
          return { released: rows.length, held };
        },
      };
    });
  }

  isFailed(_outbox: number, id: RowId): Promise<boolean> {
    return this.life.ask('other', () => this.server.row(id)?.status === 'failed');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #change(leader: Leader, call: Call, rows: readonly TableRow[], apply: () => void): Promise<void> {
    return this.server.transact(this.life, leader, call, () => ({ rows, apply }));
  }
}
