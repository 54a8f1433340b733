/** Time as the engine sees it: monotonic, and replaceable where a test must rule it. */
export interface Clock {
  /** Milliseconds since some moment; never goes back. */
  nowMs(): number;
  /** Calls once; the returned function cancels. */
  after(delayMs: number, call: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  after(delayMs, call) {
    const timer = setTimeout(call, delayMs);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** Resolves after `delayMs`, or at once when `signal` is or gets aborted. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const done = (): void => {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(delayMs, done);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** Asked anew after each await: the compiler takes the first answer for the last. */
export function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
