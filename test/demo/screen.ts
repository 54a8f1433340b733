/** How a part of the pipeline is. */
export type PartState = 'up' | 'starting' | 'down';

export type Tone = 'good' | 'bad' | 'plain';

/** One moment of the demo. Rates and latencies are those of the last second. */
export interface Figures {
  readonly elapsedMs: number;
  readonly plannedMs: number;
  readonly committed: number;
  readonly committedPerS: number;
  readonly delivered: number;
  readonly deliveredPerS: number;
  readonly waiting: number;
  readonly oldestWaitMs: number;
  /** Null when nothing arrived. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly relay: PartState;
  readonly kafka: PartState;
}

/** Where the demo is shown: a board on a terminal, plain lines in a pipe. */
export interface Screen {
  /** Shows that `work` is under way, and how long it took; `done` says what there is now. */
  step<T>(doing: string, work: () => Promise<T>, done: (result: T) => string): Promise<T>;
  /** The show begins. */
  open(): void;
  /** Something has happened. */
  event(elapsedMs: number, text: string, tone: Tone): void;
  /** Called several times a second. */
  figures(figures: Figures): void;
  /** The show is over, or broken off: the terminal is as it was. May be called again. */
  close(): void;
  /** Closes and shows the result. */
  result(lines: readonly ResultLine[]): void;
}

export interface ResultLine {
  readonly text: string;
  readonly tone: Tone;
}
