import { RelayError, type Fault } from '../model/fault.ts';
import type { Position } from '../model/position.ts';
import { fold } from './fold.ts';
import type { GroupBuilder } from './group-builder.ts';
import { GroupStart } from './gtid-event.ts';
import { InsertedIds } from './inserted-ids.ts';
import type { LargeTransaction, SecondRead } from './large-transaction.ts';
import type { LogPosition } from './log-position.ts';
import { OpenTransaction } from './open-transaction.ts';
import type { PreparedXa } from './prepared-xa.ts';
import type { Statement } from './query-event.ts';
import { RowReader } from './row-reader.ts';
import type { RowsEvent } from './rows-event.ts';
import type { SourceCounters } from './source-counters.ts';
import { TableKind, type TableRegistry } from './table-registry.ts';
import { incident, tooLarge, unread, Unread, whyUndecodable } from './undecodable.ts';
import type { XaPrepare } from './xa-prepare.ts';

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
  readonly prepared: PreparedXa;
  readonly maxTransactionBytes: number;
  /** A transaction that cannot be read is handed on without its rows. */
  readonly tolerant: boolean;
  /** Of the transaction that the stream begins with; null for a stream that begins anywhere. */
  readonly secondRead: SecondRead | null;
}

/**
 * Events to transactions. Rows are kept from their event to the commit event, those of outbox tables only. A
 * transaction that might hold outbox rows and cannot be understood is given up: its further events are passed over, and
 * in its place it is handed on without rows.
 */
export class TransactionAssembler {
  readonly #position: LogPosition;
  readonly #tables: TableRegistry;
  readonly #groups: GroupBuilder;
  readonly #counters: SourceCounters;
  readonly #prepared: PreparedXa;
  readonly #maxBytes: number;
  readonly #tolerant: boolean;
  readonly #folder = new RowReader();
  readonly #open = new OpenTransaction();
  readonly #group = new GroupStart();
  #state: State = 'between';
  /** Our own transaction: all of it is passed over. */
  #own = false;
  #sawTable = false;
  /** It touched something else than `cdc_relay_%` tables; what our own goes on to touch is not looked at. */
  #foreign = false;
  #sawOutbox = false;
  /** Why it was given up. */
  #undecodable: Fault | null = null;
  #secondRead: SecondRead | null;
  /** Of a transaction that is too large. */
  #ids = new InsertedIds();
  #large: LargeTransaction | null = null;

  constructor(options: AssemblerOptions) {
    this.#secondRead = options.secondRead;
    this.#position = options.position;
    this.#tables = options.tables;
    this.#groups = options.groups;
    this.#counters = options.counters;
    this.#prepared = options.prepared;
    this.#maxBytes = options.maxTransactionBytes;
    this.#tolerant = options.tolerant;
  }

  get isBetween(): boolean {
    return this.#state === 'between';
  }

