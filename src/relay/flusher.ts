import type { AckWindow } from '../delivery/ack-window.ts';
import { backOffMs } from '../delivery/back-off.ts';
import { AckedRows, type BatchPart } from '../delivery/acked-rows.ts';
import { inHand } from '../delivery/in-hand.ts';
import type { Batch } from '../delivery/batch.ts';
import type { SpareBatches } from '../delivery/lane.ts';
import { type HeldRow, RetirePlan, settleRuns } from '../delivery/retire-plan.ts';
import type { Scopes } from '../delivery/scopes.ts';
import { type Clock, pause } from '../model/clock.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Position } from '../model/position.ts';
import type { RowId } from '../model/row-ids.ts';
import type { RelayStats } from '../model/stats.ts';
import type { Leader, RowFailure, Store } from '../model/store.ts';

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
  /** Furthest position routed, or head of a pass of the sweep. */
  readonly high: () => Position;
  readonly scopes: Scopes;
  readonly stats: RelayStats;
  readonly onFault: (fault: Fault) => void;
}

interface FailedRow {
  readonly failure: RowFailure;
  readonly transaction: number | null;
}

/**
 * Moves acknowledged rows and the checkpoint to MySQL, one transaction at a time: soon after the first row
 * (`flushMs`), at once when there are many (`flushRows`). Nothing to say = nothing written.
 */
export class Flusher {
  readonly #deps: FlusherDeps;
  readonly #acked = new AckedRows();
  /** Of the flush under way. */
  #parts: readonly BatchPart[] = [];
  #flushingRows = 0;
  #held: readonly HeldRow[] = [];
  /** Rows that could not be delivered and whose table does not say so yet; those with a transaction hold it open. */
  #failures: FailedRow[] = [];
  /** Failures that could not be written: the application holds their rows. */
  #failuresHeld = 0;
  #cancelTimer: (() => void) | null = null;
  #flushing = false;
  #stopped = false;
  #waiting: (() => void)[] = [];

  constructor(deps: FlusherDeps) {
    this.#deps = deps;
  }

  /** True when so much is acknowledged and not flushed that no more should be read. */
  get isBehind(): boolean {
    return this.#acked.count + this.#flushingRows >= this.#deps.flushRows * BACKLOG_FLUSHES;
  }

  /** Acknowledged, and not retired; those that the application holds apart. */
  get unflushedRows(): number {
    return this.#acked.count + this.#flushingRows;
  }

