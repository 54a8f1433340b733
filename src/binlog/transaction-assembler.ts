import { fault, type RelayError } from '../model/fault.ts';
import { fold } from './fold.ts';
import type { GroupBuilder } from './group-builder.ts';
import { GroupStart } from './gtid-event.ts';
import { InsertedIds } from './inserted-ids.ts';
import type { LargeTransaction, SecondRead } from './large-transaction.ts';
import type { LogPosition } from './log-position.ts';
import { OpenTransaction } from './open-transaction.ts';
import type { Statement } from './query-event.ts';
import { RowReader } from './row-reader.ts';
import type { RowsEvent } from './rows-event.ts';
import type { SourceCounters } from './source-counters.ts';
import { TableKind, type TableRegistry } from './table-registry.ts';

/**
 * - between: no transaction is open; a stream may begin here
 * - opened: its GTID has been seen, its first statement not
 * - inside: its statements and rows follow until a commit event
 * - over: it was too large to be kept and has committed; what is behind it is not read here
 */
type State = 'between' | 'opened' | 'inside' | 'over';

export interface AssemblerOptions {
  /** Of the event that is being handed over. */
  readonly position: LogPosition;
  readonly tables: TableRegistry;
  readonly groups: GroupBuilder;
  readonly counters: SourceCounters;
  readonly maxTransactionBytes: number;
  /** Of the transaction that the stream begins with; null for a stream that begins anywhere. */
  readonly secondRead: SecondRead | null;
}

/**
 * Events to transactions. Rows are kept from their event to the commit event, those of outbox tables only; what cannot
 * be understood and might hold outbox rows is a fault, so that nothing behind it is handed on.
 */
export class TransactionAssembler {
  readonly #position: LogPosition;
  readonly #tables: TableRegistry;
  readonly #groups: GroupBuilder;
  readonly #counters: SourceCounters;
  readonly #maxBytes: number;
  readonly #folder = new RowReader();
  readonly #open = new OpenTransaction();
  readonly #group = new GroupStart();
  #state: State = 'between';
  #begin = 0;
  /** Our own transaction: all of it is passed over. */
  #own = false;
  #sawTable = false;
  /** It touched something else than `cdc_relay_%` tables; what our own goes on to touch is not looked at. */
  #foreign = false;
  #secondRead: SecondRead | null;
  /** Of a transaction that is too large. */
  #ids = new InsertedIds();
  #large: LargeTransaction | null = null;

  constructor({ position, tables, groups, counters, maxTransactionBytes, secondRead }: AssemblerOptions) {
    this.#secondRead = secondRead;
    this.#position = position;
    this.#tables = tables;
    this.#groups = groups;
    this.#counters = counters;
    this.#maxBytes = maxTransactionBytes;
  }

  get isBetween(): boolean {
    return this.#state === 'between';
  }

  /** True in a transaction whose rows are passed over unread. */
  get passesOver(): boolean {
    return this.#own;
  }

  /** Of this stream to keep: none in a second read. */
  get hasRows(): boolean {
    return this.#open.hasRows;
  }

  /** A transaction that has committed and whose rows were not kept; the stream ends here. */
  get large(): LargeTransaction | null {
    return this.#large;
  }

  /** A GTID event; the caller has it read into what this gives. */
  opens(): GroupStart {
    if (this.hasRows) throw new RangeError('a transaction begins inside another');
    this.commit();
    this.#start();
    return this.#group;
  }

