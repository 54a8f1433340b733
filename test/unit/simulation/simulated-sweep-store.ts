import type { Position } from '../../../src/model/position.ts';
import type { RowCursor } from '../../../src/model/row.ts';
import type { RowId } from '../../../src/model/row-ids.ts';
import type { Candidate, Leader, Outcome, RowFailure, SweepCursor, SweepPage } from '../../../src/model/store.ts';
import type { Life } from './life.ts';
import type { Call } from './plan.ts';
import type { Server } from './server.ts';
import { cursorOf, scopeKeyOf, type TableRow } from './table.ts';

/** What the sweep asks of MySQL. Plain reads show what is committed and visible; claims wait for nobody. */
export class SimulatedSweepStore {
  protected readonly server: Server;
  protected readonly life: Life;
  readonly #hasLog: boolean;

  constructor(server: Server, life: Life, hasLog: boolean) {
    this.server = server;
    this.life = life;
    this.#hasLog = hasLog;
  }

  logEnd(): Promise<Position | null> {
    return this.life.ask('log end', () => (this.#hasLog ? this.server.log.head().position : null));
  }

  dueRows(_outbox: number, after: SweepCursor | null, limit: number): Promise<SweepPage> {
    return this.life.ask('look', () => {
      const { rows, next } = this.#page(after, limit, byDueTime, () => true);
      return { rows: rows.map(candidateOf), next };
    });
  }

  dueIds(
    _outbox: number,
    after: SweepCursor | null,
    limit: number,
    key: Buffer | null,
  ): Promise<{ readonly ids: readonly RowId[]; readonly next: SweepCursor | null }> {
    return this.life.ask('look', () => {
      const { rows, next } = this.#page(after, limit, byId, (row) => key === null || scopeKeyOf(row).equals(key));
      return { ids: rows.map(({ id }) => id), next };
    });
  }

  candidates(_outbox: number, ids: readonly RowId[]): Promise<readonly Candidate[]> {
    return this.life.ask('look', () =>
      this.server
        .rowsOf(ids)
        .filter((row) => this.server.isDue(row))
        .map(candidateOf),
    );
  }

  nextDueMs(): Promise<number | null> {
    return this.life.ask('look', () => {
      const { nowMs } = this.server.loop;
      const later = this.server.rows
        .filter(({ entry, status, availableAtMs }) => entry.isVisible && status === 'pending' && availableAtMs > nowMs)
        .map(({ availableAtMs }) => availableAtMs);
      return later.length === 0 ? null : Math.min(...later) - nowMs;
    });
  }

  claim(
    leader: Leader,
    _outbox: number,
    ids: readonly RowId[],
  ): Promise<{ readonly claimed: readonly RowId[]; readonly locked: readonly RowId[] }> {
    return this.server.transact(this.life, leader, 'claim', () => {
      const wanted = this.server.rowsOf(ids).filter((row) => this.server.isDue(row));
      const locked = wanted.filter((row) => this.server.isHeld(row));
      const rows = wanted.filter((row) => !this.server.isHeld(row));
      return {
        rows,
        apply: () => {
          for (const row of rows) {
            row.status = 'processing';
            row.claimedBy = leader.epoch;
          }
          return { claimed: rows.map(({ id }) => id), locked: locked.map(({ id }) => id) };
        },
      };
    });
  }

  claimedRows(leader: Leader, _outbox: number, ids: readonly RowId[]): Promise<RowCursor> {
    return this.life.ask('claimed rows', () =>
      cursorOf(this.server.rowsOf(ids).filter((row) => isClaimedBy(row, leader))),
    );
  }

  writeBack(leader: Leader, _outbox: number, outcome: Outcome): Promise<Outcome> {
    return this.server.transact(this.life, leader, 'write back', () => {
      const isHeld = (id: RowId): boolean => this.server.rowsOf([id]).some((row) => this.server.isHeld(row));
      const ours = (ids: readonly RowId[]): TableRow[] =>
        this.server.rowsOf(ids).filter((row) => isClaimedBy(row, leader) && !this.server.isHeld(row));
      const published = ours(outcome.published);
      const back = ours(outcome.back);
      const failures = outcome.failures.filter(({ id }) => ours([id]).length === 1);
      const rest: Outcome = {
        published: outcome.published.filter(isHeld),
        back: outcome.back.filter(isHeld),
        failures: outcome.failures.filter(({ id }) => isHeld(id)),
      };
      this.noteHeld('write back', rest.published.length > 0);
      return {
        rows: [...published, ...back, ...this.server.rowsOf(failures.map(({ id }) => id))],
        apply: () => {
          for (const row of published) this.server.published(row);
          for (const row of back) this.setPending(row);
          for (const failure of failures) this.account(this.server.row(failure.id)!, failure);
          return rest;
        },
      };
    });
  }

  protected noteHeld(call: Call, isHeld: boolean): void {
    if (isHeld) this.life.held.add(call);
    else this.life.held.delete(call);
  }

  protected account(row: TableRow, { as, error }: RowFailure): void {
    row.attempts++;
    row.lastError = error;
    row.claimedBy = null;
    row.status = as;
  }

  protected setPending(row: TableRow): void {
    row.status = 'pending';
    row.claimedBy = null;
  }

  /** Rows that are pending and due, behind the last one of the page before. */
  #page(
    after: SweepCursor | null,
    limit: number,
    order: (a: TableRow, b: TableRow) => number,
    isWanted: (row: TableRow) => boolean,
  ): { rows: TableRow[]; next: SweepCursor | null } {
    const last = (after as unknown as { row: TableRow } | null)?.row;
    const behind = this.server.rows
      .filter((row) => this.server.isDue(row) && isWanted(row) && (last === undefined || order(last, row) < 0))
      .sort(order);
    const rows = behind.slice(0, limit);
    const next = rows.length < behind.length ? ({ row: rows.at(-1) } as unknown as SweepCursor) : null;
    return { rows, next };
  }
}

function isClaimedBy(row: TableRow, leader: Leader): boolean {
  return row.status === 'processing' && row.claimedBy === leader.epoch;
}

export function candidateOf(row: TableRow): Candidate {
  const { id, topic, attempts, value } = row;
  return { outbox: 0, id, topic, key: scopeKeyOf(row), attempts, bytes: value.length };
}

function byId(a: TableRow, b: TableRow): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

function byDueTime(a: TableRow, b: TableRow): number {
  return a.availableAtMs - b.availableAtMs || byId(a, b);
}
