import type { Checkpoint, GtidRun, Position } from '../model/position.ts';
import type { Transaction } from '../model/source.ts';
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

/** A boundary reached behind all transactions before number `after`. */
interface Boundary {
  readonly after: number;
  readonly position: Position;
  worthSaving: boolean;
}

/**
 * Counts, per transaction in binlog order, the rows that are not settled. The checkpoint may move to the end of the
 * last transaction of the fully settled prefix, and to a boundary reached behind it.
 *
 * Transactions are numbered from 0 in the order they were opened. Invariants: a count never falls below zero; a
 * checkpoint never passes a transaction with a count, never lies inside one and never goes back.
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
    this.#reached = { after: 0, position: from.position, worthSaving: false };
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

  /** The stream stands at a boundary behind everything opened so far. */
  reached(position: Position, skipped: readonly GtidRun[], worthSaving: boolean): void {
    const after = this.#open.next;
    for (const run of skipped) this.#skip(after, run);
    this.#reached = { after, position, worthSaving: worthSaving || this.#reached.worthSaving };
  }

  /** What may be saved now; null when that would move nothing. */
  committable(): Committable | null {
    const through = this.#open.settledThrough();
    const moved = through > this.#open.first;
    const boundary = this.#reached.after === through ? this.#reached : null;
    if (!moved && boundary?.worthSaving !== true) return null;
    const gtids = this.#gtids?.copy() ?? null;
    const last = through - 1;
    const checkpoint = {
      position: boundary?.position ?? this.#open.end(last),
      lastGtid: moved ? this.#open.gtidText(last) : this.#saved.lastGtid,
      lastCommitMicros: moved ? this.#open.commitMicros(last) : this.#saved.lastCommitMicros,
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