  /** MariaDB: the GTID event is the BEGIN as well, unless one statement stands for itself. */
  entered(): void {
    if (!this.#group.standalone) this.#state = 'inside';
  }

  statement(statement: Statement, seconds: number): void {
    switch (statement.kind) {
      case 'begin':
      case 'xa start':
        this.#enter(seconds);
        return;
      case 'xa end':
        return;
      case 'commit':
        this.commit();
        return;
      case 'rollback':
        this.#open.clear();
        this.commit();
        return;
      case 'savepoint':
        this.#open.savepoint(statement.name);
        return;
      case 'rollback to':
        if (!this.#open.rollBackTo(statement.name) && this.hasRows) {
          throw this.#unsupported('rows are rolled back to a savepoint that is not in the log', 'report this');
        }
        return;
      case 'other':
        this.#text(statement.text, statement.schema);
        if (this.#state === 'between') this.#start().none(seconds);
        this.#foreign = true;
        if (this.#state === 'opened') this.commit();
    }
  }

  table(kind: TableKind, seconds: number): void {
    if (this.#state !== 'inside') this.#enter(seconds);
    if (kind === TableKind.Offsets && !this.#sawTable) this.#own = true;
    if (kind === TableKind.Foreign || kind === TableKind.Outbox) this.#foreign = true;
    this.#sawTable = true;
  }

  /** Row images of an outbox table. */
  rows(event: RowsEvent): void {
    if (this.#secondRead !== null) {
      this.#secondRead.rows(event, this.#group);
      return;
    }
    const open = this.#open;
    if (event.change === 'insert') {
      if (!event.plan.holdsId) {
        throw this.#unsupported(
          'an outbox row comes without its primary key',
          'binlog_row_image must be FULL where the key is a default',
        );
      }
    } else if (!this.hasRows) {
      // Rows from before: none of the tail's. Only REPLACE is of interest.
      if (event.change === 'update' && event.before?.holdsId === true)
        fold([event], this.#folder, this.#counters, this.#position);
      return;
    }
    if (open.isLarge) this.#follow(event);
    open.add(event);
    if (open.isLarge || open.bytes <= this.#maxBytes) return;
    this.#ids = new InsertedIds();
    for (const each of open.events) this.#follow(each);
    open.outgrow();
  }

  /** Rows that are not kept: those of a second read cannot be folded. */
  #follow(event: RowsEvent): void {
    if (!this.#ids.follow(event)) {
      throw fault(
        'BINLOG_TRANSACTION_TOO_LARGE',
        'halt',
        `the transaction at ${this.#position.file}:${this.#begin} holds more than ${this.#maxBytes} bytes of outbox rows ` +
          'and changes rows that it inserted: relay.maxTransactionBytes must be larger than it is',
      );
    }
    if (event.before?.holdsId === true) fold([event], this.#folder, this.#counters, this.#position);
  }

  /** Partial updates (JSON differences) of an outbox table: of no interest unless they are about rows just inserted. */
  partialRows(): void {
    if (!this.hasRows) return;
    throw this.#unsupported(
      'an outbox row was changed in part by the transaction that inserted it',
      "binlog_row_value_options must be '' where outbox rows are written",
    );
  }

  /** XA PREPARE: the fate is known later. `onePhase`: it is known now. */
  prepare(onePhase: boolean): void {
    if (!onePhase && this.hasRows) {
      throw this.#unsupported('an XA transaction with outbox rows is prepared here', 'write outbox rows without XA');
    }
    this.commit();
  }

  /** A commit event; of nothing when no transaction is open. */
  commit(): void {
    if (this.#state === 'between') return;
    if (this.#open.isLarge) {
      this.#large = this.#largeOne();
      this.#state = 'over';
      return;
    }
    this.#state = 'between';
    if (this.#secondRead !== null) {
      this.#secondRead.committed(this.#position.offset);
      this.#secondRead = null;
      this.#own = false;
      return;
    }
    const { changed, bytes } = this.#open;
    let events = this.#open.take();
    if (changed) events = fold(events, this.#folder, this.#counters, this.#position);
    if (events.length > 0) this.#groups.commit(this.#group, events, bytes, this.#position);
    else this.#groups.skip(this.#group, this.#foreign ? this.#position.offset - this.#begin : 0);
    this.#own = false;
  }

  /** The log breaks off inside a transaction (the server crashed there): it was rolled back. */
  breakOff(): void {
    if (this.#secondRead !== null && this.#state !== 'between')
      throw new RangeError('the log breaks off behind a commit');
    this.#open.clear();
    this.#own = false;
    this.#state = 'between';
  }

  /** The end of a socket chunk. */
  settle(): void {
    this.#open.settle();
  }

  #largeOne(): LargeTransaction {
    const { file, offset } = this.#position;
    const { sid, gno, commitMicros } = this.#group;
    const rolledBack = this.#open.rolledBack;
    return { begin: { file, offset: this.#begin }, end: { file, offset }, sid, gno, commitMicros, rolledBack };
  }

  #enter(seconds: number): void {
    if (this.#state === 'between') this.#start().none(seconds);
    this.#state = 'inside';
  }

  #start(): GroupStart {
    this.#state = 'opened';
    this.#begin = this.#position.eventAt;
    this.#own = false;
    this.#sawTable = false;
    this.#foreign = false;
    return this.#group;
  }

  #text(text: string, schema: string): void {
    const meaning = this.#tables.meaning(text, schema);
    if (meaning === 'inserts' || (meaning === 'changes' && this.hasRows)) {
      throw this.#unsupported(
        'a statement about an outbox table is in the log as text',
        'binlog_format must be ROW where outbox rows are written',
      );
    }
  }

  #unsupported(what: string, advice: string): RelayError {
    return fault('BINLOG_UNSUPPORTED', 'halt', `${this.#position.toString()}: ${what}; ${advice}`);
  }
}
