import { fault, type RelayError } from '../model/fault.ts';
import type { RowCursor } from '../model/row.ts';
import type { MysqlSettings } from '../model/settings.ts';
import type { TransactionGroup } from '../model/source.ts';
import type { DumpConnection } from './dump-connection.ts';
import { GroupQueue } from './group-queue.ts';
import type { LargeTransaction, Piece } from './large-transaction.ts';
import type { LogReader } from './log-reader.ts';
import { inflateInSteps, type Payload } from './payload.ts';
import { SilenceWatch } from './silence-watch.ts';

/** One dump, from its socket to its queues. */
export class Tail {
  readonly #dump: DumpConnection;
  readonly #reader: LogReader;
  readonly #groups = new GroupQueue();
  /** Of the transaction that it begins with. */
  readonly #pieces = new GroupQueue<Piece>();
  readonly #watch: SilenceWatch;
  #inChunk = false;
  /** Within a payload too large to be read at once: the events behind it. */
  #behind: { readonly buffer: Buffer; readonly start: number; readonly end: number }[] | null = null;
  #paused = false;
  #ended = false;

  /** `dump` is not started yet; it begins where `reader` does. */
  constructor(mysql: MysqlSettings, dump: DumpConnection, reader: LogReader) {
    this.#dump = dump;
    this.#reader = reader;
    this.#watch = new SilenceWatch({
      periodMs: mysql.heartbeatMs,
      beginsWithinMs: mysql.queryTimeoutMs,
      onSilence: (silentMs) => this.end(fault('BINLOG_SILENT', 'retry', `nothing from the server for ${silentMs} ms`)),
    });
    dump.start({
      event: (buffer, start, end) => this.#event(buffer, start, end),
      // A large event takes its time over a slow line: each part of it is a sign, not its end alone.
      heard: () => this.#watch.heard(),
      ended: (reason) => this.end(reason),
    });
  }

  /** Ended the stream: it has committed, but its rows were too many to be kept. */
  get large(): LargeTransaction | null {
    return this.#reader.large;
  }

  /** All pieces have been read. */
  get isWhole(): boolean {
    return this.#reader.isSecondReadWhole && this.#pieces.isEmpty;
  }

  /** Null when the stream was ended without a fault. */
  pull(): Promise<TransactionGroup | null> {
    this.#listenAgain();
    return this.#groups.pull();
  }

  /** Of the transaction that it begins with; null behind the last. */
  async pullPiece(): Promise<RowCursor | null> {
    this.#listenAgain();
    const piece = await this.#pieces.pull();
    return piece === null ? null : this.#reader.rowsOf(piece);
  }

  /** What was committed before the end is still handed on. */
  end(reason: RelayError | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#watch.close();
    this.#dump.close();
    this.#seal();
    this.#pieces.end(reason ?? fault('STOPPED', 'retry', 'a transaction was not read to its end'));
    this.#groups.end(reason);
  }

  #event(buffer: Buffer, start: number, end: number): void {
    if (this.#ended) return;
    if (this.#behind !== null) {
      this.#behind.push({ buffer, start, end });
      return;
    }
    if (!this.#inChunk) {
      this.#inChunk = true;
      // All events of a chunk are handed over within one turn: this runs behind the last of them.
      queueMicrotask(() => this.#chunkRead());
    }
    try {
      const payload = this.#reader.event(buffer, start, end);
      if (payload !== null) void this.#readInside(payload);
      else if (this.#reader.large !== null) this.end(null);
    } catch (error) {
      this.end(error as RelayError);
    }
  }

  /** Never rejects. The socket is paused meanwhile; what has come of it waits. */
  async #readInside(payload: Payload): Promise<void> {
    this.#behind = [];
    this.#listen(false);
    try {
      for await (const piece of inflateInSteps(payload)) {
        if (this.#isOver()) return;
        this.#reader.inside(piece);
        this.#seal();
        await this.#pieces.room();
      }
      if (this.#isOver()) return;
      this.#reader.insideEnds();
    } catch (error) {
      if (!this.#isPassedOver(error)) return;
    }
    if (this.#reader.large !== null) {
      this.end(null);
      return;
    }
    const behind = this.#behind;
    this.#behind = null;
    for (const { buffer, start, end } of behind) this.#event(buffer, start, end);
    this.#seal();
    if (!this.#isFull) this.#listenAgain();
  }

  /** What cannot be read of a payload ends the stream, or not. */
  #isPassedOver(error: unknown): boolean {
    try {
      this.#reader.insideFails(error);
      return true;
    } catch (thrown) {
      this.end(thrown as RelayError);
      return false;
    }
  }

  #chunkRead(): void {
    this.#inChunk = false;
    if (this.#ended) return;
    this.#seal();
    if (this.#isFull && !this.#paused) this.#listen(false);
  }

  #seal(): void {
    const piece = this.#reader.takePiece();
    if (piece !== null) this.#pieces.push(piece, piece.bytes);
    if (this.#reader.isSecondReadWhole) this.#pieces.end(null);
    const bytes = this.#reader.heldBytes;
    const group = this.#reader.seal();
    if (group !== null) this.#groups.push(group, bytes);
  }

  get #isFull(): boolean {
    return this.#groups.isFull || this.#pieces.isFull;
  }

  /** Asked anew after each await. */
  #isOver(): boolean {
    return this.#ended;
  }

  #listenAgain(): void {
    const isEmpty = this.#groups.isEmpty && this.#pieces.isEmpty;
    if (this.#paused && isEmpty && this.#behind === null && !this.#ended) this.#listen(true);
  }

  #listen(listening: boolean): void {
    this.#paused = !listening;
    this.#watch.listen(listening);
    if (listening) this.#dump.resume();
    else this.#dump.pause();
  }
}
