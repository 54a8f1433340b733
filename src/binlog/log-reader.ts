import type { Position } from '../model/position.ts';
import type { TransactionGroup } from '../model/source.ts';
import { EventReader } from './event-reader.ts';
import { GroupBuilder } from './group-builder.ts';
import { LogPosition } from './log-position.ts';
import type { KnownOutbox } from './outbox-table.ts';
import type { SourceCounters } from './source-counters.ts';
import { TableRegistry } from './table-registry.ts';
import { TransactionAssembler } from './transaction-assembler.ts';
import { TransactionCursor } from './transaction-cursor.ts';

export interface LogReaderOptions {
  /** A transaction boundary. */
  readonly from: Position;
  readonly outboxes: readonly KnownOutbox[];
  /** Schema of the relay's own tables. */
  readonly relaySchema: string;
  /** The server compares names without regard to case. */
  readonly ignoreCase: boolean;
  readonly maxTransactionBytes: number;
  readonly counters: SourceCounters;
}

/** The log of one server from a position on: events in, transactions out. Pure: no socket, no clock. */
export class LogReader {
  readonly #events: EventReader;
  readonly #assembler: TransactionAssembler;
  readonly #groups: GroupBuilder;

  constructor({ from, outboxes, relaySchema, ignoreCase, maxTransactionBytes, counters }: LogReaderOptions) {
    const position = new LogPosition(from);
    const tables = new TableRegistry({ outboxes, relaySchema, ignoreCase });
    this.#groups = new GroupBuilder(position, new TransactionCursor(counters));
    const groups = this.#groups;
    this.#assembler = new TransactionAssembler({ position, tables, groups, counters, maxTransactionBytes });
    this.#events = new EventReader({ position, tables, groups, assembler: this.#assembler });
  }

  /** Row bytes of the transactions that the next group will hold. */
  get heldBytes(): number {
    return this.#groups.heldBytes;
  }

  /** One event, in order. The buffer is kept. Throws a RelayError: nothing behind it can be read then. */
  event(buffer: Buffer, start: number, end: number): void {
    this.#events.event(buffer, start, end);
  }

  /** The end of a socket chunk: what it completed; null when it completed nothing. */
  seal(): TransactionGroup | null {
    this.#assembler.settle();
    return this.#groups.seal();
  }
}
