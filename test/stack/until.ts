import { setTimeout as sleep } from 'node:timers/promises';

export interface Bound {
  readonly withinMs: number;
  /** What is waited for, as it reads after "still not: ". */
  readonly what: string;
  readonly everyMs?: number;
}

/**
 * Waits until `condition` gives something other than false, null or undefined, and returns it. What it throws ends the
 * wait; see `eventually` for conditions that may throw.
 */
export async function until<T>(condition: () => T | Promise<T>, bound: Bound): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + bound.withinMs;
  for (;;) {
    const result = await condition();
    if (result !== false && result !== null && result !== undefined) return result as NonNullable<Exclude<T, false>>;
    if (performance.now() >= deadline) throw new Error(`still not after ${bound.withinMs} ms: ${bound.what}`);
    await sleep(bound.everyMs ?? 20);
  }
}

/** Repeats `attempt` until it does not throw, and returns its result; at the bound, throws with its last error. */
export async function eventually<T>(attempt: () => T | Promise<T>, bound: Bound): Promise<T> {
  const deadline = performance.now() + bound.withinMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() >= deadline) {
        const last = error instanceof Error ? error.message : String(error);
        throw new Error(`still not after ${bound.withinMs} ms: ${bound.what} (last: ${last})`, { cause: error });
      }
    }
    await sleep(bound.everyMs ?? 20);
  }
}
