/** Capped exponential back-off with full jitter: many who wait for one thing do not come back at one moment. */
export interface BackOff {
  readonly baseMs: number;
  readonly capMs: number;
}

/** How long to wait before try `attempt` (1 = the first repetition). `random` is in [0, 1). */
export function backOffMs({ baseMs, capMs }: BackOff, attempt: number, random: number): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempt - 1, 30));
  // Never zero: a fault that is answered at once must not become a busy loop.
  return Math.max(1, Math.round(ceiling * random));
}
