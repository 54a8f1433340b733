import { type Reading } from './reading.ts';

/** What is in hand: buffers, lanes, hand-overs, rows on their way. */
export const IN_HAND: readonly Reading[] = [
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
