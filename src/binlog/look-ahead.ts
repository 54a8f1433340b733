import { fault } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { comparePositions, formatPosition, type Position } from '../model/position.ts';
import type { MysqlSettings, OutboxSettings } from '../model/settings.ts';
import { DumpConnection } from './dump-connection.ts';
import { LogReader } from './log-reader.ts';
import type { ServerFacts } from './server-facts.ts';
import { newCounters } from './source-counters.ts';
import { Tail } from './tail.ts';

interface LookAheadOptions {
  readonly mysql: MysqlSettings;
  readonly outboxes: readonly OutboxSettings[];
  readonly tolerant: boolean;
  readonly log: Log;
}

/**
 * Reads the log from `from` to its end for statements that may have changed the columns of an outbox table: the
 * definitions of now are those of rows behind the last of them only. (The time of a table's creation is no proof: a
 * table that was renamed into its place is older than the rows of the one before it.)
 * Throws a RelayError; rejects when `signal` is aborted.
 */
export async function lookAhead(
  { mysql, outboxes, tolerant, log }: LookAheadOptions,
  from: Position,
  signal: AbortSignal,
): Promise<ServerFacts> {
  const { dump, facts } = await DumpConnection.open({
    ...{ mysql, outboxes, from, question: 'heads', serverUuid: null, signal, log },
  });
  const { before, after: upTo } = facts.heads!;
  const changedAt = facts.outboxes.map((): Position | null => null);
  const reader = new LogReader({
    from,
    outboxes: facts.outboxes,
    relaySchema: mysql.database,
    ignoreCase: facts.ignoreCase,
    mariadb: facts.mariadb,
    maxTransactionBytes: 0,
    counters: newCounters(),
    tolerant,
    onDefinition: (outbox, end) => {
      if (comparePositions(end, upTo) <= 0) changedAt[outbox] = end;
    },
  });
  const tail = new Tail(mysql, dump, reader);
  const stop = () => tail.end(null);
  signal.addEventListener('abort', stop);
  try {
    for (let reached = from; comparePositions(reached, upTo) < 0;) {
      const group = await tail.pull();
      if (group === null) throw new DOMException('stopped', 'AbortError');
      ({ reached } = group);
    }
  } finally {
    signal.removeEventListener('abort', stop);
    tail.end(null);
  }
  for (const at of changedAt) {
    if (at === null || comparePositions(at, before) <= 0) continue;
    // Whether the definition was read before it or behind it nobody knows.
    throw fault('MYSQL_SCHEMA', 'retry', `the statement that ends at ${formatPosition(at)} has just changed a table`);
  }
  const known = facts.outboxes.map((outbox, i) => ({ ...outbox, lookedAhead: { upTo, changedAt: changedAt[i] } }));
  return { ...facts, outboxes: known };
}