  /** True in a transaction whose rows are passed over unread. */
  get passesOver(): boolean {
    return this.#own || this.#undecodable !== null;
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
    if (this.hasRows) {
      const error = new RangeError('a transaction begins inside another');
      this.giveUp(whyUndecodable(error, this.#tolerant, `the transaction at ${this.#beginning} has no end`), 0);
    }
    if (this.#state !== 'between') this.commit(this.#before);
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
      case 'xa commit':
        this.#enter(seconds);
        // Its rows have not been kept: they may have been prepared long ago.
        if (this.#prepared.decided(statement.xid)) this.giveUp(unread(this.#here, Unread.Xa), seconds);
        this.commit();
        return;
      case 'xa rollback':
        this.#enter(seconds);
        this.#prepared.decided(statement.xid);
        this.commit();
        return;
      case 'commit':
        this.commit();
        return;
      case 'rollback':
        this.#open.clear();
        this.#undecodable = null;
        this.commit();
        return;
      case 'savepoint':
        this.#open.savepoint(statement.name);
        return;
      case 'rollback to':
        if (!this.#open.rollBackTo(statement.name) && this.hasRows)
          this.giveUp(unread(this.#here, Unread.Savepoint), seconds);
        return;
      case 'other':
        this.#text(statement.text, statement.schema, seconds);
    }
  }

  table(kind: TableKind, seconds: number): void {
    if (this.#state !== 'inside') this.#enter(seconds);
    if (kind === TableKind.Offsets && !this.#sawTable) this.#own = true;
    if (kind === TableKind.Outbox) this.#sawOutbox = true;
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
        this.giveUp(unread(this.#here, Unread.NoKey), event.seconds);
        return;
      }
    } else if (!this.hasRows) {
      // Rows from before: none of the tail's. Only REPLACE is of interest.
      if (event.change === 'update' && event.before?.holdsId === true)
        fold([event], this.#folder, this.#counters, this.#position);
      return;
    }
    if (open.isLarge && !this.#follow(event)) return;
    open.add(event);
    if (open.isLarge || open.bytes <= this.#maxBytes) return;
    this.#ids = new InsertedIds();
    if (open.events.every((each) => this.#follow(each))) open.outgrow();
  }

  /** Rows that are not kept: those of a second read cannot be folded. False when the transaction is given up. */
  #follow(event: RowsEvent): boolean {
    if (!this.#ids.follow(event)) {
      this.giveUp(tooLarge(this.#beginning, this.#maxBytes), event.seconds);
      return false;
    }
    if (event.before?.holdsId === true) fold([event], this.#folder, this.#counters, this.#position);
    return true;
  }

  /** Partial updates (JSON differences) of an outbox table: of no interest unless they are about rows just inserted. */
  partialRows(seconds: number): void {
    if (this.hasRows) this.giveUp(unread(this.#here, Unread.Partial), seconds);
  }

  /** An event that no version known here writes; it must not be passed over where it might hold outbox rows. */
  unknown(seconds: number): void {
    if (this.#sawOutbox && this.#state === 'inside') this.giveUp(unread(this.#here, Unread.Type), seconds);
  }

  /** The server says that it lost events: what they were nobody knows. */
  incident(seconds: number): void {
    const isAlone = this.#state !== 'inside';
    this.giveUp(incident(this.#here), seconds);
    if (isAlone) this.commit();
  }

  /** XA PREPARE: whether it commits is said later, by a transaction of its own. In one phase it does so here. */
  prepare({ onePhase, xid }: XaPrepare): void {
    if (!onePhase) {
      this.#prepared.prepared(xid, this.hasRows || this.#undecodable !== null);
      this.#open.clear();
      this.#undecodable = null;
    }
    this.commit();
  }

  /**
   * The open transaction is handed on without rows: what it holds cannot be read, or not here. One is opened where none
   * is. Throws a RelayError in a second read: some of the rows are out.
   */
  giveUp(why: Fault, seconds: number): void {
    if (this.#own) return;
    if (this.#secondRead !== null) throw new RelayError(why);
    if (this.#state === 'over') this.#large = null;
    this.#enter(seconds);
    this.#undecodable ??= why;
    this.#open.clear();
  }

  /** A commit event; of nothing when no transaction is open. */
  commit(end: Position = this.#position): void {
    if (this.#state === 'between') return;
    if (this.#open.isLarge) {
      this.#large = this.#largeOne();
      this.#state = 'over';
      return;
    }
    if (this.#secondRead !== null) {
      this.#state = 'between';
      this.#secondRead.committed(end.offset);
      this.#secondRead = null;
      this.#own = false;
      return;
    }
    const { bytes } = this.#open;
    const events = this.#rowsAtEnd();
    this.#state = 'between';
    this.#own = false;
    if (this.#undecodable !== null) {
      this.#groups.giveUp(this.#group, this.#undecodable, end);
      this.#undecodable = null;
    } else if (events.length > 0) this.#groups.commit(this.#group, events, bytes, end);
    else this.#groups.skip(this.#group, this.#foreign ? end.offset - this.#group.begin : 0, end);
  }

  /** The log breaks off inside a transaction (the server crashed there): it was rolled back. */
  breakOff(): void {
    if (this.#secondRead !== null && this.#state !== 'between')
      throw new RangeError('the log breaks off behind a commit');
    // Where it ends was perhaps in what could not be read.
    if (this.#undecodable !== null) this.commit(this.#before);
    this.#open.clear();
    this.#own = false;
    this.#state = 'between';
  }

  /** The end of a socket chunk. */
  settle(): void {
    this.#open.settle();
  }

  /** As the transaction has left them; none when that cannot be told, which gives it up. */
  #rowsAtEnd(): RowsEvent[] {
    const { changed } = this.#open;
    const events = this.#open.take();
    // Where something was unreadable before, every image is looked at before the first row can be out.
    if (!changed && !this.#tolerant) return events;
    try {
      return fold(events, this.#folder, this.#counters, this.#position);
    } catch (error) {
      const detail = `cannot read the rows of the transaction at ${this.#beginning}`;
      this.#undecodable = whyUndecodable(error, this.#tolerant, detail);
      return [];
    }
  }

  /** Where the event that is being handed over begins; for messages. */
  get #here(): string {
    return this.#position.toString();
  }

  /** The same. */
  get #before(): Position {
    return { file: this.#position.file, offset: this.#position.eventAt };
  }

  /** Of the open transaction; for messages. */
  get #beginning(): string {
    return `${this.#position.file}:${this.#group.begin}`;
  }

  #largeOne(): LargeTransaction {
    const { file, offset } = this.#position;
    const { sid, gno, commitMicros, begin } = this.#group;
    const rolledBack = this.#open.rolledBack;
    return { begin: { file, offset: begin }, end: { file, offset }, sid, gno, commitMicros, rolledBack };
  }

  #enter(seconds: number): void {
    if (this.#state === 'between') this.#start().none(seconds);
    this.#state = 'inside';
  }

  #start(): GroupStart {
    this.#state = 'opened';
    this.#group.file = this.#position.file;
    this.#group.begin = this.#position.eventAt;
    this.#own = false;
    this.#sawTable = false;
    this.#foreign = false;
    this.#sawOutbox = false;
    this.#undecodable = null;
    return this.#group;
  }

  /** Outside a transaction it is one by itself. */
  #text(text: string, schema: string, seconds: number): void {
    const isAlone = this.#state !== 'inside';
    this.#enter(seconds);
    this.#foreign = true;
    const meaning = this.#tables.meaning(text, schema);
    if (meaning === 'inserts' || (meaning === 'changes' && this.hasRows))
      this.giveUp(unread(this.#here, Unread.Text), seconds);
    if (isAlone) this.commit();
  }
}
