import { fault } from '../model/fault.ts';
import type { Gtid, GtidRun, Position } from '../model/position.ts';
import type { RowCursor } from '../model/row.ts';
import type { Transaction } from '../model/source.ts';
import type { LargeTransaction } from './large-transaction.ts';
import type { Tail } from './tail.ts';

/** A transaction that a tail reads for the second time, as its rows are asked for. */
export class PiecewiseTransaction implements Transaction {
  readonly end: Position;
  readonly beginOffset: number;
  readonly gtid: Gtid | null;
  readonly commitMicros: number;
  /** Those before it came with the group before it. */
  readonly skipped: readonly GtidRun[] = [];
  readonly undecodable = null;
  readonly #tail: Tail;

  constructor({ begin, end, sid, gno, commitMicros }: LargeTransaction, tail: Tail) {
    this.end = end;
    this.beginOffset = begin.offset;
    this.gtid = sid === null ? null : { sid, gno };
    this.commitMicros = commitMicros;
    this.#tail = tail;
  }

  rows(): RowCursor {
    throw new Error('the rows of a large transaction come in pieces');
  }

  async *pieces(signal: AbortSignal): AsyncGenerator<RowCursor, void, undefined> {
    const tail = this.#tail;
    const stop = () => tail.end(fault('STOPPED', 'retry', 'the reading of a transaction was given up'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
    try {
      for (let rows = await tail.pullPiece(); rows !== null; rows = await tail.pullPiece()) yield rows;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}
