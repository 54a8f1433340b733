import type { Fault } from './fault.ts';
import type { Checkpoint, Gtid, GtidRun, Position } from './position.ts';
import type { RowCursor } from './row.ts';

/** A committed transaction, as a later stream knows it again. */
export interface Landmark {
  /** Behind its commit event: a stream may begin here. */
  readonly end: Position;
  /** Where its first event begins, in the same file; -1 where it began in another, which a crash cut off. */
  readonly beginOffset: number;
  readonly gtid: Gtid | null;
  /** Commit time by the server's clock, microseconds since the epoch. */
  readonly commitMicros: number;
}

export function beginOf({ end, beginOffset }: Landmark): Position | null {
  return beginOffset < 0 ? null : { file: end.file, offset: beginOffset };
}

/**
 * A committed transaction with at least one outbox row that is the tail's to deliver. Handed on at its commit event,
 * never before; changes that it made to its own rows are already folded in.
 */
export interface Transaction extends Landmark {
  /** GTIDs of the transactions between the previous one handed on and this one: nothing in them was for us. */
  readonly skipped: readonly GtidRun[];
  /**
   * The rows in statement order. One cursor is open at a time: opening the next ends the one before. Not for a
   * transaction that comes in pieces.
   */
  rows(): RowCursor;
  /**
   * Null but for a transaction whose rows are too many to be held: they are read again as they are asked for, a cursor
   * for each piece, in order. To be asked for once, and to the end, before the next group. Throws a RelayError when
   * they cannot be read to their end (`STOPPED` when `signal` is aborted): what was routed is then half a transaction.
   * The stream's own signal does not end them.
   */
  readonly pieces: ((signal: AbortSignal) => AsyncIterable<RowCursor>) | null;
  /**
   * Not null: there are, or may be, outbox rows in it that the tail cannot give (statement format, XA in two phases, a
   * lost event, an image that cannot be read). `rows` is empty then; what it left pending is the sweep's.
   */
  readonly undecodable: Fault | null;
}

/** What one read from the socket gave. */
export interface TransactionGroup {
  readonly transactions: readonly Transaction[];
  /** The last transaction boundary that the stream has reached (at or behind the last transaction's end). */
  readonly reached: Position;
  /** The last transaction before `reached`, whatever was in it; null: the one of the group before. */
  readonly last: Landmark | null;
  /** GTIDs behind the last transaction of this group, none of them for us. */
  readonly skipped: readonly GtidRun[];
  /**
   * True when what lies before `reached` is worth saving though no row was in it: a rotation, or 16 MiB of foreign
   * log. Never for transactions that touch only `cdc_relay_%` tables: two relays would feed each other (S27).
   */
  readonly worthSaving: boolean;
}

/** The binlog as the engine sees it. */
export interface Source {
  /**
   * Streams what was committed behind `from`. One call is one connection: it ends by throwing a `RelayError`, or
   * returns when `signal` is aborted. Not pulled = the socket is paused. `tolerant`: the first transaction behind `from`
   * was met before and cannot be decoded: it is handed on as `undecodable` instead of ending the stream. Where
   * `from.lastBegin` is known, that transaction must be there as it was, and the way from it to `from` open: else the
   * stream ends with BINLOG_POSITION_UNUSABLE. `serverUuid`: another
   * server's log is not read (MYSQL_FOREIGN_SERVER); null: whosever it is.
   */
  stream(
    from: Checkpoint,
    signal: AbortSignal,
    tolerant?: boolean,
    serverUuid?: string | null,
  ): AsyncIterable<TransactionGroup>;
}
