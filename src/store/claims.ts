import { fault } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { type RowId, type RowIds, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { Leader, Outcome } from '../model/store.ts';
import { IdLiterals, idOf, statements } from './id-literals.ts';
import type { OffsetsRow } from './offsets-row.ts';
import { isLockWait, relayTransaction } from './relay-transaction.ts';
import type { RowChanges } from './row-changes.ts';
import type { RowLocks } from './row-locks.ts';
import type { Session } from './session.ts';
import type { WaitingTable } from './waiting-table.ts';

/** Claims of earlier leaders that are released in one transaction; so many of them may be held by others. */
const RELEASED_AT_ONCE = 1_000;

export interface ClaimParts {
  readonly offsets: OffsetsRow;
  readonly waiting: WaitingTable;
  readonly locks: RowLocks;
  readonly changes: RowChanges;
  /** The condition of rows that may be claimed. */
  readonly pendingAndDue: string;
}

/**
 * Claims on rows of one outbox: `processing`, with the leader's epoch in `claimed_by`. The lock makes one leader, so a
 * claim of another epoch is a dead one's: that is the lease. Where the table does not say whose a claim is, every
 * claim is this leader's.
 */
export class Claims {
  readonly #parts: ClaimParts;
  readonly #table: string;
  readonly #id: string;
  readonly #status: string;
  readonly #claimedBy: string | null;
  readonly #deletes: boolean;
  readonly #literals: IdLiterals;

  /** `status` is the name of the column. */
  constructor(settings: OutboxSettings, status: string, parts: ClaimParts) {
    const { schema, table, columns, retire } = settings;
    this.#parts = parts;
    this.#table = quoteTable(schema, table);
    this.#id = quoteIdentifier(columns.id);
    this.#status = quoteIdentifier(status);
    this.#claimedBy = columns.claimedBy === null ? null : quoteIdentifier(columns.claimedBy);
    this.#deletes = retire === 'delete';
    this.#literals = new IdLiterals(settings);
  }

  /** The condition of rows that this leader has claimed. */
  ours({ epoch }: Leader): string {
    const processing = `${this.#status} = 'processing'`;
    return this.#claimedBy === null ? processing : `${processing} AND ${this.#claimedBy} = ${ownerOf(epoch)}`;
  }

  async claim(
    session: Session,
    leader: Leader,
    ids: readonly RowId[],
  ): Promise<{ claimed: readonly RowId[]; locked: readonly RowId[] }> {
    if (ids.length === 0) return { claimed: [], locked: [] };
    const { offsets, changes, pendingAndDue } = this.#parts;
    const wanted = rowIds(ids);
    const claim = async (): Promise<Set<RowId> | null> => {
      const free = new Set(await this.#select(session, wanted, pendingAndDue, 'FOR UPDATE SKIP LOCKED'));
      if (free.size === 0) return null;
      await changes.claim(session, [...free], pendingAndDue, ownerOf(leader.epoch));
      return free;
    };
    const claimed =
      (await unlessHeld(relayTransaction(session, offsets, leader, `claiming rows of ${this.#table}`, claim))) ??
      new Set();
    const left = ids.filter((id) => !claimed.has(id));
    // What was left out and is still there is somebody else's for now.
    const pending =
      left.length === 0 ? new Set() : new Set(await this.#select(session, rowIds(left), pendingAndDue, ''));
    return { claimed: ids.filter((id) => claimed.has(id)), locked: left.filter((id) => pending.has(id)) };
  }

  async writeBack(session: Session, leader: Leader, outcome: Outcome): Promise<Outcome> {
    const { published, failures, back } = outcome;
    const ids = [...published, ...failures.map(({ id }) => id), ...back];
    if (ids.length === 0) return outcome;
    const { offsets, locks, changes } = this.#parts;
    const ours = this.ours(leader);
    const write = async (): Promise<Set<RowId> | null> => {
      const { free } = await locks.take(session, rowIds(ids));
      if (free.length === 0) return null;
      const isFree = new Set<RowId>(free);
      const done = published.filter((id) => isFree.has(id));
      await (this.#deletes ? changes.delete(session, done, ours) : changes.mark(session, done, ours));
      const failed = failures.filter(({ id }) => isFree.has(id));
      await changes.fail(session, failed, ours);
      const released = back.filter((id) => isFree.has(id));
      await changes.release(session, released, ours);
      return isFree;
    };
    const doing = `writing back rows of ${this.#table}`;
    const written = (await unlessHeld(relayTransaction(session, offsets, leader, doing, write))) ?? new Set();
    return {
      published: published.filter((id) => !written.has(id)),
      failures: failures.filter(({ id }) => !written.has(id)),
      back: back.filter((id) => !written.has(id)),
    };
  }

  /** The condition of rows that are claimed, and not by this leader. */
  others({ epoch }: Leader): string {
    const whose = this.#claimedBy === null ? '' : ` AND NOT (${this.#claimedBy} <=> ${ownerOf(epoch)})`;
    return `${this.#status} = 'processing'${whose}`;
  }

  /** What is claimed and not ours is pending again: all, or of these only. Waits for nobody. */
  async releaseOthers(
    session: Session,
    leader: Leader,
    only: readonly RowId[] | null,
  ): Promise<{ released: number; held: readonly RowId[] }> {
    const { offsets, locks, changes } = this.#parts;
    const doing = `releasing claims on rows of ${this.#table}`;
    const others = this.others(leader);
    const held: RowId[] = [];
    let released = 0;
    for (;;) {
      const stale = await this.#stale(session, others, only, held);
      if (stale.length === 0) return { released, held };
      let left: Iterable<RowId> = stale;
      const release = async (): Promise<number | null> => {
        const taken = await locks.take(session, rowIds(stale));
        left = taken.held;
        return taken.free.length === 0 ? null : changes.release(session, [...taken.free], others);
      };
      const done = await unlessHeld(relayTransaction(session, offsets, leader, doing, release));
      released += done ?? 0;
      // Of a transaction that had to wait, for a gap of the index say, nothing is done.
      held.push(...(done === null ? stale : left));
      if (held.length > RELEASED_AT_ONCE)
        throw fault('MYSQL_LOCK_WAIT', 'retry', `${doing}: somebody holds too many that an earlier leader has claimed`);
    }
  }

  /** Some of those that are not known as held. */
  async #stale(
    session: Session,
    others: string,
    only: readonly RowId[] | null,
    held: readonly RowId[],
  ): Promise<RowId[]> {
    if (only?.length === 0) return [];
    const { index, hasIntegerId } = await this.#parts.waiting.facts(session);
    const except =
      held.length === 0 ? '' : ` AND ${this.#id} NOT IN (${await this.#literals.list(session, rowIds(held))})`;
    const where =
      only === null
        ? `FORCE INDEX (${index}) WHERE ${others}`
        : `FORCE INDEX (PRIMARY) WHERE ${this.#id} IN (${await this.#literals.list(session, rowIds(only))}) AND ${others}`;
    const { rows } = await session.raw(
      `looking for claims on rows of ${this.#table}`,
      `SELECT ${this.#id} FROM ${this.#table} ${where}${except} LIMIT ${RELEASED_AT_ONCE}`,
    );
    return rows.map(([id]) => (hasIntegerId ? BigInt(String(id)) : id!.toString('hex')));
  }

  /** By primary key. A SELECT of nothing but the key could scan: the condition's columns go with it. */
  async #select(session: Session, ids: RowIds, condition: string, lock: string): Promise<RowId[]> {
    const shown = await this.#literals.shown(session, ids);
    const found: RowId[] = [];
    for (const some of statements(ids)) {
      const rows = await session.rows(
        `looking for rows of ${this.#table}`,
        `SELECT ${shown} AS id, ${this.#status} FROM ${this.#table} FORCE INDEX (PRIMARY)
         WHERE ${this.#id} IN (${await this.#literals.list(session, some)}) AND ${condition} ${lock}`,
      );
      for (const row of rows) found.push(idOf(row['id'], ids));
    }
    return found;
  }
}

/** BINARY(16), big-endian. */
function ownerOf(epoch: number): string {
  return `X'${epoch.toString(16).padStart(32, '0')}'`;
}

/** Null: somebody holds what the work needs, such as a gap of an index that a row would move into. */
async function unlessHeld<T>(work: Promise<T | null>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (isLockWait(error)) return null;
    throw error;
  }
}
