import type { StateWord } from './verdict.ts';

/** Points are so far apart. */
export const STEP_MS = 5_000;
const POINTS = (15 * 60_000) / STEP_MS;

/** The relay as one look found it. */
export interface Seen {
  /** Acknowledged since the process began. */
  readonly rows: number;
  readonly lagMs: number | null;
  readonly state: StateWord;
}

/** One step of the past. */
export interface HistoryPoint {
  /** When it ended, milliseconds since the epoch. */
  readonly atMs: number;
  /** Acknowledged in it. */
  readonly rows: number;
  /** The greatest that was seen in it. */
  readonly lagMs: number | null;
  /** As it was at its end. */
  readonly state: StateWord;
}

interface Mark {
  readonly ms: number;
  readonly rows: number;
}

/** The last 15 minutes of this process. A time in which it could not look has no point. */
export class History {
  readonly #points: HistoryPoint[] = [];
  /** Where the points' rows were counted from, one more than there are points. */
  readonly #marks: Mark[] = [];
  /** Looks of the last step. */
  #looks: Mark[] = [];
  #lagMs: number | null = null;

  /** To be called about every second. `nowMs` never goes back; `dateMs` is for people. */
  note(nowMs: number, { rows, lagMs, state }: Seen, dateMs = Date.now()): void {
    if (this.#marks.length === 0) this.#marks.push({ ms: nowMs, rows });
    this.#looks = [...this.#looks.filter(({ ms }) => nowMs - ms <= STEP_MS), { ms: nowMs, rows }];
    if (lagMs !== null) this.#lagMs = Math.max(lagMs, this.#lagMs ?? 0);
    const last = this.#marks[this.#marks.length - 1];
    if (nowMs - last.ms < STEP_MS) return;
    this.#points.push({ atMs: dateMs, rows: rows - last.rows, lagMs: this.#lagMs, state });
    this.#marks.push({ ms: nowMs, rows });
    this.#lagMs = null;
    if (this.#points.length > POINTS) {
      this.#points.shift();
      this.#marks.shift();
    }
  }

  /** Oldest first. */
  points(): readonly HistoryPoint[] {
    return this.#points;
  }

  /** Now: over the last step. */
  rate(): { readonly nowRowsPerSecond: number; readonly over15MinRowsPerSecond: number } {
    const now = this.#looks.at(-1);
    return {
      nowRowsPerSecond: perSecond(this.#looks.at(0), now),
      over15MinRowsPerSecond: perSecond(this.#marks.at(0), now),
    };
  }
}

function perSecond(from: Mark | undefined, to: Mark | undefined): number {
  if (from === undefined || to === undefined || to.ms <= from.ms) return 0;
  return Math.round(((to.rows - from.rows) * 10_000) / (to.ms - from.ms)) / 10;
}
