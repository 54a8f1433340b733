import { comparePositions, type Position } from '../model/position.ts';
import type { TermProbe } from '../model/stats.ts';

/**
 * For how long the saved checkpoint has stood although something of ours is behind it. It is saved when rows of ours
 * have been delivered, and seldom for the log of others: where nothing of ours is behind it, it is as good as new.
 */
export class CheckpointAge {
  /** When it was last saved, or seen to be as good as new. */
  #last: { readonly position: Position; readonly atMs: number } | null = null;

  /** To be called about every second. `isBehind`: there is log that the tail has not read. */
  note(term: TermProbe | null, isBehind: boolean, nowMs: number): void {
    if (term === null || !term.isTailing) {
      this.#last = null;
      return;
    }
    const { checkpoint, window } = term;
    const isCurrent = !isBehind && window.openTransactions === 0;
    if (isCurrent || this.#last === null || comparePositions(this.#last.position, checkpoint) !== 0) {
      this.#last = { position: checkpoint, atMs: nowMs };
    }
  }

  /** Null: no binlog is read here. */
  ageMs(nowMs: number): number | null {
    return this.#last === null ? null : nowMs - this.#last.atMs;
  }
}
