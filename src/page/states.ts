import type { RelayStatus } from '../http/status-view.ts';
import { ageText, shown } from './words.ts';

export type StateTone = 'good' | 'busy' | 'bad' | 'calm' | 'off';

/** Color and shape of each state: never one alone. */
const TONES: Readonly<Record<RelayStatus['state'] | 'NO ANSWER', StateTone>> = {
  FLOWING: 'good',
  'CATCHING UP': 'busy',
  'SWEEP ONLY': 'busy',
  STUCK: 'bad',
  STANDBY: 'calm',
  PAUSED: 'off',
  STOPPED: 'off',
  UNKNOWN: 'bad',
  /** Of the relay itself. */
  'NO ANSWER': 'bad',
};

export function toneOf(state: string): StateTone {
  return Object.hasOwn(TONES, state) ? TONES[state as keyof typeof TONES] : 'off';
}

/** The state in a sentence. */
export function sentenceOf(status: RelayStatus): string {
  const forText = ageText(status.stateForMs);
  const { leader, paused, fault } = status;
  const code = fault === null ? '' : `: ${fault}`;
  switch (status.state) {
    case 'FLOWING':
      return `Rows go to Kafka as they are committed, for ${forText} now.`;
    case 'CATCHING UP':
      return `There is a backlog, and it is being worked off${code}. For ${forText} now.`;
    case 'SWEEP ONLY':
      return `The binlog is not read${code}: rows are fetched from their table instead. For ${forText} now.`;
    case 'STUCK':
      return `${status.stuck.map(({ part }) => STUCK_WORDS[part] ?? part).join(' and ')} for ${ageText(
        Math.max(...status.stuck.map(({ stuckMs }) => stuckMs)),
      )}${code}.`;
    case 'STANDBY':
      return leader === null
        ? 'This relay waits to lead; who leads is not known.'
        : `${shown(leader.owner)} leads. This relay takes over when it is gone.`;
    case 'PAUSED':
      return paused === null
        ? `Nothing is sent, for ${forText} now.`
        : `Asked for by ${shown(paused.by)} ${ageText(paused.sinceMs)} ago. Rows wait in MySQL.`;
    case 'STOPPED':
      return `The relay has ended${code}.`;
    case 'UNKNOWN':
      return `The database has not answered for ${forText}${code}.`;
  }
}

const STUCK_WORDS: Readonly<Record<string, string>> = {
  start: 'No work has begun',
  tail: 'The tail has not moved',
  sweep: 'The sweep has not moved',
  lane: 'A lane has not moved',
  kafka: 'Kafka has acknowledged nothing',
  flush: 'Nothing could be marked as published',
};
