import { coded, type Reading, seconds } from './reading.ts';
import { STATE_WORDS, STUCK_PARTS } from './verdict.ts';

/** What the relay is at, in a word, and who leads. */
export const HEALTH: readonly Reading[] = [
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
    name: 'cdc_relay_stuck',
    kind: 'gauge',
    help: `1 while the part does not move although something waits: ${STUCK_PARTS.join(', ')}.`,
    labels: ['part'],
    read: ({ sight: { verdict } }) =>
      STUCK_PARTS.map((part) => [{ part }, verdict.stuck.some((stuck) => stuck.part === part) ? 1 : 0] as const),
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
    name: 'cdc_relay_paused',
    kind: 'gauge',
    help: '1 while somebody has asked for a pause (cdc-relay pause), whoever leads.',
    read: ({ sight: { database } }) => (database === null ? null : database.paused === null ? 0 : 1),
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
    name: 'cdc_relay_standbys',
    kind: 'gauge',
    help: 'Relays of this name that wait to lead. Absent where the connection of the leader may not be seen.',
    read: ({ sight: { database } }) => database?.standbys,
  },
  {
    name: 'cdc_relay_terms_ended_total',
    kind: 'counter',
    help: 'Terms of leadership that a fault ended, by code; LEADERSHIP_LOST among them.',
    labels: ['code'],
    read: ({ stats }) => coded(stats.termsEnded),
  },
];
