import type { Fault } from './fault.ts';
import type { ParkedEntry, Scope } from './parked.ts';
import type { Checkpoint, Position } from './position.ts';
import type { Field, RowCursor } from './row.ts';
import type { RowId, RowIds } from './row-ids.ts';

declare const leader: unique symbol;

/**
 * The right to write and to send. Only leadership makes one; every write needs one. It ends by itself: `lost` aborts
 * when the lock's connection dies or a compare-and-set fails.
 */
export interface Leader {
  readonly [leader]: true;
  /** Goes up by one with each leader; the compare-and-set of every transaction. */
  readonly epoch: number;
  readonly lost: AbortSignal;
  /** Where the lock is held. */
  readonly serverUuid: string;
  /**
   * False when the last answer of the lock's connection is too old to be sure that the lock is still ours: no send may
   * start (a frozen process must not wake up and send what its successor has sent).
   */
  maySend(): boolean;
  /** Gives the lock back. */
  release(): Promise<void>;
}

/** The offsets row. */
export interface SavedOffsets {
  readonly checkpoint: Checkpoint;
  readonly serverUuid: string;
  /** Furthest place whose rows may have been sent; not before the checkpoint. */
  readonly high: Position;
}

/** Where a relay begins that has no position, or none that can be used. */
export interface NewBeginning {
  readonly checkpoint: Checkpoint;
  readonly high: Position;
  readonly serverUuid: string;
  /** Not null: everything is parked, in the same transaction, for this reason. */
  readonly parkEverything: string | null;
}

export interface ServerFacts {
  readonly version: string;
  readonly flavour: 'mysql' | 'mariadb';
  /** MariaDB has no uuid: `mariadb-<server_id>`. */
  readonly serverUuid: string;
  readonly gtidMode: boolean;
}

/** Rows of one outbox that were acknowledged and are to be marked or deleted. */
export interface RetireRows {
  readonly outbox: number;
  readonly ids: RowIds;
}

export interface FlushRequest<C extends Checkpoint> {
  /** Rows that nobody has been seen to hold. */
  readonly retire: readonly RetireRows[];
  /** Rows that the application held at an earlier flush: tried without waiting. */
  readonly suspects: readonly RetireRows[];
  /** The checkpoint that fits when the rows named stay unretired; null when there is nothing to save. */
  readonly checkpoint: (stillHeld: readonly RetireRows[]) => C | null;
  /** Furthest position routed, or head of a pass of the sweep. */
  readonly high: Position;
  /**
   * Differences between the parked scopes in memory and in the table, taken right behind `checkpoint` (in the same turn
   * of the event loop): a checkpoint must never pass a row that no written scope covers. Null: none.
   */
  readonly parked: () => ParkedChanges | null;
}

export interface ParkedChanges {
  readonly put: readonly ParkedEntry[];
  readonly remove: readonly Scope[];
}

/** A row that could not be delivered: `failed` for good, or still pending with one more attempt on its account. */
export interface RowFailure {
  readonly outbox: number;
  readonly id: RowId;
  readonly as: 'failed' | 'pending';
  /** Code and short reason, never payload. */
  readonly error: string;
}

/** A row that the sweep may take, without its payload. */
export interface Candidate {
  readonly outbox: number;
  readonly id: RowId;
  /** Null: it names none. */
  readonly topic: string | null;
  /** As `scopeKey` makes it of a row. */
  readonly key: Buffer;
  readonly attempts: number;
  /** About what it takes in memory. */
  readonly bytes: number;
}

/** Behind the last row that was looked at; only the store knows what is in it. */
export type SweepCursor = { readonly __brand: 'SweepCursor' };

/** One look at the rows of an outbox that are pending and due. */
export interface SweepPage {
  readonly rows: readonly Candidate[];
  /** Null: there is nothing behind. */
  readonly next: SweepCursor | null;
}

/** What became of claimed rows. */
export interface Outcome {
  readonly published: readonly RowId[];
  readonly failures: readonly RowFailure[];
  /** To pending again, nothing on their account. */
  readonly back: readonly RowId[];
}

/** What came of claims of leaders before this one. */
export interface ReleasedClaims {
  readonly released: number;
  /** Still claimed: somebody holds them. */
  readonly held: readonly Candidate[];
}

/** Rows as they are in the table now, locked for as long as they are read. */
export interface FoundRows {
  /** In the order asked for; those that are not there, not pending or not due are left out. */
  readonly rows: RowCursor;
  /** Not there. */
  readonly gone: readonly RowId[];
}

