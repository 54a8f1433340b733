import type { Fault } from '../model/fault.ts';
import type { Position } from '../model/position.ts';
import type { TransactionGroup } from '../model/source.ts';
import type { GroupStart } from './gtid-event.ts';
import { GtidRuns } from './gtid-runs.ts';
import { LastTransaction } from './last-transaction.ts';
import type { LogPosition } from './log-position.ts';
import type { RowsEvent } from './rows-event.ts';
import { CommittedTransaction, type TransactionCursor } from './transaction-cursor.ts';

/** So much log without a row for us, and the way that was come is worth saving. */
const WORTH_SAVING_BYTES = 16 * 1024 * 1024;

const NO_EVENTS: readonly RowsEvent[] = [];

/** Collects what one read from the socket gave. */
export class GroupBuilder {
  readonly #cursor: TransactionCursor;
  readonly #runs = new GtidRuns();
  #transactions: CommittedTransaction[] = [];
  /** Of the rows in them. */
  heldBytes = 0;
  #file: string;
  #offset: number;
  #sealedFile: string;
  #sealedOffset: number;
  readonly #last = new LastTransaction();
  #foreignBytes = 0;
  #rotated = false;

  constructor(from: Position, cursor: TransactionCursor) {
    this.#cursor = cursor;
    this.#file = this.#sealedFile = from.file;
    this.#offset = this.#sealedOffset = from.offset;
  }

  /** A transaction with rows, committed at `end`. */
  commit(group: GroupStart, events: readonly RowsEvent[], bytes: number, end: Position): void {
    this.#push(group, events, end, null);
    this.heldBytes += bytes;
  }

  /** One whose rows cannot be given. */
  giveUp(group: GroupStart, why: Fault, end: Position): void {
    this.#push(group, NO_EVENTS, end, why);
  }

  /** A transaction with nothing for us; `foreignBytes` of log that are nobody's bookkeeping. */
  skip(group: GroupStart, foreignBytes: number, end: Position): void {
    const { sid, gno } = group;
    if (sid !== null) this.#runs.add(sid, gno);
    this.#foreignBytes += foreignBytes;
    this.#last.note(group, end);
  }

  /** No transaction is open at `position`. */
  reach(position: LogPosition): void {
    if (position.file !== this.#file) this.#rotated = true;
    this.#file = position.file;
    this.#offset = position.offset;
  }

  #push(group: GroupStart, events: readonly RowsEvent[], end: Position, why: Fault | null): void {
    const { file, offset } = end;
    this.#last.note(group, end);
    const skipped = this.#runs.take();
    this.#transactions.push(new CommittedTransaction(this.#cursor, events, file, offset, group, skipped, why));
    this.#foreignBytes = 0;
  }

  /** Null when nothing has happened since the last one. */
  seal(): TransactionGroup | null {
    if (this.#offset === this.#sealedOffset && this.#file === this.#sealedFile) return null;
    const worthSaving = this.#rotated || this.#foreignBytes >= WORTH_SAVING_BYTES;
    const group: TransactionGroup = {
      transactions: this.#transactions,
      reached: { file: this.#file, offset: this.#offset },
      last: this.#last.take(),
      skipped: this.#runs.take(),
      worthSaving,
    };
    this.#transactions = [];
    this.heldBytes = 0;
    this.#sealedFile = this.#file;
    this.#sealedOffset = this.#offset;
    if (worthSaving) {
      this.#rotated = false;
      this.#foreignBytes = 0;
    }
    return group;
  }
}
