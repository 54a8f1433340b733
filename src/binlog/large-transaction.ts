import type { Position } from '../model/position.ts';
import type { GroupStart } from './gtid-event.ts';
import type { RowsEvent } from './rows-event.ts';

/** Events of inserts by their number in the transaction: from the first to before the last. */
export interface InsertRun {
  readonly from: number;
  readonly to: number;
}

/** A committed transaction whose rows were too many to be kept: what a second read of it must know. */
export interface LargeTransaction {
  readonly begin: Position;
  readonly end: Position;
  readonly sid: string | null;
  readonly gno: number;
  readonly commitMicros: number;
  /** Inserts that were rolled back to a savepoint; ascending, apart from one another. */
  readonly rolledBack: readonly InsertRun[];
}

/** Some of its rows. */
export interface Piece {
  readonly events: readonly RowsEvent[];
  readonly bytes: number;
}

/**
 * The second read: that the transaction commits is known, so its rows are handed on as they come. The first read has
 * seen that it does not change rows of its own.
 */
export class SecondRead {
  readonly transaction: LargeTransaction;
  #inserts = 0;
  #run = 0;
  #events: RowsEvent[] = [];
  #bytes = 0;
  #isWhole = false;

  constructor(transaction: LargeTransaction) {
    this.transaction = transaction;
  }

  /** The commit has been seen: nothing follows what can still be taken. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Throws a RangeError when this is not the transaction of the first read. */
  rows(event: RowsEvent, { sid, gno, commitMicros }: GroupStart): void {
    const { transaction } = this;
    if (sid !== transaction.sid || gno !== transaction.gno || commitMicros !== transaction.commitMicros)
      throw new RangeError('another transaction than at the first read');
    if (event.change !== 'insert') return;
    const number = this.#inserts++;
    const { rolledBack } = transaction;
    while (this.#run < rolledBack.length && rolledBack[this.#run].to <= number) this.#run += 1;
    if (this.#run < rolledBack.length && rolledBack[this.#run].from <= number) return;
    this.#events.push(event);
    this.#bytes += event.end - event.start;
  }

  /** The transaction ends at `offset`. Throws a RangeError when that is not where it did. */
  committed(offset: number): void {
    if (offset !== this.transaction.end.offset) throw new RangeError('another end than at the first read');
    this.#isWhole = true;
  }

  /** The rows since the last piece; null when there are none. */
  take(): Piece | null {
    if (this.#events.length === 0) return null;
    const piece = { events: this.#events, bytes: this.#bytes };
    this.#events = [];
    this.#bytes = 0;
    return piece;
  }
}
