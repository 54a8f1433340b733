import { fault, type RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { formatPosition, type Checkpoint } from '../model/position.ts';
import type { MysqlSettings, OutboxSettings } from '../model/settings.ts';
import type { Source, TransactionGroup } from '../model/source.ts';
import { DumpConnection, type OpenDump } from './dump-connection.ts';
import { GroupQueue } from './group-queue.ts';
import { LogReader } from './log-reader.ts';
import { SilenceWatch } from './silence-watch.ts';
import { newCounters, type SourceCounters } from './source-counters.ts';

export interface BinlogSourceOptions {
  readonly mysql: MysqlSettings;
  readonly outboxes: readonly OutboxSettings[];
  /** Bound of the outbox rows of one transaction, as they lie in the log. */
  readonly maxTransactionBytes: number;
  readonly log: Log;
}

export interface BinlogSource extends Source {
  readonly counters: Readonly<SourceCounters>;
}

/** The binlog over zongji's connection, each event read from its bytes. */
export function createBinlogSource(options: BinlogSourceOptions): BinlogSource {
  const counters = newCounters();
  return {
    counters,
    stream: (from, signal) => streamFrom(options, counters, from, signal),
  };
}

async function* streamFrom(
  options: BinlogSourceOptions,
  counters: SourceCounters,
  from: Checkpoint,
  signal: AbortSignal,
): AsyncGenerator<TransactionGroup, void, undefined> {
  if (signal.aborted) return;
  const { mysql, outboxes, log } = options;
  let open: OpenDump;
  try {
    open = await DumpConnection.open({ mysql, outboxes, from: from.position, signal });
  } catch (error) {
    if (hasBeenAborted(signal)) return;
    throw error;
  }
  const tail = new Tail(options, counters, from, open);
  const stop = () => tail.end(null);
  signal.addEventListener('abort', stop);
  log.info('binlog-streaming', { from: formatPosition(from.position) });
  try {
    for (let group = await tail.pull(); group !== null && !hasBeenAborted(signal); group = await tail.pull())
      yield group;
  } finally {
    signal.removeEventListener('abort', stop);
    tail.end(null);
  }
}

/** Asked anew after each await. */
function hasBeenAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** One dump, from its socket to its queue. */
class Tail {
  readonly #dump: DumpConnection;
  readonly #reader: LogReader;
  readonly #queue = new GroupQueue();
  readonly #watch: SilenceWatch;
  #inChunk = false;
  #paused = false;
  #ended = false;

  constructor(options: BinlogSourceOptions, counters: SourceCounters, from: Checkpoint, { dump, facts }: OpenDump) {
    const { mysql, maxTransactionBytes } = options;
    this.#dump = dump;
    this.#reader = new LogReader({
      from: from.position,
      outboxes: facts.outboxes,
      relaySchema: mysql.database,
      ignoreCase: facts.ignoreCase,
      maxTransactionBytes,
      counters,
    });
    this.#watch = new SilenceWatch({
      periodMs: mysql.heartbeatMs,
      onSilence: (silentMs) => this.end(fault('BINLOG_SILENT', 'retry', `nothing from the server for ${silentMs} ms`)),
    });
    dump.start({
      event: (buffer, start, end) => this.#event(buffer, start, end),
      ended: (reason) => this.end(reason),
    });
  }

  /** Null when the stream was ended without a fault. */
  async pull(): Promise<TransactionGroup | null> {
    if (this.#paused && this.#queue.isEmpty) this.#listen(true);
    return this.#queue.pull();
  }

  /** What was committed before the end is still handed on. */
  end(reason: RelayError | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#watch.close();
    this.#dump.close();
    this.#seal();
    this.#queue.end(reason);
  }

  #event(buffer: Buffer, start: number, end: number): void {
    if (this.#ended) return;
    if (!this.#inChunk) {
      this.#inChunk = true;
      // All events of a chunk are handed over within one turn: this runs behind the last of them.
      queueMicrotask(() => this.#chunkRead());
    }
    try {
      this.#reader.event(buffer, start, end);
    } catch (error) {
      this.end(error as RelayError);
    }
  }

  #chunkRead(): void {
    this.#inChunk = false;
    if (this.#ended) return;
    this.#watch.heard();
    this.#seal();
    if (this.#queue.isFull && !this.#paused) this.#listen(false);
  }

  #seal(): void {
    const bytes = this.#reader.heldBytes;
    const group = this.#reader.seal();
    if (group !== null) this.#queue.push(group, bytes);
  }

  #listen(listening: boolean): void {
    this.#paused = !listening;
    this.#watch.listen(listening);
    if (listening) this.#dump.resume();
    else this.#dump.pause();
  }
}
