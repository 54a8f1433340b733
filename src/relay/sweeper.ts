import { backOffMs } from '../delivery/back-off.ts';
import type { Parked, ScopeId, Scopes } from '../delivery/scopes.ts';
import { TopicLanes } from '../delivery/topic-lanes.ts';
import { type Clock, isAborted, pause } from '../model/clock.ts';
import { RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { comparePositions, type Position } from '../model/position.ts';
import type { SweepSettings } from '../model/settings.ts';
import type { RelayStats } from '../model/stats.ts';
import type { Leader, Store, SweepCursor } from '../model/store.ts';
import type { Flusher } from './flusher.ts';
import type { HeldClaims } from './held-claims.ts';
import type { LaneSender } from './lane-sender.ts';
import type { Parking } from './parking.ts';
import type { Router } from './router.ts';
import type { SweepPass } from './sweep-pass.ts';
import type { Topics } from './topics.ts';
import type { Turns } from './turns.ts';

const BACK_OFF = { baseMs: 200, capMs: 5_000 };
/** A look for rows takes at most this part of the time (S28: an old snapshot makes every look slow). */
const LOOKS_PART = 100;
/** What a look costs is the least of the last rounds: one that was slow by accident must not hold up rows that are due. */
const LOOKS_KEPT = 3;
/** So many pages are looked through in one round; the next round goes on where this one ended (S21). */
const PAGES = 10;
/** Of scopes in vain, in an interval. */
const SERVINGS = 2;
/** Scopes served together. */
const MOST_SCOPES = 1_000;

export interface SweeperDeps {
  readonly store: Store;
  readonly leader: Leader;
  readonly scopes: Scopes;
  readonly topics: Topics;
  readonly parking: Parking;
  readonly sender: LaneSender;
  readonly flusher: Flusher;
  readonly router: Router;
  readonly pass: SweepPass;
  readonly heldClaims: HeldClaims;
  /** Shared with who else puts rows of the tables into the lanes. */
  readonly turns: Turns;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: SweepSettings;
  readonly stats: RelayStats;
  /** By outbox: true where rows are kept as they are. */
  readonly keeps: readonly boolean[];
  readonly isTailing: () => boolean;
  /** What lies before may have been sent. */
  readonly high: () => Position;
}

/**
 * Delivers what is pending and not the tail's, one thing at a time: a pass over scopes that are due, their hand-over to
 * the tail, a round of rows under no scope. Sleeps in between; whoever parks something for now wakes it.
 */
export class Sweeper {
  readonly #deps: SweeperDeps;
  /** By outbox: where the next round begins; null: in front. */
  readonly #cursors: (SweepCursor | null)[];
  #wake: AbortController = new AbortController();
  #looksMs = 0;
  /** Of the last rounds. */
  #looks: readonly number[] = [];
  #nextRoundMs = 0;
  #served = 0;
  #nextServingMs = 0;

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
    this.#cursors = deps.keeps.map(() => null);
  }

  /** Something became due. */
  wake(): void {
    this.#wake.abort();
  }

  /** Until `signal` is aborted; what is claimed by then is settled first. Throws a `RelayError` that does not pass. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    for (let failures = 0; !signal.aborted;) {
      this.#wake = new AbortController();
      let waitMs: number;
      try {
        waitMs = await this.#deps.turns.take(() => this.#turn(signal));
        if (failures > 0) log.info('sweep-recovered', { failures });
        failures = 0;
      } catch (error) {
        const mayPass = error instanceof RelayError && error.fault.disposition === 'retry';
        if (!mayPass) throw error;
        // Nothing is claimed any more, and what was looked for belongs to who comes next.
        if (isAborted(signal)) return;
        if (failures === 0) log.warn('sweep-failed', { code: error.fault.code, detail: error.fault.detail });
        waitMs = backOffMs(BACK_OFF, ++failures, Math.random());
      }
      await pause(clock, waitMs, AbortSignal.any([signal, this.#wake.signal]));
    }
  }

  async #turn(signal: AbortSignal): Promise<number> {
    try {
      return await this.#once(signal);
    } catch (error) {
      this.#deps.parking.giveUp('a fault');
      throw error;
    }
  }

  /** Returns for how long there is nothing to do. */
  async #once(signal: AbortSignal): Promise<number> {
    const { clock, settings, pass, heldClaims } = this.#deps;
    await pass.settleClaims();
    let isBusy = false;
    if (clock.nowMs() >= this.#nextServingMs) {
      const servedBefore = this.#served;
      isBusy = await this.#serveDue(signal);
      // Scopes that are served in vain come one by one out of their back-offs: those of a while are served together.
      const restMs = Math.ceil(settings.intervalMs / SERVINGS);
      if (!isBusy && this.#served > servedBefore) this.#nextServingMs = clock.nowMs() + restMs;
    }
    if (signal.aborted) return 0;
    if (clock.nowMs() >= this.#nextRoundMs) {
      this.#looksMs = 0;
      const settled = await this.#serveRest(signal);
      if (settled > 0) isBusy = true;
      this.#looks = [this.#looksMs, ...this.#looks.slice(0, LOOKS_KEPT - 1)];
      const leastMs = Math.min(...this.#looks) * LOOKS_PART;
      const restMs = settled > 0 ? 0 : Math.max(settings.intervalMs, leastMs);
      const dueMs = settled > 0 ? null : await this.#nextDueRowMs();
      this.#nextRoundMs = clock.nowMs() + Math.min(restMs, Math.max(dueMs ?? Infinity, leastMs));
    }
    const nextMs = Math.min(this.#nextRoundMs, this.#nextDueScopeMs(), heldClaims.nextTryMs);
    return isBusy ? 0 : Math.max(0, nextMs - clock.nowMs());
  }

  async #nextDueRowMs(): Promise<number | null> {
    const { store, keeps } = this.#deps;
    let soonest: number | null = null;
    for (const [outbox, keep] of keeps.entries()) {
      const dueMs = keep ? null : await store.nextDueMs(outbox);
      if (dueMs !== null) soonest = Math.min(soonest ?? Infinity, dueMs);
    }
    return soonest;
  }

  #nextDueScopeMs(): number {
    let soonest = Infinity;
    // Where the tail is not there to take them over, everything is served with every round.
    if (!this.#deps.isTailing()) return soonest;
    for (const { dueAtMs } of this.#deps.scopes.all) if (dueAtMs !== null && dueAtMs < soonest) soonest = dueAtMs;
    return Math.max(soonest, this.#nextServingMs);
  }

  /** Scopes that are due: passes over them, and their hand-over. True when there may be more to do at once. */
  async #serveDue(signal: AbortSignal): Promise<boolean> {
    const { parking, pass, isTailing, router, high, sender } = this.#deps;
    const due = await this.#dueScopes(signal);
    if (due.length === 0 || signal.aborted) return false;
    this.#served++;
    const ids = due.map(({ id }) => id);
    // Scopes that are served together mostly wait for one reason.
    this.#deps.stats.sweepCause = due[0].reason;
    const serving = parking.begin(ids, false);
    const swept = await pass.run(serving, signal);
    const isServed = !serving.isOver && !swept.isShort;
    parking.end(serving);
    if (!isServed || !isTailing()) {
      if (isServed) for (const id of serving.scopes) this.#releaseInner(id);
      this.#putOff(serving.scopes, swept.settled);
      return swept.settled > 0;
    }
    if (isAborted(signal) || comparePositions(router.routedThrough.position, high()) < 0) {
      this.#putOff(serving.scopes, swept.settled);
      return false;
    }
    const handOver = parking.begin(serving.scopes, true);
    const isHandedOver = await this.#handOver(handOver, signal);
    if (!isHandedOver) {
      parking.giveUp('not everything could be delivered');
      this.#putOff(handOver.scopes, 0);
      return false;
    }
    for (const lane of parking.complete(handOver)) sender.kick(lane);
    return true;
  }

  /** The rows before the first one held are all visible, and all delivered. */
  async #handOver(handOver: ReturnType<Parking['begin']>, signal: AbortSignal): Promise<boolean> {
    const { store, leader, high, pass } = this.#deps;
    try {
      await store.barrier(leader, high());
      const swept = await pass.run(handOver, signal);
      return !swept.isShort && !handOver.isOver && !signal.aborted;
    } catch (error) {
      this.#deps.parking.giveUp('a fault');
      throw error;
    }
  }

  /** Everything of it is delivered, and the wider one stays. */
  #releaseInner(id: ScopeId): void {
    const { scopes, parking } = this.#deps;
    const parked = scopes.get(id);
    if (parked !== undefined && scopes.wider(parked) !== undefined) parking.release(id);
  }

  /** Scopes that were served in vain wait for their next try; `everything` soon. */
  #putOff(ids: Iterable<ScopeId>, settled: number): void {
    const { scopes, clock } = this.#deps;
    if (settled > 0) return;
    for (const id of ids) scopes.putOff(id, clock.nowMs(), Math.random());
  }

  async #dueScopes(signal: AbortSignal): Promise<Parked[]> {
    const { scopes, clock, parking, isTailing } = this.#deps;
    const nowMs = clock.nowMs();
    const isRound = !isTailing() && nowMs >= this.#nextRoundMs;
    const isDue = ({ dueAtMs, scope }: Parked): boolean =>
      (isRound && scope.kind === 'everything') || (dueAtMs !== null && dueAtMs <= nowMs);
    const due = new Set<Parked>();
    for (const parked of [...scopes.all]) {
      if (!isDue(parked) && !(parked.dueAtMs === null && (await this.#isUnblocked(parked)))) continue;
      const wider = scopes.wider(parked);
      // Inside a wider one that waits it was only a back-off; with one that is served too, it keeps count of its tries.
      if (wider !== undefined && !isDue(wider)) parking.release(parked.id);
      else if (isRoom(due, parked) && (await this.#hasTopic(parked, signal))) due.add(parked);
    }
    return [...due].filter((parked) => {
      const wider = scopes.wider(parked);
      return scopes.get(parked.id) === parked && (wider === undefined || due.has(wider));
    });
  }

  /** What waits for somebody to act on its row: it is not `failed` any more. */
  async #isUnblocked({ row }: Parked): Promise<boolean> {
    if (row === null || this.#deps.clock.nowMs() < this.#nextRoundMs) return false;
    const written = new Map([[row.outbox, new Set([row.id])]]);
    this.#deps.flusher.dropInHand(written);
    // That it has failed may not stand in the table yet.
    if (written.get(row.outbox)!.size === 0) return false;
    return !(await this.#deps.store.isFailed(row.outbox, row.id));
  }

  /** A topic that still cannot be used is not worth a pass. */
  async #hasTopic({ scope, partitions }: Parked, signal: AbortSignal): Promise<boolean> {
    const { topics, parking } = this.#deps;
    if (scope.kind === 'everything' || scope.topic === '') return true;
    const isNeeded = scope.kind === 'topic' || topics.known(scope.topic) === undefined;
    const opened = isNeeded ? await topics.open(scope.topic, signal, false) : null;
    if (opened === null || opened instanceof TopicLanes) return !signal.aborted;
    // No topic will ever have that name: the pass counts an attempt of the row.
    if (opened.code === 'KAFKA_INVALID_TOPIC_EXCEPTION') return true;
    parking.park(scope, { reason: opened.code, partitions });
    return false;
  }

  /** Rows under no scope. Returns how many were settled. */
  async #serveRest(signal: AbortSignal): Promise<number> {
    const { store, settings, keeps, pass, clock, scopes } = this.#deps;
    let settled = 0;
    this.#deps.stats.sweepCause = 'DUE';
    for (const [outbox, keep] of keeps.entries()) {
      if (keep) continue;
      let cursor = this.#cursors[outbox];
      for (let pages = 0; pages < PAGES && !signal.aborted && !scopes.hasEverything; pages++) {
        const beganMs = clock.nowMs();
        const page = await store.dueRows(outbox, cursor, settings.batchRows);
        this.#looksMs += clock.nowMs() - beganMs;
        const result = await pass.uncovered(page.rows, signal);
        settled += result.settled;
        if (result.isShort) {
          // What was left there comes before what lies behind (M6).
          cursor = null;
          break;
        }
        cursor = page.next;
        if (cursor === null) break;
      }
      this.#cursors[outbox] = cursor;
    }
    return settled;
  }
}

function isRoom(due: ReadonlySet<Parked>, { scope }: Parked): boolean {
  return due.size < MOST_SCOPES || scope.kind === 'everything';
}
