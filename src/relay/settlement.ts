import type { Batch } from '../delivery/batch.ts';
import type { Clock } from '../model/clock.ts';
import type { SpareBatches } from '../delivery/lane.ts';
import { settleRuns } from '../delivery/retire-plan.ts';
import type { AckWindow } from '../delivery/ack-window.ts';
import type { RowId } from '../model/row-ids.ts';
import { type RelayStats, tallyOf } from '../model/stats.ts';
import type { RowFailure } from '../model/store.ts';
import type { Flusher } from './flusher.ts';
import type { SentRows } from './sent-rows.ts';

/** The rows that the sweep has claimed, as the lanes see them. */
export interface ClaimedRows {
  acked(batch: Batch): void;
  /** To the table again: a scope covers them now. */
  back(batch: Batch): void;
  /** The failure says what is to stand in the row. */
  failed(failure: RowFailure): void;
  /** Attempts on the row's account before this one. */
  attemptsOf(outbox: number, id: RowId): number;
}

/** What becomes of rows that leave the lanes: the tail's go to the window and the flush, the sweep's to its round. */
export class Settlement {
  readonly #window: AckWindow;
  readonly #flusher: Flusher;
  readonly #claimed: ClaimedRows;
  readonly #sent: SentRows;
  readonly #spare: SpareBatches;
  readonly #clock: Clock;
  readonly #stats: RelayStats;

  constructor(
    window: AckWindow,
    flusher: Flusher,
    claimed: ClaimedRows,
    sent: SentRows,
    spare: SpareBatches,
    clock: Clock,
    stats: RelayStats,
  ) {
    this.#window = window;
    this.#flusher = flusher;
    this.#claimed = claimed;
    this.#sent = sent;
    this.#spare = spare;
    this.#clock = clock;
    this.#stats = stats;
  }

  /** They are in their topic. */
  acked(batch: Batch): void {
    this.#count(batch);
    this.#sent.add(batch, this.#window);
    if (!batch.isSwept) {
      this.#flusher.add(batch);
      return;
    }
    this.#claimed.acked(batch);
    this.#spare.push(batch);
  }

  /** They are left to the sweep: pending in the table, under a parked scope. */
  left(batch: Batch): void {
    if (batch.isSwept) this.#claimed.back(batch);
    else settleRuns(this.#window, batch);
    this.#spare.push(batch);
    this.#flusher.wake();
  }

  /** One row that could not be delivered: failed, or pending with one attempt more on its account. */
  failed(batch: Batch, failure: RowFailure): void {
    if (batch.isSwept) {
      this.#claimed.failed(failure);
    } else if (failure.as === 'failed') {
      this.#flusher.fail(failure, batch.run(0).transaction);
    } else {
      settleRuns(this.#window, batch);
      this.#flusher.fail(failure, null);
    }
    this.#spare.push(batch);
  }

  attemptsOf(batch: Batch, outbox: number, id: RowId): number {
    return batch.isSwept ? this.#claimed.attemptsOf(outbox, id) : 0;
  }

  #count(batch: Batch): void {
    const stats = this.#stats;
    stats.lastAckedMs = this.#clock.nowMs();
    batch.countInto(batch.isSwept ? tallyOf(stats.sweptRows, stats.sweepCause) : stats.tailRows);
    if (batch.isSwept) return;
    const commitMs = this.#window.commitMicrosOf(batch.run(0).transaction) / 1000;
    stats.onPublished(Date.now() + (stats.serverAheadMs ?? 0) - commitMs);
  }
}
