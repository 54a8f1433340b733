/** Heartbeats that may be missed before silence means that nobody is there. */
const PERIODS = 3;

export interface SilenceWatchOptions {
  readonly periodMs: number;
  /** Until the first sign. */
  readonly beginsWithinMs: number;
  readonly onSilence: (silentMs: number) => void;
}

/**
 * A frozen server or a half-open socket says nothing, and nothing tells (I1). The server sends a heartbeat when it has
 * nothing else to send; silence over three periods is the sign. While we do not listen, nothing counts.
 * A dump that has not begun has no heartbeats either: it waits until the list of the log's files is free, which is
 * locked while the server closes a large file or deletes old ones. Another one would wait beside it, for the same.
 */
export class SilenceWatch {
  readonly #steadyMs: number;
  #limitMs: number;
  readonly #onSilence: (silentMs: number) => void;
  readonly #timer: NodeJS.Timeout;
  #heardAt = performance.now();
  #listening = true;

  constructor({ periodMs, beginsWithinMs, onSilence }: SilenceWatchOptions) {
    this.#steadyMs = PERIODS * periodMs;
    this.#limitMs = Math.max(this.#steadyMs, beginsWithinMs);
    this.#onSilence = onSilence;
    this.#timer = setInterval(() => this.#look(), periodMs / 2);
  }

  heard(): void {
    this.#limitMs = this.#steadyMs;
    this.#heardAt = performance.now();
  }

  listen(listening: boolean): void {
    this.#listening = listening;
    this.#heardAt = performance.now();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    if (!this.#silent()) return;
    // After a long turn of our own the bytes may wait in the socket: they are read before this is looked at again.
    setImmediate(() => {
      const silentMs = Math.round(performance.now() - this.#heardAt);
      if (this.#silent()) this.#onSilence(silentMs);
    });
  }

  #silent(): boolean {
    return this.#listening && performance.now() - this.#heardAt > this.#limitMs;
  }
}
