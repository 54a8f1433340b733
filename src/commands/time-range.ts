import type { Session } from '../store/session.ts';
import { type Options, sinceOption } from './option-values.ts';
import { usageError } from './problem.ts';

/** Milliseconds since the epoch; null: without that end. */
export interface TimeRange {
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
}

/** What `--since` and `--until` say. Ages are before the server's now: it is the server that gives rows their time. */
export async function timeRange(session: Session, options: Options): Promise<TimeRange> {
  const [since, until] = [sinceOption(options, 'since'), sinceOption(options, 'until')];
  if (since === null && until === null) return { sinceMs: null, untilMs: null };
  const [row] = await session.rows('asking for the time', 'SELECT UNIX_TIMESTAMP(NOW(6)) AS now_there');
  const nowMs = Number(row['now_there']) * 1000;
  const timeOf = (time: typeof since): number | null => {
    if (time === null) return null;
    return Math.floor('atMs' in time ? time.atMs : nowMs - time.agoMs);
  };
  const range = { sinceMs: timeOf(since), untilMs: timeOf(until) };
  if (range.sinceMs !== null && range.untilMs !== null && range.sinceMs >= range.untilMs) {
    throw usageError('--until is not behind --since: no row is between them');
  }
  return range;
}
