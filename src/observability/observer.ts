import type { Clock } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import { comparePositions, type Position } from '../model/position.ts';
import type { OutboxProgress, PendingLimitState, Progress, Surroundings } from '../model/progress.ts';
import type { ParkedSight, RelayStats } from '../model/stats.ts';
import { CheckpointAge } from './checkpoint-age.ts';
import type { DatabaseWatch } from './database-watch.ts';
import { type StateWord, type StuckPart, UNKNOWN_MS, type Verdict, verdictOf, type Vitals } from './verdict.ts';

export interface ObserverOptions {
  readonly stats: RelayStats;
  readonly watch: DatabaseWatch;
  readonly clock: Clock;
  readonly log: Log;
  readonly readyLagMs: number;
  /** Of the limits on what waits; empty where this relay does not lead. */
  readonly limits: () => readonly PendingLimitState[];
}

/** Why a relay is not ready, for programs; a part that is stuck follows behind a colon. */
export type NotReady =
  `STUCK: ${string}` | 'UNKNOWN' | 'STOPPED' | 'STARTING' | 'PAUSED' | 'LAG' | 'PENDING_ROWS' | 'PENDING_AGE';

export interface DatabaseSight extends Pick<Progress, 'head' | 'leader' | 'paused' | 'purge'>, Surroundings {
  readonly outboxes: readonly (OutboxProgress | null)[];
}

/** The relay at one moment. */
export interface Sight {
  readonly verdict: Verdict;
  readonly wordForMs: number;
  /** Empty: it is ready. */
  readonly notReady: readonly NotReady[];
  /** What the database says; null: nothing is known, or not any more. */
  readonly database: DatabaseSight | null;
  /** Since the checkpoint was saved, or seen to have nothing of ours behind it; null: no binlog is read here. */
  readonly checkpointAgeMs: number | null;
  readonly limits: readonly PendingLimitState[];
}

/** Looks at counts, parts and database, and says what that means. */
export class Observer {
  readonly #options: ObserverOptions;
  #word: StateWord = 'UNKNOWN';
  #wordSinceMs: number;
  #stuckLanesSinceMs: number | null = null;
  readonly #checkpointAge = new CheckpointAge();
  /** Where the tail was when it was last seen to move. */
  #routed: { readonly position: Position; readonly atMs: number } | null = null;

  constructor(options: ObserverOptions) {
    this.#options = options;
    this.#wordSinceMs = options.clock.nowMs();
  }

  get stats(): RelayStats {
    return this.#options.stats;
  }

  /** To be called about every second: what lasts is measured from call to call. */
  look(): Sight {
    const { clock, log, limits } = this.#options;
    const nowMs = clock.nowMs();
    const verdict = verdictOf(this.#vitals(nowMs));
    if (verdict.word !== this.#word) {
      const fields = { from: this.#word, to: verdict.word, ...firstOf(verdict) };
      log[verdict.word === 'STUCK' ? 'warn' : 'info']('relay-health', fields);
      this.#word = verdict.word;
      this.#wordSinceMs = nowMs;
    }
    return {
      verdict,
      wordForMs: nowMs - this.#wordSinceMs,
      notReady: this.#notReady(verdict),
      database: this.#database(nowMs),
      checkpointAgeMs: this.#checkpointAge.ageMs(nowMs),
      limits: this.stats.epoch === null ? [] : limits(),
    };
  }

  #database(nowMs: number): DatabaseSight | null {
    const { latest, outboxes, surroundings } = this.#options.watch;
    const silentMs = this.#options.watch.silentMs(nowMs);
    if (silentMs === null || silentMs >= UNKNOWN_MS) return null;
    // The first look that succeeds sees all of it.
    const { head, leader, paused, purge } = latest!;
    return { head, leader, paused, purge, ...surroundings!, outboxes: outboxes!.waiting };
  }

  #notReady(verdict: Verdict): NotReady[] {
    const { word, stuck, lagMs } = verdict;
    const { readyLagMs, limits } = this.#options;
    if (word === 'STANDBY') return [];
    const why: NotReady[] = stuck.map(stuckText);
    if (word === 'UNKNOWN' || word === 'STOPPED' || word === 'PAUSED') why.push(word);
    else if (this.stats.term === null && stuck.length === 0) why.push('STARTING');
    if (lagMs !== null && lagMs >= readyLagMs) why.push('LAG');
    if (this.stats.epoch === null) return why;
    if (limits().some(({ overRows }) => overRows)) why.push('PENDING_ROWS');
    if (limits().some(({ overAge }) => overAge)) why.push('PENDING_AGE');
    return why;
  }

