import type { AckWindow } from '../delivery/ack-window.ts';
import { backOffMs } from '../delivery/back-off.ts';
import { AckedRows } from '../delivery/acked-rows.ts';
import type { Batch } from '../delivery/batch.ts';
import type { SpareBatches } from '../delivery/lane.ts';
import { type HeldRow, RetirePlan, settleRuns } from '../delivery/retire-plan.ts';
import { type Clock, pause } from '../model/clock.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Position } from '../model/position.ts';
import type { Leader, Store } from '../model/store.ts';

const BACK_OFF = { baseMs: 100, capMs: 5_000 };
/** Acknowledged rows not yet flushed: at this many flushes' worth the source waits. Bounds the repeats of a crash. */
const BACKLOG_FLUSHES = 4;

export interface FlusherDeps {
  readonly store: Store;
  readonly leader: Leader;
  readonly window: AckWindow;
  readonly clock: Clock;
  readonly log: Log;
  readonly flushMs: number;
  readonly flushRows: number;
  /** Per outbox: false where rows are kept as they are. */
  readonly retires: readonly boolean[];
  /** Batch objects that are done with go here. */
  readonly spare: SpareBatches;
  /** Furthest position routed. */
  readonly high: () => Position;
  readonly onFault: (fault: Fault) => void;
}

/**
 * Moves acknowledged rows and the checkpoint to MySQL, one transaction at a time: soon after the first row
 * (`flushMs`), at once when there are many (`flushRows`). Nothing to say = nothing written.
 */
export class Flusher {
  readonly #deps: FlusherDeps;
  readonly #acked = new AckedRows();
  /** Of the flush under way. */
  #flushingRows = 0;
  #held: readonly HeldRow[] = [];
  #cancelTimer: (() => void) | null = null;
  #flushing = false;
  #stopped = false;
  #waiting: (() => void)[] = [];

  constructor(deps: FlusherDeps) {
    this.#deps = deps;
  }

  /** True when so much is acknowledged and not flushed that no more should be read. */
  get isBehind(): boolean {
    return this.#acked.rows + this.#flushingRows >= this.#deps.flushRows * BACKLOG_FLUSHES;
  }

  add(batch: Batch): void {
    if (this.#mustRetire(batch)) {
      this.#acked.add(batch);
    } else {
      settleRuns(this.#deps.window, batch);
      this.#deps.spare.push(batch);
    }
    this.wake();
  }

  /** Something may be worth a flush: acknowledged rows, or a boundary. */
  wake(): void {
    if (this.#stopped || this.#flushing) return;
    if (this.#acked.rows >= this.#deps.flushRows) this.#start();
    else this.#cancelTimer ??= this.#deps.clock.after(this.#deps.flushMs, () => this.#start());
  }

  /** Resolves after the next flush, or when flushing has ended for good. */
  flushed(): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Flushes what is acknowledged, then stops for good. Rows that the application holds are left for the next start. */
  async finish(): Promise<void> {
    while (!this.#stopped && (this.#flushing || this.#acked.rows > 0 || this.#deps.window.committable() !== null)) {
      const done = this.flushed();
      if (!this.#flushing) this.#start();
      await done;
    }
    this.stop();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#wakeWaiting();
  }

  #mustRetire(batch: Batch): boolean {
    for (let i = 0; i < batch.runCount; i++) if (this.#deps.retires[batch.run(i).outbox]) return true;
    return false;
  }

  #start(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#flushing = true;
    void this.#flush().then(
      () => {
        this.#flushing = false;
        this.#wakeWaiting();
        if (this.#acked.rows > 0 || this.#held.length > 0 || this.#deps.window.committable() !== null) this.wake();
      },
      (error: unknown) => {
        this.stop();
        this.#deps.onFault(
          error instanceof RelayError
            ? error.fault
            : { code: 'INTERNAL', disposition: 'halt', detail: 'flush', cause: error },
        );
      },
    );
  }

  async #flush(): Promise<void> {
    const { store, leader, window, clock, log, spare } = this.#deps;
    if (this.#acked.rows === 0 && this.#held.length === 0 && window.committable() === null) return;
    const parts = this.#acked.take(this.#deps.flushRows);
    this.#flushingRows = parts.reduce((sum, { rows }) => sum + rows, 0);
    const plan = new RetirePlan(window, parts, this.#held, this.#deps.retires);
    for (let tries = 1; ; tries++) {
      try {
        const saved = await store.flush(leader, {
          retire: plan.fresh,
          suspects: plan.suspects,
          checkpoint: (stillHeld) => plan.fit(stillHeld),
          high: this.#deps.high(),
        });
        if (saved !== null) window.committed(saved);
        this.#reportHeld(plan.stillHeld);
        this.#flushingRows = 0;
        for (const { batch, isLast } of parts) if (isLast) spare.push(batch);
        if (tries > 1) log.info('flush-recovered', { tries });
        return;
      } catch (error) {
        const mayPass = error instanceof RelayError && error.fault.disposition === 'retry';
        if (!mayPass || leader.lost.aborted || this.#stopped) throw error;
        if (tries === 1) log.warn('flush-failed', { code: error.fault.code, detail: error.fault.detail });
        await pause(clock, backOffMs(BACK_OFF, tries, Math.random()), leader.lost);
      }
    }
  }

  #reportHeld(held: readonly HeldRow[]): void {
    if (held.length > 0 && this.#held.length === 0)
      this.#deps.log.warn('rows-held-by-application', { rows: held.length });
    if (held.length === 0 && this.#held.length > 0) this.#deps.log.info('rows-released-by-application');
    this.#held = held;
  }

  #wakeWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
