import { fileNumber } from '../model/position.ts';
import { coded, positions, type Reading, seconds } from './reading.ts';

/** The binlog: how it is read, and where the checkpoint stands in it. */
export const LOG: readonly Reading[] = [
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
    name: 'cdc_relay_checkpoint_behind_bytes',
    kind: 'gauge',
    help: 'Log between the saved checkpoint and the end of the log, that of others too. Absent where it cannot be told.',
    read: ({ sight: { database } }) => database?.purge?.behindBytes,
  },
  {
    name: 'cdc_relay_checkpoint_age_seconds',
    kind: 'gauge',
    help:
      'Since the checkpoint was saved, or seen to have nothing of ours behind it: it does not grow where nothing is ' +
      'written. Only of a leader that reads the log.',
    read: ({ sight }) => seconds(sight.checkpointAgeMs),
  },
  {
    name: 'cdc_relay_purge_headroom_seconds',
    kind: 'gauge',
    help:
      'Until the server may purge the binlog that holds the checkpoint, at the earliest. Absent where binlogs do not ' +
      'expire by age, and where that cannot be told.',
    read: ({ sight: { database } }) => seconds(database?.purge?.inMs ?? null),
  },
  {
    name: 'cdc_relay_purge_kept_bytes',
    kind: 'gauge',
    help: 'Older binlogs than the one that holds the checkpoint: they are purged first.',
    read: ({ sight: { database } }) => database?.purge?.keptBytes,
  },
];
