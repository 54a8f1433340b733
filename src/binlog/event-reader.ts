import { fault, RelayError } from '../model/fault.ts';
import type { Position } from '../model/position.ts';
import { CHECKSUM_BYTES, checksumBytesOf, checksumHolds } from './checksum.ts';
import { readHeartbeat, readHeartbeatV2, readRotate } from './control-events.ts';
import { ARTIFICIAL_FLAG, END_AT, EventType, FLAGS_AT, HEADER_BYTES, SIZE_AT, TYPE_AT } from './event-header.ts';
import type { GroupBuilder } from './group-builder.ts';
import { u16, u32, u48 } from './little-endian.ts';
import type { LogPosition } from './log-position.ts';
import { PackedReader } from './packed-reader.ts';
import type { RowsEvent } from './rows-event.ts';
import { readStatement } from './query-event.ts';
import type { TableRegistry } from './table-registry.ts';
import { TABLE_ID_BYTES } from './table-map.ts';
import type { TransactionAssembler } from './transaction-assembler.ts';

/** The number of a row event that only closes a statement. */
const NO_TABLE = 0xff_ffff;

export interface EventReaderOptions {
  readonly position: LogPosition;
  readonly tables: TableRegistry;
  readonly groups: GroupBuilder;
  readonly assembler: TransactionAssembler;
}

/**
 * The tap: takes every event of a dump, in order, as bytes. Positions follow all of them; what marks transactions and
 * outbox rows goes to the assembler; the rest is passed over, types that are not known too.
 */
export class EventReader {
  readonly #position: LogPosition;
  readonly #tables: TableRegistry;
  readonly #groups: GroupBuilder;
  readonly #assembler: TransactionAssembler;
  #checksumBytes = CHECKSUM_BYTES;

  constructor({ position, tables, groups, assembler }: EventReaderOptions) {
    this.#position = position;
    this.#tables = tables;
    this.#groups = groups;
    this.#assembler = assembler;
  }

  /** Throws a RelayError; the stream is then at its end. */
  event(buffer: Buffer, start: number, end: number): void {
    try {
      this.#event(buffer, start, end);
    } catch (error) {
      if (error instanceof RelayError) throw error;
      const type = end > start + TYPE_AT ? buffer[start + TYPE_AT] : 'unknown';
      throw fault(
        'BINLOG_DECODE',
        'retry',
        `cannot read the event at ${this.#position.toString()} (type ${type})`,
        error,
      );
    }
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
    this.#take(type, b, start, end, bodyEnd);
    if (this.#assembler.isBetween) this.#groups.reach(this.#position);
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
        // One byte: prepared and committed in one.
        assembler.prepare(b[start + HEADER_BYTES] !== 0);
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
        throw fault(
          'BINLOG_INCIDENT',
          'halt',
          `${this.#position.toString()}: the server says that it lost events here`,
        );
      case EventType.TransactionPayload:
        throw fault(
          'BINLOG_UNSUPPORTED',
          'halt',
          `${this.#position.toString()}: a compressed transaction, which may hold outbox rows; ` +
            'binlog_transaction_compression must be OFF',
        );
      default:
        this.#foreignFlavour(type, b, start);
    }
  }

  #rows(type: number, b: Buffer, start: number, end: number, bodyEnd: number): void {
    const assembler = this.#assembler;
    const id = u48(b, start + HEADER_BYTES);
    const table = this.#tables.outbox(id);
    if (table === null) return;
    if (table === undefined) {
      if (id === NO_TABLE) return;
      throw new RangeError('a row event of a table that no table map named');
    }
    const change = CHANGES[type];
    if (change === 'partial') {
      assembler.partialRows();
      return;
    }
    if (change === 'delete' && !assembler.hasRows) return;
    if (this.#checksumBytes > 0 && !checksumHolds(b, start, end)) throw new RangeError('the checksum is wrong');
    // Table id, flags; from version 2 on further data, whose length counts itself.
    const flagsEnd = start + HEADER_BYTES + TABLE_ID_BYTES + 2;
    const reader = new PackedReader(b, type >= EventType.WriteRows ? flagsEnd + u16(b, flagsEnd) : flagsEnd, bodyEnd);
    const columns = reader.integer();
    const bitmapBytes = (columns + 7) >> 3;
    const first = table.plan(b, reader.skip(bitmapBytes), columns);
    const second = change === 'update' ? table.plan(b, reader.skip(bitmapBytes), columns) : null;
    if (reader.left === 0) return;
    assembler.rows({
      change,
      plan: second ?? first,
      before: second === null ? null : first,
      buffer: b,
      start: reader.at,
      end: bodyEnd,
      seconds: u32(b, start),
    });
  }

  #rotate(b: Buffer, start: number, end: number): void {
    const { file, offset } = readRotate(b, start, end);
    this.#position.rotate(file, offset);
  }

  /** The server has nothing more than this; it may have left events out on the way. */
  #heartbeat({ file, offset }: Position): void {
    if (file === this.#position.file && this.#assembler.isBetween) this.#position.advance(0, offset % 2 ** 32);
  }

  /** MariaDB's compressed events; all other types mean nothing here. */
  #foreignFlavour(type: number, b: Buffer, start: number): void {
    const rows = type >= EventType.MariadbCompressedRowsFirst && type <= EventType.MariadbCompressedRowsLast;
    const ours = rows && !this.#assembler.passesOver && this.#tables.outbox(u48(b, start + HEADER_BYTES)) !== null;
    if (ours || type === EventType.MariadbCompressedQuery) {
      throw fault(
        'BINLOG_UNSUPPORTED',
        'halt',
        `${this.#position.toString()}: a compressed event; log_bin_compress must be OFF`,
      );
    }
  }
}

const CHANGES: Readonly<Record<number, RowsEvent['change'] | 'partial'>> = {
  [EventType.WriteRowsV1]: 'insert',
  [EventType.WriteRows]: 'insert',
  [EventType.UpdateRowsV1]: 'update',
  [EventType.UpdateRows]: 'update',
  [EventType.DeleteRowsV1]: 'delete',
  [EventType.DeleteRows]: 'delete',
  [EventType.PartialUpdateRows]: 'partial',
};
