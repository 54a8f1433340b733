import { type Fault, fault, RelayError } from '../../../src/model/fault.ts';
import type { Checkpoint } from '../../../src/model/position.ts';
import type { RowCursor } from '../../../src/model/row.ts';
import type { Source, Transaction, TransactionGroup } from '../../../src/model/source.ts';
import type { Life } from './life.ts';
import { type Entry, landmarkOf, type ServerLog } from './server-log.ts';
import { cursorOf, type TableRow } from './table.ts';

/** The binary log as one process of the relay reads it. */
export class SimulatedSource implements Source {
  readonly #log: ServerLog;
  readonly #life: Life;
  /** Ends the streams that are open. */
  #cut = new AbortController();

  /** Behind the last entry that was read, and routed; -1: nothing is read now. */
  readThrough = -1;

  constructor(log: ServerLog, life: Life) {
    this.#log = log;
    this.#life = life;
  }

  /** The connection dies. */
  cut(): void {
    this.#cut.abort();
    this.#cut = new AbortController();
  }

  async *stream(from: Checkpoint, signal: AbortSignal, tolerant = false): AsyncIterable<TransactionGroup> {
    try {
      yield* this.#stream(from, signal, tolerant);
    } finally {
      this.readThrough = -1;
    }
  }

  async *#stream(from: Checkpoint, signal: AbortSignal, tolerant: boolean): AsyncIterable<TransactionGroup> {
    const begin = this.#log.behind(from.position);
    const cut = this.#cut.signal;
    for (let at = begin; ;) {
      await this.#life.ask('stream', () => undefined);
      this.readThrough = at;
      if (at >= this.#log.entries.length) await this.#grown(signal, cut);
      if (signal.aborted) return;
      if (!this.#log.isReadable) throw fault('BINLOG_NOT_PERMITTED', 'halt', 'the right to read was taken away');
      if (at < this.#log.firstIndex) throw new RelayError(purged());
      if (cut.aborted) throw fault('BINLOG_CONNECTION_LOST', 'retry', 'the stream was cut');
      const { entries } = this.#log;
      const isTolerated = (entry: Entry): boolean => tolerant && entry.index === begin;
      if (entries[at].kind === 'unreadable' && !isTolerated(entries[at])) {
        throw fault('BINLOG_DECODE', 'retry', `r${entries[at].rows[0].number} cannot be read`);
      }
      const chunk = [entries[at++]];
      while (at < entries.length && entries[at].kind !== 'unreadable' && !this.#life.loop.isOdd()) {
        chunk.push(entries[at++]);
      }
      yield this.#groupOf(chunk);
    }
  }

  #groupOf(chunk: readonly Entry[]): TransactionGroup {
    const [first] = chunk;
    return {
      transactions: chunk.flatMap((entry) => this.#transactionOf(entry) ?? []),
      ...{ reached: chunk.at(-1)!.end, last: landmarkOf(chunk.at(-1)!) },
      skipped: [],
      worthSaving: chunk.some(({ end }) => end.file !== first.end.file),
    };
  }

  #transactionOf(entry: Entry): Transaction | null {
    const { kind } = entry;
    const isUndecodable = kind === 'undecodable' || kind === 'unreadable' || kind === 'rolled-back';
    const rows = isUndecodable ? [] : entry.rows.filter(({ isDelayed }) => !isDelayed);
    if (!isUndecodable && rows.length === 0) return null;
    return {
      ...landmarkOf(entry),
      skipped: [],
      rows: () => cursorOf(rows, kind !== 'incomplete'),
      pieces: kind === 'pieces' ? (signal) => this.#pieces(rows, signal) : null,
      undecodable: isUndecodable ? fault('BINLOG_DECODE', 'retry', `kind ${kind}`).fault : null,
    };
  }

  async *#pieces(rows: readonly TableRow[], signal: AbortSignal): AsyncIterable<RowCursor> {
    for (const row of rows) {
      await this.#life.ask('stream', () => undefined);
      if (signal.aborted) throw fault('STOPPED', 'halt', 'stopped within a transaction');
      yield cursorOf([row]);
    }
  }

  /** Resolves when there is more, or none will come. */
  #grown(signal: AbortSignal, cut: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#log.listeners.delete(wake);
        signal.removeEventListener('abort', wake);
        cut.removeEventListener('abort', wake);
        this.#life.inside(resolve);
      };
      if (signal.aborted || cut.aborted) {
        resolve();
        return;
      }
      this.#log.listeners.add(wake);
      signal.addEventListener('abort', wake, { once: true });
      cut.addEventListener('abort', wake, { once: true });
    });
  }
}

export function purged(): Fault {
  return fault('BINLOG_POSITION_UNUSABLE', 'halt', 'the log was purged').fault;
}
