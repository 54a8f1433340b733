import { RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import {
  comparePositions,
  formatPosition,
  MAX_START_OFFSET,
  type Checkpoint,
  type Position,
} from '../model/position.ts';
import type { MysqlSettings, OutboxSettings } from '../model/settings.ts';
import type { Source, TransactionGroup } from '../model/source.ts';
import { DumpConnection } from './dump-connection.ts';
import type { LargeTransaction } from './large-transaction.ts';
import { LeftRows } from './left-rows.ts';
import { LogReader } from './log-reader.ts';
import { lookAhead } from './look-ahead.ts';
import { PiecewiseTransaction } from './piecewise-transaction.ts';
import { PreparedXa } from './prepared-xa.ts';
import { Reunion } from './reunion.ts';
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
  const seen: Seen = {
    counters,
    left: new LeftRows(counters, options.log),
    prepared: new PreparedXa(),
    reached: null,
    nameless: false,
  };
  return {
    counters,
    stream: (from, signal, tolerant = false, serverUuid = null) =>
      streamFrom(options, seen, from, signal, tolerant, serverUuid),
  };
}

/** What outlives a stream. */
interface Seen {
  readonly counters: SourceCounters;
  readonly left: LeftRows;
  readonly prepared: PreparedXa;
  /** How far the streams so far have come; null before the first. */
  reached: Position | null;
  /** Rows were met whose columns the log does not name: each stream begins with reading ahead then. */
  nameless: boolean;
}

/** What a stream needs, and where it begins. */
interface StreamParts {
  readonly options: BinlogSourceOptions;
  readonly seen: Seen;
  readonly from: Position | LargeTransaction;
  /** What is to be met on the way there. */
  readonly reunion: Reunion | null;
  /** Null: to be asked for. */
  readonly facts: ServerFacts | null;
  readonly signal: AbortSignal;
  readonly tolerant: boolean;
  readonly serverUuid: string | null;
}

async function* streamFrom(
  options: BinlogSourceOptions,
  seen: Seen,
  from: Checkpoint,
  signal: AbortSignal,
  tolerant: boolean,
  serverUuid: string | null,
): AsyncGenerator<TransactionGroup, void, undefined> {
  if (signal.aborted) return;
  const parts = { options, seen, signal, tolerant, serverUuid };
  if (seen.reached !== null && comparePositions(from.position, seen.reached) > 0) seen.prepared.forget();
  seen.reached = from.position;
  let tail: Tail | null = null;
  // What is handed on in pieces goes on to its end: half a transaction that is sent is sent again by the next start.
  let inPieces = false;
  const stop = () => {
    if (!inPieces) tail?.end(null);
  };
  signal.addEventListener('abort', stop);
  try {
    const ahead = seen.nameless ? await lookAhead({ ...options, tolerant }, startOf(from), signal) : null;
    let open = await openTail({ ...parts, from: from.position, reunion: Reunion.at(from), facts: ahead });
    ({ tail } = open);
    options.log.info('binlog-streaming', { from: formatPosition(from.position) });
    while (!hasBeenAborted(signal)) {
      seen.left.tell(performance.now());
      const group = await tail.pull();
      if (hasBeenAborted(signal)) return;
      if (group !== null) {
        seen.reached = group.reached;
        yield group;
        continue;
      }
      const { large } = tail;
      if (large === null) return;
      options.log.info('binlog-second-read', { from: formatPosition(large.begin) });
      open = await openTail({ ...parts, from: large, reunion: null, facts: open.facts });
      ({ tail } = open);
      if (hasBeenAborted(signal)) return;
      inPieces = true;
      seen.reached = large.end;
      const { begin, end, sid, gno, commitMicros } = large;
      const gtid = sid === null ? null : { sid, gno };
      yield {
        transactions: [new PiecewiseTransaction(large, tail)],
        reached: end,
        last: { end, beginOffset: begin.offset, gtid, commitMicros },
        skipped: [],
        worthSaving: false,
      };
      inPieces = false;
      if (!tail.isWhole) throw new Error('a transaction in pieces was not read to its end');
    }
  } catch (error) {
    seen.nameless ||= error instanceof RelayError && error.fault.code === 'MYSQL_SCHEMA';
    if (!hasBeenAborted(signal) || inPieces) throw error;
  } finally {
    signal.removeEventListener('abort', stop);
    tail?.end(null);
  }
}

async function openTail(parts: StreamParts): Promise<{ tail: Tail; facts: ServerFacts }> {
  const { options, seen, from, reunion, facts, signal, serverUuid, tolerant } = parts;
  const { mysql, outboxes, maxTransactionBytes } = options;
  const begin = 'begin' in from ? from.begin : from;
  const isInOlderFile = reunion !== null && reunion.begin.file !== begin.file;
  const question = isInOlderFile ? 'files' : null;
  const open = await DumpConnection.open({
    mysql,
    outboxes,
    from: reunion?.begin ?? begin,
    question,
    serverUuid,
    signal,
    log: options.log,
  });
  if (isInOlderFile && open.facts.files?.includes(reunion.begin.file) === false) {
    // What came before it has been purged, the checkpoint has not.
    open.dump.close();
    return openTail({ ...parts, reunion: null });
  }
  const known = facts ?? open.facts;
  const reader = new LogReader({
    from,
    outboxes: known.outboxes,
    relaySchema: mysql.database,
    ignoreCase: known.ignoreCase,
    mariadb: known.mariadb,
    maxTransactionBytes,
    counters: seen.counters,
    prepared: seen.prepared,
    tolerant,
    reunion,
  });
  return { tail: new Tail(mysql, open.dump, reader), facts: known };
}

/** Where a dump can begin that passes the checkpoint. */
function startOf({ position, lastBegin }: Checkpoint): Position {
  return position.offset > MAX_START_OFFSET && lastBegin !== null ? lastBegin : position;
}

/** Asked anew after each await. */
function hasBeenAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
