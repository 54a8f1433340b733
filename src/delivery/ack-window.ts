import { type Checkpoint, formatGtid, type GtidRun, MAX_START_OFFSET, type Position } from '../model/position.ts';
import { beginOf, type Landmark, type Transaction, type TransactionGroup } from '../model/source.ts';
import type { GtidSet } from './gtid-set.ts';
import { TransactionRing } from './transaction-ring.ts';

declare const committable: unique symbol;

/**
 * A checkpoint that may be saved: everything before it is settled. Only the ack window makes one; only a flush takes
 * one.
 */
export interface Committable extends Checkpoint {
  readonly [committable]: true;
  /** Transactions before this number are behind it. */
  readonly through: number;
  readonly gtids: GtidSet | null;
  /** How many of the skipped runs are in `gtids`: more may be known when it is committed. */
  readonly skippedRuns: number;
  /** The boundary that it stands at, if it does. */
  readonly boundary: Boundary | null;
}

type Reached = Pick<TransactionGroup, 'reached' | 'last' | 'skipped' | 'worthSaving'>;
type LastOfCheckpoint = Pick<Checkpoint, 'lastBegin' | 'lastGtid' | 'lastCommitMicros'>;

/** A boundary reached behind all transactions before number `after`. */
interface Boundary {
  readonly after: number;
  readonly position: Position;
  /** The last transaction before it; null: transaction `after - 1`, or the saved checkpoint's. */
  readonly last: Landmark | null;
  worthSaving: boolean;
}

/**
 * Counts, per transaction in binlog order, the rows that are not settled. The checkpoint may move to the end of the
 * last transaction of the fully settled prefix, and to a boundary reached behind it.
 *
 * Transactions are numbered from 0 in the order they were opened. Invariants: a count never falls below zero; a
 * checkpoint never passes a transaction with a count, never lies inside one, never goes back and never lies where no
 * dump can begin (what a very large transaction has pushed past 4 GiB waits for the next file).
 */
export class AckWindow {
  readonly #open = new TransactionRing();
  /** Skipped runs in log order, each to be added once everything before transaction `after` is settled. */
  #skipped: { readonly after: number; readonly run: GtidRun }[] = [];
  /** The first of them that a checkpoint may be under way with: they stay as they are. */
  #promised = 0;
  #reached: Boundary;
  #gtids: GtidSet | null;
  #saved: Checkpoint;

  constructor(from: Checkpoint, gtids: GtidSet | null) {
    this.#saved = from;
    this.#gtids = gtids;
    this.#reached = { after: 0, position: from.position, last: null, worthSaving: false };
  }

  /** Transactions opened and not yet behind a committed checkpoint. */
  get openTransactions(): number {
    return this.#open.next - this.#open.first;
  }

  /** The last checkpoint that was committed. */
  get saved(): Checkpoint {
    return this.#saved;
  }

  /** Commit time of the oldest transaction that is not settled; null: all are. */
  get oldestCommitMicros(): number | null {
    const oldest = this.#open.settledThrough();
    return oldest < this.#open.next ? this.#open.commitMicros(oldest) : null;
  }

  /** Of a transaction that is not behind a committed checkpoint. */
  commitMicrosOf(transaction: number): number {
    return this.#open.commitMicros(transaction);
  }

  /** Behind a transaction that is not behind a committed checkpoint. */
  endOf(transaction: number): Position {
    return this.#open.end(transaction);
  }

  /** Opens a transaction; it stays unsettled until `routed`. Returns its number. */
  open(transaction: Transaction): number {
    const number = this.#open.push(transaction);
    for (const run of transaction.skipped) this.#skip(number, run);
    return number;
  }

  /** One more row of an open transaction is on its way. */
  add(transaction: number): void {
    this.#open.count(transaction, 1);
  }

  /** All rows of the transaction are on their way. */
  routed(transaction: number): void {
    this.#open.count(transaction, -1);
  }

  isSettled(transaction: number): boolean {
    return this.#open.counted(transaction) === 0;
  }

  settle(transaction: number, rows: number): void {
    this.#open.count(transaction, -rows);
  }

  /** Takes a `settle` back: the rows could not be retired yet. Only before the checkpoint was committed. */
  unsettle(transaction: number, rows: number): void {
    this.#open.count(transaction, rows);
  }

