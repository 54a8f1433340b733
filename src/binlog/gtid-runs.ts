import type { GtidRun } from '../model/position.ts';

const NONE: readonly GtidRun[] = [];

/** GTIDs of transactions that were passed over, joined to runs while they follow one another. */
export class GtidRuns {
  #runs: { sid: string; first: number; last: number }[] = [];

  add(sid: string, gno: number): void {
    const last = this.#runs.at(-1);
    if (last?.sid === sid && last.last + 1 === gno) last.last = gno;
    else this.#runs.push({ sid, first: gno, last: gno });
  }

  /** Hands over what was collected and begins anew. */
  take(): readonly GtidRun[] {
    if (this.#runs.length === 0) return NONE;
    const runs = this.#runs;
    this.#runs = [];
    return runs;
  }
}
