import type { Batch } from '../delivery/batch.ts';
import type { RowFailure } from '../model/store.ts';
import type { ClaimedRows } from './settlement.ts';

/**
 * Whose the rows of the sweep's batches are: the sweep's own, which it has claimed, or those of a job that are sent
 * again. One at a time: each waits until all of its rows have left the lanes.
 */
export class SweptRows implements ClaimedRows {
  readonly #claims: ClaimedRows;
  #replayed: ReplayedRows | null = null;

  constructor(claims: ClaimedRows) {
    this.#claims = claims;
  }

  get isReplaying(): boolean {
    return this.#replayed !== null;
  }

  /** Null: the sweep's again. */
  belongTo(replayed: ReplayedRows | null): void {
    this.#replayed = replayed;
  }

  acked(batch: Batch): void {
    this.#now.acked(batch);
  }

  back(batch: Batch): void {
    this.#now.back(batch);
  }

  failed(failure: RowFailure): void {
    this.#now.failed(failure);
  }

  attemptsOf(outbox: number, id: RowFailure['id']): number {
    return this.#now.attemptsOf(outbox, id);
  }

  get #now(): ClaimedRows {
    return this.#replayed ?? this.#claims;
  }
}

/** Rows of a chunk that is sent again. Nothing of them is written to their table. */
export class ReplayedRows implements ClaimedRows {
  /** In a lane, or on their way. */
  open = 0;
  sent = 0;
  /** Taken out of their lane, or never put into it. */
  unsent = 0;
  /** Taken out of their lane: they may have been sent, where no answer came. */
  returned = 0;
  readonly failures: RowFailure[] = [];
  #waiting: (() => void)[] = [];

  acked(batch: Batch): void {
    this.sent += batch.records;
    this.#left(batch.records);
  }

  back(batch: Batch): void {
    this.unsent += batch.records;
    this.returned += batch.records;
    this.#left(batch.records);
  }

  failed(failure: RowFailure): void {
    this.failures.push(failure);
    this.#left(1);
  }

  attemptsOf(): number {
    return 0;
  }

  /** Resolves when no more than `rows` are open, or `signal` is aborted. */
  async atMost(rows: number, signal: AbortSignal): Promise<void> {
    while (this.open > rows && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const wake = (): void => resolve(undefined);
      this.#waiting.push(wake);
      signal.addEventListener('abort', wake, { once: true });
      await promise;
      signal.removeEventListener('abort', wake);
    }
  }

  #left(rows: number): void {
    this.open -= rows;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