  get lockedRows(): number {
    return this.#held.length;
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

  /** A row that could not be delivered. `transaction`: its window's, where the row is not settled there yet. */
  fail(failure: RowFailure, transaction: number | null): void {
    this.#failures.push({ failure, transaction });
    this.wake();
  }

  /** Takes out of `wanted` what is settled and not yet in the table: by outbox, ids. */
  dropInHand(wanted: Map<number, Set<RowId>>): void {
    inHand(this.#acked.remaining(), wanted);
    inHand(this.#parts, wanted);
    for (const { outbox, id } of this.#held) wanted.get(outbox)?.delete(id);
    for (const { failure } of this.#failures)
      if (failure.as === 'failed') wanted.get(failure.outbox)?.delete(failure.id);
  }

  /** Rows of an outbox that wait again, and whose table does not know yet of the attempt that failed. */
  unaccounted(outbox: number): ReadonlySet<RowId> {
    const waiting = this.#failures.filter(({ failure }) => failure.as === 'pending' && failure.outbox === outbox);
    return new Set(waiting.map(({ failure }) => failure.id));
  }

  /** Something may be worth a flush: acknowledged rows, or a boundary. */
  wake(): void {
    if (this.#stopped || this.#flushing) return;
    if (this.#acked.count >= this.#deps.flushRows) this.#start();
    else this.#cancelTimer ??= this.#deps.clock.after(this.#deps.flushMs, () => this.#start());
  }

  /** Resolves after the next flush, or when flushing has ended for good. */
  flushed(): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves when all that is parked now stands in the table, or when flushing has ended for good. */
  async scopesWritten(): Promise<void> {
    while (!this.#stopped && this.#deps.scopes.hasChanges) {
      this.wake();
      await this.flushed();
    }
  }

  /**
   * Flushes what is acknowledged, then stops for good. Rows that the application holds, delivered or failed, are waited
   * for while `waits` says so; else they are left for the next term, which sends them again.
   */
  async finish(waits: () => boolean): Promise<void> {
    while (!this.#stopped && (this.#flushing || this.#hasNews || (this.#isHeldUp && waits()))) {
      const done = this.flushed();
      if (!this.#flushing && this.#hasNews) this.#start();
      else this.wake();
      await done;
    }
    this.stop();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#wakeWaiting();
  }

  /** Something is to be written that nobody is known to stand in the way of. */
  get #hasNews(): boolean {
    return (
      this.#acked.count > 0 ||
      this.#failures.length > this.#failuresHeld ||
      this.#deps.scopes.hasChanges ||
      this.#deps.window.committable() !== null
    );
  }

  get #isHeldUp(): boolean {
    return this.#held.length > 0 || this.#failuresHeld > 0;
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
        if (this.#hasNews || this.#held.length > 0 || this.#failures.length > 0) this.wake();
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
    const { window, spare } = this.#deps;
    // More may come while these are written.
    const failures = [...this.#failures];
    if (failures.length > 0) {
      // Of a row that blocks its pair nobody must find only that it has failed.
      if (this.#deps.scopes.hasChanges && failures.some(({ failure }) => failure.as === 'failed')) {
        const scopesOnly = new RetirePlan(window, [], this.#held, this.#deps.retires);
        await this.#again('flush', () => this.#writePlan(scopesOnly));
        this.#reportHeld(scopesOnly.stillHeld);
      }
      await this.#again('row-failures', () => this.#writeFailures(failures));
    }
    if (!this.#hasNews && this.#held.length === 0) return;
    const parts = (this.#parts = this.#acked.take(this.#deps.flushRows));
    this.#flushingRows = parts.reduce((sum, { rows }) => sum + rows, 0);
    const plan = new RetirePlan(window, parts, this.#held, this.#deps.retires);
    await this.#again('flush', () => this.#writePlan(plan));
    this.#reportHeld(plan.stillHeld);
    this.#parts = [];
    this.#flushingRows = 0;
    for (const { batch, isLast } of parts) if (isLast) spare.push(batch);
  }

  async #writePlan(plan: RetirePlan): Promise<void> {
    const { store, leader, window, scopes, clock } = this.#deps;
    let parked: ReturnType<Scopes['changes']> = null;
    const saved = await store.flush(leader, {
      retire: plan.fresh,
      suspects: plan.suspects,
      checkpoint: (stillHeld) => plan.fit(stillHeld),
      high: this.#deps.high(),
      parked: () => (parked = scopes.changes(clock.nowMs()))?.changes ?? null,
    });
    if (saved !== null) window.committed(saved);
    this.#deps.stats.lastFlushedMs = clock.nowMs();
    (parked as ReturnType<Scopes['changes']>)?.written();
  }

  async #writeFailures(taken: readonly FailedRow[]): Promise<void> {
    const { store, leader, window } = this.#deps;
    const held = new Set(
      await store.fail(
        leader,
        taken.map(({ failure }) => failure),
      ),
    );
    for (const { failure, transaction } of taken) {
      if (transaction !== null && !held.has(failure)) window.settle(transaction, 1);
    }
    this.#failures = this.#failures.filter((entry) => !taken.includes(entry) || held.has(entry.failure));
    this.#failuresHeld = held.size;
  }

  /** Tries for as long as it may pass. */
  async #again(doing: string, work: () => Promise<void>): Promise<void> {
    const { leader, clock, log } = this.#deps;
    for (let tries = 1; ; tries++) {
      try {
        await work();
        if (tries > 1) log.info(`${doing}-recovered`, { tries });
        return;
      } catch (error) {
        const mayPass = error instanceof RelayError && error.fault.disposition === 'retry';
        if (!mayPass || leader.lost.aborted || this.#stopped) throw error;
        if (tries === 1) log.warn(`${doing}-failed`, { code: error.fault.code, detail: error.fault.detail });
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
