import type { Position } from '../model/position.ts';
import type { RowCursor } from '../model/row.ts';
import type { TransactionGroup } from '../model/source.ts';
import { EventReader } from './event-reader.ts';
import { GroupBuilder } from './group-builder.ts';
import { type LargeTransaction, type Piece, SecondRead } from './large-transaction.ts';
import { LogPosition } from './log-position.ts';
import type { KnownOutbox } from './outbox-table.ts';
import type { Payload } from './payload.ts';
import { PreparedXa } from './prepared-xa.ts';
import type { Reunion } from './reunion.ts';
import type { SourceCounters } from './source-counters.ts';
import { type OnDefinition, TableRegistry } from './table-registry.ts';
import { TransactionAssembler } from './transaction-assembler.ts';
import { TransactionCursor } from './transaction-cursor.ts';

export interface LogReaderOptions {
  /** A transaction boundary, or the transaction to begin with: one that was too large and has committed. */
  readonly from: Position | LargeTransaction;
  readonly outboxes: readonly KnownOutbox[];
  /** Schema of the relay's own tables. */
  readonly relaySchema: string;
  /** The server compares names without regard to case. */
  readonly ignoreCase: boolean;
  /** The log is a MariaDB's. */
  readonly mariadb: boolean;
  readonly maxTransactionBytes: number;
  readonly counters: SourceCounters;
  /** Of the streams before; default: none. */
  readonly prepared?: PreparedXa;
  /** Events that cannot be read do not end the stream; their transactions are handed on without rows. Default: false. */
  readonly tolerant?: boolean;
  /** What is met before `from`: events are handed over from its beginning on. Default: they begin at `from`. */
  readonly reunion?: Reunion | null;
  /** Given: nothing is read but statements that may have changed the columns of an outbox table. */
  readonly onDefinition?: OnDefinition;
}

/** The log of one server from a position on: events in, transactions out. Pure: no socket, no clock. */
export class LogReader {
  readonly #events: EventReader;
  readonly #assembler: TransactionAssembler;
  readonly #groups: GroupBuilder;
  readonly #cursor: TransactionCursor;
  readonly #position: LogPosition;
  readonly #secondRead: SecondRead | null;

  constructor(options: LogReaderOptions) {
    const { from, maxTransactionBytes, counters, prepared = new PreparedXa(), onDefinition = null } = options;
    const { tolerant = false, reunion = null } = options;
    this.#secondRead = 'begin' in from ? new SecondRead(from) : null;
    const begin = 'begin' in from ? from.begin : from;
    const position = new LogPosition(reunion?.begin ?? begin);
    this.#position = position;
    this.#cursor = new TransactionCursor(counters);
    const tables = new TableRegistry({ ...options, position, onDefinition });
    this.#groups = new GroupBuilder(begin, this.#cursor);
    const groups = this.#groups;
    this.#assembler = new TransactionAssembler({
      ...{ position, tables, groups, counters, prepared, maxTransactionBytes, tolerant },
      secondRead: this.#secondRead,
    });
    this.#events = new EventReader({ position, tables, groups, assembler: this.#assembler, tolerant, reunion });
  }

  /** Row bytes of the transactions that the next group will hold. */
  get heldBytes(): number {
    return this.#groups.heldBytes;
  }

  /** A committed transaction whose rows were too many to be kept: nothing may be handed over behind it. */
  get large(): LargeTransaction | null {
    return this.#assembler.large;
  }

  /** All rows of the transaction to begin with have been read. */
  get isSecondReadWhole(): boolean {
    return this.#secondRead?.isWhole ?? false;
  }

  /**
   * One event, in order. The buffer is kept. Throws a RelayError: nothing behind it can be read then. Gives a payload
   * that is too large to be read at once: what comes out of it is to be handed to `inside` before the next event.
   */
  event(buffer: Buffer, start: number, end: number): Payload | null {
    return this.#events.event(buffer, start, end);
  }

  /** What comes out of a payload, cut anywhere. The buffer is kept. What it throws is for `insideFails`. */
  inside(piece: Buffer): void {
    this.#events.inside(piece);
  }

  /** The payload has been read to its end. What it throws is for `insideFails`. */
  insideEnds(): void {
    this.#events.insideEnds();
  }

  /** The payload cannot be read, and nothing more of it is handed over. Throws a RelayError unless it is passed over. */
  insideFails(error: unknown): void {
    this.#events.insideFails(error);
  }

  /** Rows of the transaction to begin with since the last piece; null when there are none. */
  takePiece(): Piece | null {
    return this.#secondRead?.take() ?? null;
  }

  rowsOf({ events }: Piece): RowCursor {
    return this.#cursor.open(events, this.#position);
  }

  /** The end of a socket chunk: what it completed; null when it completed nothing. */
  seal(): TransactionGroup | null {
    this.#assembler.settle();
    return this.#groups.seal();
  }
}
