import { fault, RelayError } from '../model/fault.ts';
import type { Position } from '../model/position.ts';
import { CHECKSUM_BYTES, checksumBytesOf, checksumHolds } from './checksum.ts';
import { readHeartbeat, readHeartbeatV2, readRotate } from './control-events.ts';
import {
  ARTIFICIAL_FLAG,
  END_AT,
  EventType,
  FLAGS_AT,
  HEADER_BYTES,
  IGNORABLE_FLAG,
  SIZE_AT,
  TYPE_AT,
} from './event-header.ts';
import { MEANINGLESS, NEVER_PACKED, OF_THE_FILE, STATEMENTS } from './event-kinds.ts';
import { EventSplitter } from './event-splitter.ts';
import type { GroupBuilder } from './group-builder.ts';
import { u16, u32, u48 } from './little-endian.ts';
import type { LogPosition } from './log-position.ts';
import { inflateEvent, isCompressedRows } from './mariadb-compressed.ts';
import { AT_ONCE_BYTES, inflateAtOnce, readPayload, type Payload } from './payload.ts';
import type { Reunion } from './reunion.ts';
import type { OutboxTable } from './outbox-table.ts';
import { CHANGES, readRowsEvent, type RowsEvent } from './rows-event.ts';
import { readStatement } from './query-event.ts';
import type { TableRegistry } from './table-registry.ts';
import type { TransactionAssembler } from './transaction-assembler.ts';
import { UndecodableError, whyUndecodable } from './undecodable.ts';
import { readXaPrepare } from './xa-prepare.ts';

/** The number of a row event that only closes a statement. */
const NO_TABLE = 0xff_ffff;

export interface EventReaderOptions {
  readonly position: LogPosition;
  readonly tables: TableRegistry;
  readonly groups: GroupBuilder;
  readonly assembler: TransactionAssembler;
  /** A transaction that cannot be read is passed over by the headers of its events. */
  readonly tolerant: boolean;
  /** What the stream must meet before it has news. */
  readonly reunion: Reunion | null;
}

/**
 * The tap: takes every event of a dump, in order, as bytes. Positions follow all of them; what marks transactions and
 * outbox rows goes to the assembler; the rest is passed over.
 */
export class EventReader {
  readonly #position: LogPosition;
  readonly #tables: TableRegistry;
  readonly #groups: GroupBuilder;
  readonly #assembler: TransactionAssembler;
  readonly #tolerant: boolean;
  readonly #inside = new EventSplitter((b, start, end) => this.#insideEvent(b, start, end));
  #checksumBytes = CHECKSUM_BYTES;
  #large: Payload | null = null;
  #reunion: Reunion | null;

  constructor({ position, tables, groups, assembler, tolerant, reunion }: EventReaderOptions) {
    this.#position = position;
    this.#tables = tables;
    this.#groups = groups;
    this.#assembler = assembler;
    this.#tolerant = tolerant;
    this.#reunion = reunion;
  }

