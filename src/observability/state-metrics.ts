import { Counter, Gauge, type Registry } from 'prom-client';
import { fileNumber, type Position } from '../model/position.ts';
import type { OutboxProgress } from '../model/progress.ts';
import type { RelayStats, RowTally, TermProbe } from '../model/stats.ts';
import type { Observer, Sight } from './observer.ts';
import { STATE_WORDS } from './verdict.ts';

/** What the source leaves out, as it counts it. */
export interface SourceCounts {
  readonly notPending: number;
  readonly delayed: number;
  readonly replaced: number;
}

export interface StateSources {
  readonly observer: Observer;
  readonly source: SourceCounts;
  readonly relay: string;
  readonly version: string;
  /** By outbox: `schema.table`. */
  readonly outboxes: readonly string[];
}

type Labels = Readonly<Record<string, string>>;
type Value = readonly [labels: Labels, value: number];

interface Moment {
  readonly sight: Sight;
  readonly stats: RelayStats;
  readonly term: TermProbe | null;
  readonly sources: StateSources;
}

interface Reading {
  readonly name: string;
  readonly kind: 'gauge' | 'counter';
  readonly help: string;
  readonly labels?: readonly string[];
  /** What there is to say now; null and undefined: nothing. */
  readonly read: (now: Moment) => number | null | undefined | Iterable<Value>;
}

/** Registers what is read when somebody asks; the returned function reads it. */
export function registerState(registry: Registry, sources: StateSources): () => void {
  const registers = [registry];
  const metrics = READINGS.map((reading) => {
    const { name, help, labels = [] } = reading;
    const options = { name, help, registers, labelNames: [...labels] };
    return { reading, metric: reading.kind === 'gauge' ? new Gauge(options) : new Counter(options) };
  });
  return () => {
    const { stats } = sources.observer;
    const now: Moment = { sight: sources.observer.look(), stats, term: stats.term, sources };
    for (const { reading, metric } of metrics) {
      const read = reading.read(now);
      // What cannot be said now is not there: no gauge shows what was true once.
      if (metric instanceof Gauge && (reading.labels === undefined || reading.labels.length === 0)) metric.remove();
      else metric.reset();
      const values = typeof read === 'object' && read !== null ? read : [[{}, read] as const];
      for (const [labels, value] of values) if (typeof value === 'number') metric.inc(labels, value);
    }
  };
}

function* byOutbox(
  rows: readonly (number | undefined)[],
  { outboxes }: StateSources,
  more: Labels = {},
): Iterable<Value> {
  for (const [index, outbox] of outboxes.entries()) yield [{ outbox, ...more }, rows[index] ?? 0];
}

function* tallied(tally: RowTally, word: string, sources: StateSources): Iterable<Value> {
  for (const [value, rows] of tally) {
    for (const [index, count] of rows.entries()) {
      if (count !== undefined) yield [{ outbox: sources.outboxes[index], [word]: value }, count];
    }
  }
}

function* coded(counts: ReadonlyMap<string, number>): Iterable<Value> {
  for (const [code, count] of counts) yield [{ code }, count];
}

function* waiting({ sight, sources }: Moment, read: (outbox: OutboxProgress) => number): Iterable<Value> {
  for (const [index, outbox] of sight.database?.outboxes.entries() ?? []) {
    if (outbox !== null) yield [{ outbox: sources.outboxes[index] }, read(outbox)];
  }
}

function* positions({ sight, term }: Moment, read: (position: Position) => number): Iterable<Value> {
  const head = sight.database?.head ?? null;
  if (head !== null) yield [{ at: 'head' }, read(head)];
  if (term === null) return;
  for (const at of ['routed', 'checkpoint', 'high'] as const) yield [{ at }, read(term[at])];
}

function summed(tally: RowTally): number[] {
  const sums: number[] = [];
  for (const rows of tally.values())
    for (const [index, count] of rows.entries()) sums[index] = (sums[index] ?? 0) + (count ?? 0);
  return sums;
}

const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000);

