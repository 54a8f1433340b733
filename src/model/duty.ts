import type { Leader, ServerFacts } from './store.ts';

/** What a leader does beside moving rows (retention, limits). */
export interface Duty {
  /** Also while people have paused the relay. */
  readonly goesOnWhilePaused: boolean;
  /** Until `signal` is aborted. Throws a `RelayError` only when this relay leads no longer. */
  run(signal: AbortSignal): Promise<void>;
}

/** Made anew for each term of leadership. */
export type MakeDuty = (leader: Leader, facts: ServerFacts) => Duty;