/** MySQL as the engine sees it: everything but the binlog. All methods throw `RelayError`. */
export interface Store {
  serverFacts(): Promise<ServerFacts>;
  /** Where the log ends now. */
  head(): Promise<Checkpoint>;
  /** Waits for the lock, then takes the next epoch. `onStandby` is told once when somebody else holds it. */
  lead(signal: AbortSignal, onStandby: () => void): Promise<Leader>;
  /**
   * Whether people have asked this relay to pause; null where its table cannot say so yet (before `migrate`). A plain
   * read by primary key.
   */
  isPaused(): Promise<boolean | null>;
  /** Tells those who have asked that this leader has come to rest. */
  rested(leader: Leader): Promise<void>;
  /** Null on the first start of this relay. */
  saved(): Promise<SavedOffsets | null>;
  /** Why this server cannot go on behind a checkpoint that was saved on it; null: nothing is known against it. */
  positionFault(checkpoint: Checkpoint): Promise<Fault | null>;
  /** What is parked, as the last leader wrote it. */
  parked(): Promise<readonly ParkedEntry[]>;
  /** One transaction: position, `high`, and where asked for the scope that parks everything. */
  begin(leader: Leader, beginning: NewBeginning): Promise<void>;
  /**
   * Rows that are pending and due now count as published: history that was there before the first start. Small batches.
   * What is committed meanwhile is left alone. Returns how many.
   */
  leaveHistory(leader: Leader, outbox: number): Promise<number>;
  /**
   * One transaction: compare-and-set of the offsets row, then rows retired by primary key. Rows that the application
   * holds are left out: the last call of `checkpoint` names them. Returns what was saved.
   */
  flush<C extends Checkpoint>(leader: Leader, request: FlushRequest<C>): Promise<C | null>;
  /**
   * Rows of one outbox by primary key, some hundred at most, exactly as the tail would give them but for JSON, which is
   * text. A locking read: what the log shows may not be visible yet. `dueBeforeMs`: rows available from there on are
   * not due.
   */
  readRows(outbox: number, ids: readonly RowId[], dueBeforeMs: number): Promise<FoundRows>;
  /** Idempotency keys of rows by primary key, some hundred at most; rows that are not there are left out. A plain read. */
  idempotencyKeys(outbox: number, ids: RowIds): Promise<ReadonlyMap<RowId, Field>>;
  /** Rows of an outbox: whether there are any, and how many wait (null where there is no status column). */
  outboxRows(outbox: number): Promise<{ readonly any: boolean; readonly pending: number | null }>;
  /**
   * Commits a transaction of the relay's own that raises `high` (null: as it is). What the log holds before it is visible
   * to every later SELECT: commits become visible in the log's order (`binlog_order_commits`).
   */
  barrier(leader: Leader, high: Position | null): Promise<void>;
  /** Pending rows to `failed`, or one attempt more on their account. Returns those that somebody holds: not done. */
  fail(leader: Leader, failures: readonly RowFailure[]): Promise<readonly RowFailure[]>;

  /** Where the log ends, for the fence; null where there is no log, or none that this relay would ever read or may ask for. */
  logEnd(): Promise<Position | null>;
  /** Rows pending and due, in the order of the index (due time, id). */
  dueRows(outbox: number, after: SweepCursor | null, limit: number): Promise<SweepPage>;
  /**
   * Ids of rows pending and due, ascending (where ids are no integers: by due time), those behind `after` only. `key`:
   * of that aggregate at least. Index only unless there is a key.
   */
  dueIds(
    outbox: number,
    after: SweepCursor | null,
    limit: number,
    key: Buffer | null,
  ): Promise<{ readonly ids: readonly RowId[]; readonly next: SweepCursor | null }>;
  /** Those of the ids that are pending and due, in their order. A plain read. */
  candidates(outbox: number, ids: readonly RowId[]): Promise<readonly Candidate[]>;
  /** Milliseconds until the next row becomes due, by the server's clock; null: none waits for its time. */
  nextDueMs(outbox: number): Promise<number | null>;
  /** To `processing`, in one short transaction that waits for nobody. `locked`: pending, and held by somebody else. */
  claim(
    leader: Leader,
    outbox: number,
    ids: readonly RowId[],
  ): Promise<{ readonly claimed: readonly RowId[]; readonly locked: readonly RowId[] }>;
  /** Claimed rows whole, in the order asked for; what is no longer ours is left out. A plain read. */
  claimedRows(leader: Leader, outbox: number, ids: readonly RowId[]): Promise<RowCursor>;
  /** Writes back what was claimed. Returns those that somebody holds: not done. */
  writeBack(leader: Leader, outbox: number, outcome: Outcome): Promise<Outcome>;
  /**
   * Rows that leaders before this one had claimed are pending again: all, or of these only. Waits for nobody. Throws
   * (retry) where more than a thousand of one outbox are held.
   */
  releaseClaims(leader: Leader, only: readonly Candidate[] | null): Promise<ReleasedClaims>;
  /** False: the row is `failed` no longer (retried, discarded). */
  isFailed(outbox: number, id: RowId): Promise<boolean>;
  close(): Promise<void>;
}