  /**
   * The stream stands at a boundary behind everything opened so far. Returns whether that alone is worth saving: so it
   * is, too, when the saved checkpoint knows of no transaction by which the log could be told from another.
   */
  reached({ reached: position, skipped, worthSaving, last }: Reached): boolean {
    const after = this.#open.next;
    for (const run of skipped) this.#skip(after, run);
    const before = this.#reached;
    this.#reached = {
      ...{ after, position },
      last: last ?? (before.after === after ? before.last : null),
      worthSaving: worthSaving || before.worthSaving || (last !== null && this.#saved.lastBegin === null),
    };
    return this.#reached.worthSaving;
  }

  /** What may be saved now; null when that would move nothing. */
  committable(): Committable | null {
    let through = this.#open.settledThrough();
    let boundary = this.#reached.after === through ? this.#reached : null;
    if (boundary !== null && boundary.position.offset > MAX_START_OFFSET) boundary = null;
    if (boundary === null) through = this.#startable(through);
    const moved = through > this.#open.first;
    if (!moved && boundary?.worthSaving !== true) return null;
    const gtids = this.#gtids?.copy() ?? null;
    const checkpoint = {
      position: boundary?.position ?? this.#open.end(through - 1),
      ...this.#last(boundary?.last ?? null, moved ? through - 1 : null),
      through,
      gtids,
      skippedRuns: this.#collect(gtids, through, boundary !== null),
      boundary,
      gtidSet: gtids?.toString() ?? null,
    };
    return checkpoint as Committable;
  }

  /** The checkpoint is in the database. */
  committed(checkpoint: Committable): void {
    this.#gtids = checkpoint.gtids;
    this.#skipped.splice(0, checkpoint.skippedRuns);
    this.#promised = Math.max(0, this.#promised - checkpoint.skippedRuns);
    this.#open.dropBefore(checkpoint.through);
    if (checkpoint.boundary !== null) checkpoint.boundary.worthSaving = false;
    this.#saved = checkpoint;
  }

  /** Back to before transactions that end where no dump can begin. */
  #startable(through: number): number {
    let startable = through;
    while (startable > this.#open.first && this.#open.endOffset(startable - 1) > MAX_START_OFFSET) startable--;
    return startable;
  }

  #last(landmark: Landmark | null, transaction: number | null): LastOfCheckpoint {
    if (landmark !== null) {
      const { gtid, commitMicros } = landmark;
      const lastGtid = gtid === null ? null : formatGtid(gtid);
      return { lastBegin: beginOf(landmark), lastGtid, lastCommitMicros: commitMicros };
    }
    if (transaction === null) {
      const { lastBegin, lastGtid, lastCommitMicros } = this.#saved;
      return { lastBegin, lastGtid, lastCommitMicros };
    }
    return {
      lastBegin: this.#open.begin(transaction),
      lastGtid: this.#open.gtidText(transaction),
      lastCommitMicros: this.#open.commitMicros(transaction),
    };
  }

  /** Runs that go on where the last one ends become one: behind a row that is stuck there may be millions. */
  #skip(after: number, run: GtidRun): void {
    const last = this.#skipped.length > this.#promised ? this.#skipped.at(-1) : undefined;
    if (last?.after === after && last.run.sid === run.sid && last.run.last + 1 === run.first) {
      this.#skipped[this.#skipped.length - 1] = { after, run: { ...run, first: last.run.first } };
    } else {
      this.#skipped.push({ after, run });
    }
  }

  /** Adds everything before `through` in log order; returns how many of the skipped runs that takes. */
  #collect(gtids: GtidSet | null, through: number, atBoundary: boolean): number {
    let next = this.#open.first;
    let taken = 0;
    for (const { after, run } of this.#skipped) {
      if (after > through || (after === through && !atBoundary)) break;
      if (gtids !== null) {
        for (; next < after; next++) this.#open.addGtid(next, gtids);
        gtids.add(run);
      }
      taken++;
    }
    this.#promised = Math.max(this.#promised, taken);
    if (gtids !== null) for (; next < through; next++) this.#open.addGtid(next, gtids);
    return taken;
  }
}
