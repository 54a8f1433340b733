import type { Call } from './plan.ts';

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly call: () => void;
  isCancelled: boolean;
}

/**
 * Virtual time. Whatever the world does is an event here; between two events everything that the engine can do by
 * itself is done. How long calls take is written down beforehand, so a run is the same each time.
 */
export class EventLoop {
  nowMs = 0;
  /** Events so far. */
  count = 0;
  readonly #delaysMs: readonly number[];
  #delaysTaken = 0;
  /** By how much calls are slower than usual. */
  readonly slowerMs = new Map<Call, number>();
  /** Calls whose answers are lost, and whether they are done all the same. */
  readonly unanswered = new Map<Call, boolean>();
  /** Transactions that are rolled back for a deadlock. */
  readonly deadlocks = new Set<Call>();
  /** By time, latest first. */
  readonly #queue: Event[] = [];
  #order = 0;

  constructor(delaysMs: readonly number[]) {
    this.#delaysMs = delaysMs.length === 0 ? [1] : delaysMs;
  }

  /** How long the next thing takes. */
  delayMs(): number {
    return this.#delaysMs[this.#delaysTaken++ % this.#delaysMs.length];
  }

  /** How much longer than usual a call takes. */
  slowMs(call: Call): number {
    return this.slowerMs.get(call) ?? 0;
  }

  /** A choice of the schedule. */
  isOdd(): boolean {
    return this.delayMs() % 2 === 1;
  }

  at(atMs: number, call: () => void): () => void {
    const event = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, call, isCancelled: false };
    let place = this.#queue.length;
    while (place > 0 && this.#queue[place - 1].atMs <= event.atMs) place--;
    this.#queue.splice(place, 0, event);
    return () => {
      event.isCancelled = true;
    };
  }

  in(delayMs: number, call: () => void): () => void {
    return this.at(this.nowMs + delayMs, call);
  }

  /** One event, and what the engine makes of it. False: there is none left. */
  async step(): Promise<boolean> {
    let event = this.#queue.pop();
    while (event?.isCancelled === true) event = this.#queue.pop();
    if (event === undefined) return false;
    this.nowMs = event.atMs;
    this.count++;
    event.call();
    // Promises are settled, and what waits for them has run, before an immediate is called.
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    return true;
  }
}