  /**
   * Null, or a payload too large to be read at once: what comes out of it is to be handed to `inside`, then its end to
   * `insideEnds`, before the next event. Throws a RelayError; the stream is then at its end.
   */
  event(buffer: Buffer, start: number, end: number): Payload | null {
    try {
      this.#event(buffer, start, end);
      if (this.#large === null) return null;
    } catch (error) {
      throw this.broken(error, end > start + TYPE_AT ? buffer[start + TYPE_AT] : 'unknown');
    }
    const large = this.#large;
    this.#large = null;
    return large;
  }

  /** A piece of what is in a payload. Throws anything: it is for `insideFails`. */
  inside(piece: Buffer): void {
    this.#inside.push(piece);
  }

  /** Throws anything: it is for `insideFails`. */
  insideEnds(): void {
    this.#inside.end();
    if (this.#assembler.isBetween) this.#groups.reach(this.#position);
  }

  /** The payload cannot be read: its transaction is passed over, or a RelayError is thrown. */
  insideFails(error: unknown): void {
    try {
      this.#passOver(error, EventType.TransactionPayload, 0);
    } catch (thrown) {
      throw this.broken(thrown, EventType.TransactionPayload);
    }
    if (this.#assembler.isBetween) this.#groups.reach(this.#position);
  }

  /** What is thrown when the event read last cannot be read. */
  broken(error: unknown, type: number | string): RelayError {
    return error instanceof RelayError ? error : fault('BINLOG_DECODE', 'retry', this.#unreadable(type), error);
  }

  #unreadable(type: number | string): string {
    return `cannot read the event at ${this.#position.toString()} (type ${type})`;
  }

  #event(b: Buffer, start: number, end: number): void {
    const size = end - start;
    if (size < HEADER_BYTES + this.#checksumBytes || u32(b, start + SIZE_AT) !== size) {
      throw new RangeError('an event whose size is not that of its packet');
    }
    const type = b[start + TYPE_AT];
    const bodyEnd = end - this.#checksumBytes;
    const inFile = (u16(b, start + FLAGS_AT) & ARTIFICIAL_FLAG) === 0;
    if (inFile && type !== EventType.Heartbeat && type !== EventType.HeartbeatV2) {
      if (!this.#position.advance(size, u32(b, start + END_AT))) throw new RangeError('an event out of its place');
    }
    if (this.#reunion !== null) {
      this.#onTheWay(this.#reunion, type, inFile, b, start, end, bodyEnd);
      return;
    }
    try {
      this.#take(type, b, start, end, bodyEnd);
    } catch (error) {
      this.#passOver(error, type, u32(b, start));
    }
    if (this.#assembler.isBetween) this.#groups.reach(this.#position);
  }

  /** Before the place where the stream begins: only what tells of the file itself is taken. */
  #onTheWay(
    reunion: Reunion,
    type: number,
    inFile: boolean,
    b: Buffer,
    start: number,
    end: number,
    bodyEnd: number,
  ): void {
    if (type === EventType.Heartbeat) reunion.logEnds(readHeartbeat(b, start, bodyEnd));
    else if (type === EventType.HeartbeatV2) reunion.logEnds(readHeartbeatV2(b, start, bodyEnd));
    else if (OF_THE_FILE.has(type)) this.#take(type, b, start, end, bodyEnd);
    else if (inFile && !reunion.hasMet && !MEANINGLESS.has(type)) {
      this.#checkSum(b, start, end, bodyEnd);
      reunion.meet(type, b, start, bodyEnd);
    }
    if (reunion.isOver(this.#position)) this.#reunion = null;
  }

  /** Gives up the transaction that the event belongs to. Throws what is not of one transaction alone. */
  #passOver(error: unknown, type: number, seconds: number): void {
    const why = whyUndecodable(error, this.#tolerant && !OF_THE_FILE.has(type), this.#unreadable(type));
    this.#assembler.giveUp(why, seconds);
    if (why.code === 'BINLOG_DECODE' && STATEMENTS.has(type)) this.#tables.mayHaveChanged();
    if (type !== EventType.TransactionPayload) return;
    // Its commit is in it.
    this.#inside.reset();
    this.#assembler.commit();
  }

  #take(type: number, b: Buffer, start: number, end: number, bodyEnd: number): void {
    const assembler = this.#assembler;
    switch (type) {
      case EventType.Gtid:
        assembler.opens().readGtid(b, start, bodyEnd, u32(b, start));
        break;
      case EventType.Query:
      case EventType.ExecuteLoadQuery:
        assembler.statement(readStatement(b, start, bodyEnd), u32(b, start));
        break;
      case EventType.TableMap:
        if (!assembler.passesOver) {
          const seconds = u32(b, start);
          assembler.table(this.#tables.see(b, start, bodyEnd, seconds), seconds);
        }
        break;
      case EventType.WriteRows:
      case EventType.WriteRowsV1:
      case EventType.UpdateRows:
      case EventType.UpdateRowsV1:
      case EventType.DeleteRows:
      case EventType.DeleteRowsV1:
      case EventType.PartialUpdateRows:
        if (!assembler.passesOver) this.#rows(type, b, start, end, bodyEnd);
        break;
      case EventType.Xid:
        assembler.commit();
        break;
      case EventType.XaPrepare:
        assembler.prepare(readXaPrepare(b, start, bodyEnd));
        break;
      case EventType.AnonymousGtid:
        assembler.opens().readAnonymous(b, start, bodyEnd, u32(b, start));
        break;
      case EventType.TaggedGtid:
        assembler.opens().readTagged(b, start, bodyEnd, u32(b, start));
        break;
      case EventType.MariadbGtid:
        assembler.opens().readMariadb(b, start, bodyEnd, u32(b, start));
        assembler.entered();
        break;
      case EventType.Rotate:
        this.#rotate(b, start, end);
        break;
      case EventType.FormatDescription:
        this.#checksumBytes = checksumBytesOf(b, end);
        this.#tables.forget();
        assembler.breakOff();
        break;
      case EventType.Stop:
        assembler.breakOff();
        break;
      case EventType.Heartbeat:
        this.#heartbeat(readHeartbeat(b, start, bodyEnd));
        break;
      case EventType.HeartbeatV2:
        this.#heartbeat(readHeartbeatV2(b, start, bodyEnd));
        break;
      case EventType.Incident:
        assembler.incident(u32(b, start));
        break;
      case EventType.TransactionPayload:
        this.#payload(b, start, end, bodyEnd);
        break;
      case EventType.MariadbCompressedQuery:
        this.#inflated(b, start, end, bodyEnd);
        break;
      default:
        if (isCompressedRows(type)) {
          if (!assembler.passesOver && this.#outbox(b, start) !== null) this.#inflated(b, start, end, bodyEnd);
        } else if (!MEANINGLESS.has(type) && (u16(b, start + FLAGS_AT) & IGNORABLE_FLAG) === 0)
          assembler.unknown(u32(b, start));
    }
  }

  /** The events in it are no part of the file: the payload's own event moves the position. */
  #payload(b: Buffer, start: number, end: number, bodyEnd: number): void {
    this.#checkSum(b, start, end, bodyEnd);
    const payload = readPayload(b, start, bodyEnd);
    if (payload.isCompressed && payload.inflatedBytes > AT_ONCE_BYTES) {
      this.#large = payload;
      return;
    }
    this.#inside.push(payload.isCompressed ? inflateAtOnce(payload) : payload.bytes);
    this.#inside.end();
  }

  #insideEvent(b: Buffer, start: number, end: number): void {
    const type = b[start + TYPE_AT];
    if (NEVER_PACKED.has(type)) throw new RangeError(`an event of type ${type} inside a payload`);
    try {
      this.#take(type, b, start, end, end);
    } catch (error) {
      this.#passOver(error, type, u32(b, start));
    }
  }

  /** MariaDB's compressed events. */
  #inflated(b: Buffer, start: number, end: number, bodyEnd: number): void {
    this.#checkSum(b, start, end, bodyEnd);
    const event = inflateEvent(b, start, bodyEnd);
    this.#take(event[TYPE_AT], event, 0, event.length, event.length);
  }

  /** The outbox whose rows the event holds; null when it is about something else. */
  #outbox(b: Buffer, start: number): OutboxTable | null {
    const id = u48(b, start + HEADER_BYTES);
    const table = this.#tables.outbox(id);
    if (table !== undefined) return table;
    if (id === NO_TABLE) return null;
    throw new RangeError('a row event of a table that no table map named');
  }

  /** Events of a payload have none. */
  #checkSum(b: Buffer, start: number, end: number, bodyEnd: number): void {
    if (bodyEnd < end && !checksumHolds(b, start, end)) throw new RangeError('the checksum is wrong');
  }

  #rows(type: number, b: Buffer, start: number, end: number, bodyEnd: number): void {
    const assembler = this.#assembler;
    const table = this.#outbox(b, start);
    if (table === null) return;
    const change = CHANGES[type];
    if (change === 'partial') {
      assembler.partialRows(u32(b, start));
      return;
    }
    if (change === 'delete' && !assembler.hasRows) return;
    this.#checkSum(b, start, end, bodyEnd);
    let event: RowsEvent | null;
    try {
      event = readRowsEvent(table, change, b, start, bodyEnd);
    } catch (error) {
      // What is changed of rows from before is none of the tail's.
      if (error instanceof UndecodableError && change === 'update' && !assembler.hasRows) return;
      throw error;
    }
    if (event !== null) assembler.rows(event);
  }

  #rotate(b: Buffer, start: number, end: number): void {
    const { file, offset } = readRotate(b, start, end);
    this.#position.rotate(file, offset);
  }

  /** The server has nothing more than this; it may have left events out on the way. */
  #heartbeat({ file, offset }: Position): void {
    if (file === this.#position.file && this.#assembler.isBetween) this.#position.advance(0, offset % 2 ** 32);
  }
}
