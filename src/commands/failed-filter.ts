import type { FailedFilter } from '../store/failed-rows.ts';
import { type Options, sinceOption, textOption } from './option-values.ts';
import { usageError } from './problem.ts';

/** The options that say which failed rows. */
export const FILTER_OPTIONS = [
  ['--outbox <table>', 'rows of this outbox, where there are several'],
  ['--topic <name>', 'rows for this topic'],
  ['--since <time>', 'rows created since: 2h, 7d, 2026-11-29T22:00Z'],
  ['--reason <text>', 'rows whose error begins so: KAFKA_MESSAGE_TOO_LARGE'],
] as const;

export function filterOf(options: Options): FailedFilter {
  const filter = {
    topic: textOption(options, 'topic'),
    reason: textOption(options, 'reason'),
    since: sinceOption(options, 'since'),
  };
  // Neither topics nor codes have anything else in them, and comparing it with an ASCII column would be an error.
  for (const name of ['topic', 'reason'] as const) {
    const text = filter[name];
    if (text !== null && !/^[\x20-\x7e]+$/.test(text)) throw usageError(`--${name}: expected text in ASCII`);
  }
  return filter;
}

export function isUnfiltered({ topic, reason, since }: FailedFilter): boolean {
  return topic === null && reason === null && since === null;
}
