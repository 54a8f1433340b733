import { RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { formatPosition, type Checkpoint, type Position } from '../model/position.ts';
import type { MysqlSettings, OutboxSettings } from '../model/settings.ts';
import type { Source, TransactionGroup } from '../model/source.ts';
import { DumpConnection } from './dump-connection.ts';
import type { LargeTransaction } from './large-transaction.ts';
import { LeftRows } from './left-rows.ts';
import { LogReader } from './log-reader.ts';
import { lookAhead } from './look-ahead.ts';
import { PiecewiseTransaction } from './piecewise-transaction.ts';
import type { ServerFacts } from './server-facts.ts';
import { newCounters, type SourceCounters } from './source-counters.ts';
import { Tail } from './tail.ts';

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
  const left = new LeftRows(counters, options.log);
  const nameless = { seen: false };
  return {
    counters,
    stream: (from, signal) => streamFrom(options, counters, left, nameless, from, signal),
  };
}

/** What a stream needs, and where it begins. */
interface StreamParts {
  readonly options: BinlogSourceOptions;
  readonly counters: SourceCounters;
  readonly from: Position | LargeTransaction;
  /** Null: to be asked for. */
  readonly facts: ServerFacts | null;
  readonly signal: AbortSignal;
}

async function* streamFrom(
  options: BinlogSourceOptions,
  counters: SourceCounters,
  left: LeftRows,
  /** Rows were met whose columns the log does not name: each stream begins with reading ahead then. */
  nameless: { seen: boolean },
  from: Checkpoint,
  signal: AbortSignal,
): AsyncGenerator<TransactionGroup, void, undefined> {
  if (signal.aborted) return;
  let tail: Tail | null = null;
  // What is handed on in pieces goes on to its end: half a transaction that is sent is sent again by the next start.
  let inPieces = false;
  const stop = () => {
    if (!inPieces) tail?.end(null);
  };
  signal.addEventListener('abort', stop);
  try {
    const ahead = nameless.seen ? await lookAhead(options, from.position, signal) : null;
    let open = await openTail({ options, counters, from: from.position, facts: ahead, signal });
    ({ tail } = open);
    options.log.info('binlog-streaming', { from: formatPosition(from.position) });
    while (!hasBeenAborted(signal)) {
      left.tell(performance.now());
      const group = await tail.pull();
      if (hasBeenAborted(signal)) return;
      if (group !== null) {
        yield group;
        continue;
      }
      const { large } = tail;
      if (large === null) return;
      options.log.info('binlog-second-read', { from: formatPosition(large.begin) });
      open = await openTail({ options, counters, from: large, facts: open.facts, signal });
      ({ tail } = open);
      if (hasBeenAborted(signal)) return;
      inPieces = true;
      yield {
        transactions: [new PiecewiseTransaction(large, tail)],
        reached: large.end,
        skipped: [],
        worthSaving: false,
      };
      inPieces = false;
      if (!tail.isWhole) throw new Error('a transaction in pieces was not read to its end');
    }
  } catch (error) {
    nameless.seen ||= error instanceof RelayError && error.fault.code === 'MYSQL_SCHEMA';
    if (!hasBeenAborted(signal) || inPieces) throw error;
  } finally {
    signal.removeEventListener('abort', stop);
    tail?.end(null);
  }
}

async function openTail({
  options,
  counters,
  from,
  facts,
  signal,
}: StreamParts): Promise<{ tail: Tail; facts: ServerFacts }> {
  const { mysql, outboxes, maxTransactionBytes } = options;
  const at = 'begin' in from ? from.begin : from;
  const open = await DumpConnection.open({ mysql, outboxes, from: at, withHeads: false, signal });
  const known = facts ?? open.facts;
  const reader = new LogReader({
    from,
    outboxes: known.outboxes,
    relaySchema: mysql.database,
    ignoreCase: known.ignoreCase,
    mariadb: known.mariadb,
    maxTransactionBytes,
    counters,
  });
  return { tail: new Tail(mysql, open.dump, reader), facts: known };
}

/** Asked anew after each await. */
function hasBeenAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