  #vitals(nowMs: number): Vitals {
    const { stats, watch } = this.#options;
    const { term } = stats;
    const since = (ms: number | null): number => nowMs - (ms ?? stats.phaseSinceMs);
    const serverMs = Date.now() + (stats.serverAheadMs ?? 0);
    const sinceCommitMs = (micros: number | null | undefined): number =>
      micros === null || micros === undefined ? 0 : Math.max(0, serverMs - micros / 1000);
    const behindSinceMs = term === null ? null : watch.behindSinceMs();
    const isMovingBehind =
      behindSinceMs !== null && stats.lastRouted !== null && stats.lastRouted.atMs >= behindSinceMs;
    if (term === null || term.parked['topic-partition'] === 0) this.#stuckLanesSinceMs = null;
    else this.#stuckLanesSinceMs ??= nowMs;
    this.#noteRouted(term?.routed ?? null, nowMs);
    this.#checkpointAge.note(term, behindSinceMs !== null, nowMs);
    const stuckLane = this.#stuckLanesSinceMs === null ? undefined : term?.scopes().find(isTopicPartition);
    const oldestPendingMs = Math.max(0, ...(watch.outboxes?.waiting ?? []).map((each) => each?.oldestPendingMs ?? 0));
    const isNews = watch.outboxes !== null && watch.outboxes.atMs > (stats.lastAckedMs ?? -Infinity);
    return {
      phase: stats.phase,
      phaseForMs: nowMs - stats.phaseSinceMs,
      fault: stats.fault,
      database: { silentMs: watch.silentMs(nowMs), fault: watch.fault },
      term,
      tailBehindMs: behindSinceMs === null ? 0 : nowMs - behindSinceMs,
      tailLagMs: isMovingBehind ? sinceCommitMs(stats.lastRouted?.commitMicros) : 0,
      sinceRoutedMs: since(this.#routed?.atMs ?? null),
      poolWaitsMs: stats.poolWaitsSinceMs === null ? null : nowMs - stats.poolWaitsSinceMs,
      unsettledMs: sinceCommitMs(term?.window.oldestCommitMicros),
      sinceAckedMs: since(stats.lastAckedMs),
      sinceFlushedMs: since(stats.lastFlushedMs),
      oldestPendingMs,
      stillPendingMs: isNews ? oldestPendingMs : 0,
      heldLanes: [...stats.heldLanes].map(([lane, sinceMs]) => ({ lane, heldMs: nowMs - sinceMs })),
      stuckLane:
        stuckLane === undefined
          ? null
          : { lane: `${stuckLane.topic}/${stuckLane.partition}`, stuckMs: nowMs - this.#stuckLanesSinceMs! },
    };
  }

  /** Log without rows of ours counts too. */
  #noteRouted(position: Position | null, atMs: number): void {
    if (position === null) this.#routed = null;
    else if (this.#routed === null || comparePositions(position, this.#routed.position) !== 0) {
      this.#routed = { position, atMs };
    }
  }
}

const isTopicPartition = ({ kind }: ParkedSight): boolean => kind === 'topic-partition';

function stuckText({ part, detail }: StuckPart): NotReady {
  return `STUCK: ${detail === null ? part : `${part} ${detail}`}`;
}

function firstOf({ stuck }: Verdict): Record<string, unknown> {
  const first = stuck.at(0);
  return first === undefined ? {} : { part: first.part, detail: first.detail };
}
