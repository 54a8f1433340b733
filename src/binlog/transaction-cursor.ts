import { fault, type Fault, type RelayError } from '../model/fault.ts';
import { formatPosition, type Gtid, type GtidRun, type Position } from '../model/position.ts';
import type { OutboxRow, RowCursor } from '../model/row.ts';
import type { Transaction } from '../model/source.ts';
import type { GroupStart } from './gtid-event.ts';
import { RowReader, Verdict } from './row-reader.ts';
import type { RowsEvent } from './rows-event.ts';
import type { SourceCounters } from './source-counters.ts';

/** A transaction as the stream holds it: numbers and slices; what is made of them is made when asked for. */
export class CommittedTransaction implements Transaction {
  readonly beginOffset: number;
  readonly commitMicros: number;
  readonly skipped: readonly GtidRun[];
  readonly pieces = null;
  readonly undecodable: Fault | null;
  readonly events: readonly RowsEvent[];
  readonly #cursor: TransactionCursor;
  readonly #file: string;
  readonly #offset: number;
  readonly #sid: string | null;
  readonly #gno: number;

  constructor(
    cursor: TransactionCursor,
    events: readonly RowsEvent[],
    file: string,
    offset: number,
    group: GroupStart,
    skipped: readonly GtidRun[],
    undecodable: Fault | null,
  ) {
    this.#cursor = cursor;
    this.events = events;
    this.#file = file;
    this.#offset = offset;
    this.beginOffset = group.file === file ? group.begin : -1;
    this.#sid = group.sid;
    this.#gno = group.gno;
    this.commitMicros = group.commitMicros;
    this.skipped = skipped;
    this.undecodable = undecodable;
  }

  get end(): Position {
    return { file: this.#file, offset: this.#offset };
  }

  get gtid(): Gtid | null {
    return this.#sid === null ? null : { sid: this.#sid, gno: this.#gno };
  }

  rows(): RowCursor {
    return this.#cursor.open(this.events, this.end);
  }
}

/** The one cursor of a stream. Rows that are not the tail's are passed over and counted. */
export class TransactionCursor implements RowCursor {
  readonly row: OutboxRow;
  readonly #reader = new RowReader();
  readonly #counters: SourceCounters;
  #events: readonly RowsEvent[] = [];
  #where: Position | null = null;
  #event = 0;
  #at = 0;
  #end = 0;

  constructor(counters: SourceCounters) {
    this.#counters = counters;
    this.row = this.#reader.row;
  }

  /** `where` is for messages: the end of the transaction, or how far it has been read. */
  open(events: readonly RowsEvent[], where: Position): this {
    this.#events = events;
    this.#where = where;
    this.#event = -1;
    this.#at = 0;
    this.#end = 0;
    return this;
  }

  /** Throws a RelayError when the log holds something else than its table map says. */
  next(): boolean {
    const events = this.#events;
    for (;;) {
      while (this.#at >= this.#end) {
        if (this.#event + 1 >= events.length) return false;
        this.#event += 1;
        this.#at = events[this.#event].start;
        this.#end = events[this.#event].end;
      }
      const { plan, buffer, seconds } = events[this.#event];
      try {
        this.#at = this.#reader.read(plan, buffer, this.#at, this.#end, seconds);
      } catch (error) {
        throw this.#broken(error);
      }
      if (this.#reader.verdict === Verdict.Deliver) return true;
      if (this.#reader.verdict === Verdict.Delayed) this.#counters.delayed += 1;
      else this.#counters.notPending += 1;
    }
  }

  /** Rows of the transaction may be out by now, and its bytes are what their checksum says: not to be tried again. */
  #broken(error: unknown): RelayError {
    const where = this.#where === null ? '' : ` that was read up to ${formatPosition(this.#where)}`;
    return fault('BINLOG_DECODE', 'halt', `cannot read the rows of the transaction${where}`, error);
  }
}