const READINGS: readonly Reading[] = [
  {
    name: 'cdc_relay_info',
    kind: 'gauge',
    help: 'Always 1; which relay this is.',
    labels: ['relay', 'version'],
    read: ({ sources: { relay, version } }) => [[{ relay, version }, 1]],
  },
  {
    name: 'cdc_relay_state',
    kind: 'gauge',
    help: `1 for the state that the relay is in, 0 for the others: ${STATE_WORDS.join(', ')}.`,
    labels: ['state'],
    read: ({ sight }) => STATE_WORDS.map((word) => [{ state: word }, word === sight.verdict.word ? 1 : 0] as const),
  },
  {
    name: 'cdc_relay_state_age_seconds',
    kind: 'gauge',
    help: 'For how long the relay has been in its state.',
    read: ({ sight }) => sight.wordForMs / 1000,
  },
  {
    name: 'cdc_relay_ready',
    kind: 'gauge',
    help: '1 when /readyz says yes.',
    read: ({ sight }) => (sight.notReady.length === 0 ? 1 : 0),
  },
  {
    name: 'cdc_relay_leader',
    kind: 'gauge',
    help: '1 when this process leads. Over all processes of a relay the sum is to be 1.',
    read: ({ stats }) => (stats.epoch === null ? 0 : 1),
  },
  {
    name: 'cdc_relay_leader_epoch',
    kind: 'gauge',
    help: 'Epoch of this leader; it goes up by one with each.',
    read: ({ stats }) => stats.epoch,
  },
  {
    name: 'cdc_relay_terms_ended_total',
    kind: 'counter',
    help: 'Terms of leadership that a fault ended, by code; LEADERSHIP_LOST among them.',
    labels: ['code'],
    read: ({ stats }) => coded(stats.termsEnded),
  },
  {
    name: 'cdc_relay_lag_seconds',
    kind: 'gauge',
    help:
      'How long what should be delivered by now has been waiting; only of a leader. From the end of the log and the ' +
      'rows of the tables: it grows when the stream has frozen. Without what parked pairs and topics hold back.',
    read: ({ sight }) => seconds(sight.verdict.lagMs),
  },
  {
    name: 'cdc_relay_pending_rows',
    kind: 'gauge',
    help: 'Rows that are pending and due, by outbox. 100000: that many or more.',
    labels: ['outbox'],
    read: (now) => waiting(now, ({ pendingRows }) => pendingRows),
  },
  {
    name: 'cdc_relay_oldest_pending_seconds',
    kind: 'gauge',
    help: 'For how long the oldest row that is pending has been due, by outbox; parked ones among them. 0: none is.',
    labels: ['outbox'],
    read: (now) => waiting(now, ({ oldestPendingMs }) => (oldestPendingMs ?? 0) / 1000),
  },
  {
    name: 'cdc_relay_delayed_rows',
    kind: 'gauge',
    help: 'Rows that are pending and not due yet, by outbox. 100000: that many or more.',
    labels: ['outbox'],
    read: (now) => waiting(now, ({ delayedRows }) => delayedRows),
  },
  {
    name: 'cdc_relay_failed_rows',
    kind: 'gauge',
    help: 'Rows whose status is failed, by outbox. 100000: that many or more.',
    labels: ['outbox'],
    read: (now) => waiting(now, ({ failedRows }) => failedRows),
  },
  {
    name: 'cdc_relay_pending_limit_passed',
    kind: 'gauge',
    help: '1 while a limit of outboxes[].limits is passed; limit: rows, age. Only of a leader.',
    labels: ['outbox', 'limit'],
    read: ({ sight }) =>
      sight.limits.flatMap(({ outbox, overRows, overAge }): Value[] => [
        [{ outbox, limit: 'rows' }, overRows ? 1 : 0],
        [{ outbox, limit: 'age' }, overAge ? 1 : 0],
      ]),
  },
  {
    name: 'cdc_relay_rows_total',
    kind: 'counter',
    help: 'Rows that Kafka acknowledged, by outbox and way: tail, sweep.',
    labels: ['outbox', 'way'],
    read: ({ stats, sources }) => [
      ...byOutbox(stats.tailRows, sources, { way: 'tail' }),
      ...byOutbox(summed(stats.sweptRows), sources, { way: 'sweep' }),
    ],
  },
  {
    name: 'cdc_relay_swept_rows_total',
    kind: 'counter',
    help:
      'Rows that the sweep delivered, by outbox and cause: DUE (delayed, or missed by the tail), else the reason for ' +
      'which their scope was parked.',
    labels: ['outbox', 'cause'],
    read: ({ stats, sources }) => tallied(stats.sweptRows, 'cause', sources),
  },
  {
    name: 'cdc_relay_row_failures_total',
    kind: 'counter',
    help: 'Rows that became failed, by outbox and code.',
    labels: ['outbox', 'code'],
    read: ({ stats, sources }) => tallied(stats.failedRows, 'code', sources),
  },
  {
    name: 'cdc_relay_row_retries_total',
    kind: 'counter',
    help: 'Attempts on the account of single rows, to be made again after a back-off, by outbox and code.',
    labels: ['outbox', 'code'],
    read: ({ stats, sources }) => tallied(stats.retriedRows, 'code', sources),
  },
  {
    name: 'cdc_relay_dead_letters_total',
    kind: 'counter',
    help: 'Dead letters, by outcome: sent, not_sent (the row stays pending).',
    labels: ['outcome'],
    read: ({ stats: { deadLetters } }) => [
      [{ outcome: 'sent' }, deadLetters.sent],
      [{ outcome: 'not_sent' }, deadLetters.notSent],
    ],
  },
  {
    name: 'cdc_relay_transactions_total',
    kind: 'counter',
    help: 'Transactions with outbox rows that the tail has routed.',
    read: ({ stats }) => stats.transactions,
  },
  {
    name: 'cdc_relay_undecodable_transactions_total',
    kind: 'counter',
    help: 'Transactions that the tail could not decode and left to the sweep, by code.',
    labels: ['code'],
    read: ({ stats }) => coded(stats.undecodable),
  },
  {
    name: 'cdc_relay_tail_skipped_rows_total',
    kind: 'counter',
    help: 'Outbox rows of the log that are not for the tail, by reason: not_pending, delayed, replaced.',
    labels: ['reason'],
    read: ({ sources: { source } }) => [
      [{ reason: 'not_pending' }, source.notPending],
      [{ reason: 'delayed' }, source.delayed],
      [{ reason: 'replaced' }, source.replaced],
    ],
  },
  {
    name: 'cdc_relay_gone_rows_total',
    kind: 'counter',
    help: 'Rows that were gone from their table before what the log lacks of them could be read: nothing was sent.',
    read: ({ stats }) => stats.goneRows,
  },
  {
    name: 'cdc_relay_sent_rows_missing_total',
    kind: 'counter',
    help: 'Rows that were sent, and that the server lacks which was found behind the address (a failover), by outbox.',
    labels: ['outbox'],
    read: ({ stats, sources }) => byOutbox(stats.sentRowsMissing, sources),
  },
  {
    name: 'cdc_relay_binlog_reconnects_total',
    kind: 'counter',
    help: 'Streams of the binlog that ended and were begun again, by code.',
    labels: ['code'],
    read: ({ stats }) => coded(stats.streamsLost),
  },
  {
    name: 'cdc_relay_binlog_file',
    kind: 'gauge',
    help: 'Number of the binlog file: head (where the log ends), routed, checkpoint, high (may have been sent).',
    labels: ['at'],
    read: (now) => positions(now, ({ file }) => fileNumber(file)),
  },
  {
    name: 'cdc_relay_binlog_offset_bytes',
    kind: 'gauge',
    help: 'Place in that binlog file.',
    labels: ['at'],
    read: (now) => positions(now, ({ offset }) => offset),
  },
  {
    name: 'cdc_relay_in_flight_bytes',
    kind: 'gauge',
    help: 'Batch buffers in use.',
    read: ({ term }) => term?.pool.takenBytes,
  },
  {
    name: 'cdc_relay_in_flight_limit_bytes',
    kind: 'gauge',
    help: 'Batch buffers that there may be: relay.maxInFlightBytes.',
    read: ({ term }) => term?.pool.maxBytes,
  },
  {
    name: 'cdc_relay_source_waiting',
    kind: 'gauge',
    help: '1 while the source waits for a free buffer.',
    read: ({ stats, term }) => (term === null ? null : stats.poolWaitsSinceMs === null ? 0 : 1),
  },
  {
    name: 'cdc_relay_source_waits_total',
    kind: 'counter',
    help: 'Times that the source waited for a free buffer.',
    read: ({ stats }) => stats.poolWaits,
  },
  {
    name: 'cdc_relay_source_waited_seconds_total',
    kind: 'counter',
    help: 'How long the source waited for free buffers.',
    read: ({ stats }) => stats.poolWaitedMs / 1000,
  },
  {
    name: 'cdc_relay_lanes',
    kind: 'gauge',
    help: 'Topic-partitions, by what they do: sending, held (cannot deliver what they are sending), idle.',
    labels: ['doing'],
    read: ({ stats, term }) => {
      if (term === null) return null;
      const { inUse, sending } = term.lanes;
      const held = Math.min(stats.heldLanes.size, sending);
      return Object.entries({ sending: sending - held, held, idle: inUse - sending }).map(
        ([doing, lanes]) => [{ doing }, lanes] as const,
      );
    },
  },
  {
    name: 'cdc_relay_hand_over_held_bytes',
    kind: 'gauge',
    help: 'Rows held for a hand-over from the sweep to the tail.',
    read: ({ term }) => term?.lanes.heldBytes,
  },
  {
    name: 'cdc_relay_hand_overs_total',
    kind: 'counter',
    help: 'Hand-overs from the sweep to the tail, by outcome: done, given_up (the next one is tried after a back-off).',
    labels: ['outcome'],
    read: ({ stats: { handOvers } }) => [
      [{ outcome: 'done' }, handOvers.done],
      [{ outcome: 'given_up' }, handOvers.givenUp],
    ],
  },
  {
    name: 'cdc_relay_parked_scopes',
    kind: 'gauge',
    help: 'What waits apart, by kind: pair (one aggregate in one topic), topic-partition, topic, everything.',
    labels: ['kind'],
    read: ({ term }) =>
      term === null ? null : Object.entries(term.parked).map(([kind, scopes]) => [{ kind }, scopes] as const),
  },
  {
    name: 'cdc_relay_window_transactions',
    kind: 'gauge',
    help: 'Transactions that are routed and not behind the saved checkpoint.',
    read: ({ term }) => term?.window.openTransactions,
  },
  {
    name: 'cdc_relay_unflushed_rows',
    kind: 'gauge',
    help: 'Rows that are in Kafka and not yet marked or deleted.',
    read: ({ term }) => term?.unflushedRows,
  },
  {
    name: 'cdc_relay_application_locked_rows',
    kind: 'gauge',
    help: 'Rows that are in Kafka and cannot be marked or deleted: the application holds locks on them.',
    read: ({ term }) => term?.lockedRows,
  },
];
