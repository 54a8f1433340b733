import { byOutbox, type Reading, summed, tallied } from './reading.ts';

/** What became of rows. */
export const ROWS: readonly Reading[] = [
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
];
