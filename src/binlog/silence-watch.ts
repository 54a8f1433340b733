/** Heartbeats that may be missed before silence means that nobody is there. */
const PERIODS = 3;

export interface SilenceWatchOptions {
  readonly periodMs: number;
  readonly onSilence: (silentMs: number) => void;
}

/**
 * A frozen server or a half-open socket says nothing, and nothing tells (I1). The server sends a heartbeat when it has
 * nothing else to send; silence over three periods is the sign. While we do not listen, nothing counts.
 */
export class SilenceWatch {
  readonly #limitMs: number;
  readonly #onSilence: (silentMs: number) => void;
  readonly #timer: NodeJS.Timeout;
  #heardAt = performance.now();
  #listening = true;

  constructor({ periodMs, onSilence }: SilenceWatchOptions) {
    this.#limitMs = PERIODS * periodMs;
    this.#onSilence = onSilence;
    this.#timer = setInterval(() => this.#look(), periodMs / 2);
  }

  heard(): void {
    this.#heardAt = performance.now();
  }

  listen(listening: boolean): void {
    this.#listening = listening;
    this.heard();
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
