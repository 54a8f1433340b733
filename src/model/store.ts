import type { Checkpoint, Position } from './position.ts';
import type { RowCursor } from './row.ts';
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
  /** Furthest position routed. */
  readonly high: Position;
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
  /** Null on the first start of this relay. */
  saved(): Promise<SavedOffsets | null>;
  /** Saves the first position of this relay. */
  saveFirst(leader: Leader, checkpoint: Checkpoint, serverUuid: string): Promise<void>;
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
  /** Rows of an outbox: whether there are any, and how many wait (null where there is no status column). */
  outboxRows(outbox: number): Promise<{ readonly any: boolean; readonly pending: number | null }>;
  close(): Promise<void>;
}
