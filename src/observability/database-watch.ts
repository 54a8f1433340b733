import { type Clock, pause } from '../model/clock.ts';
import { type FaultCode, RelayError } from '../model/fault.ts';
import { comparePositions, type Position } from '../model/position.ts';
import type { OutboxProgress, Progress, ProgressReader, Surroundings } from '../model/progress.ts';
import type { RelayStats } from '../model/stats.ts';

const INTERVAL_MS = 1_000;
/** Looking at the tables takes at most this share of the time, whatever it costs. */
const REST_PER_LOOK = 100;
/** The same for what is around the relay: it is less, and people wait for it. */
const REST_PER_LOOK_AROUND = 20;
const LONGEST_REST_MS = 60_000;
/** What is around the relay changes slowly, unless there is a job, and is asked for by several statements. */
const SURROUNDINGS_REST_MS = 5_000;
/** Heads of the log that have not been routed: of more than this every second one is forgotten. */
const MOST_HEADS = 512;

export interface DatabaseWatchOptions {
  readonly reader: ProgressReader;
  readonly stats: RelayStats;
  readonly clock: Clock;
  /** After each look. */
  readonly onLook: () => void;
}

/** When something that costs is looked at again. */
class Turn {
  #nextMs = -Infinity;

  isDue(nowMs: number): boolean {
    return nowMs >= this.#nextMs;
  }

  rest(nowMs: number, restMs: number): void {
    this.#nextMs = nowMs + Math.min(LONGEST_REST_MS, restMs);
  }
}

/**
 * Looks about every second what the database says. How far the tail is behind comes from that: where the log ended at
 * a look must have been routed by now. So it is right when nothing is written, and grows when the stream has frozen.
 */
export class DatabaseWatch {
  readonly #options: DatabaseWatchOptions;
  /** Ends of the log that were not routed when they were last compared, oldest first. */
  #heads: { readonly position: Position; readonly seenMs: number }[] = [];
  #headsEpoch: number | null = null;
  /** Of the term at the last look. */
  #epoch: number | null = null;
  readonly #outboxesTurn = new Turn();
  readonly #surroundingsTurn = new Turn();
  /** As it was at the last look that succeeded. */
  latest: (Pick<Progress, 'head' | 'leader' | 'paused' | 'purge'> & { readonly atMs: number }) | null = null;
  /** By outbox, as it was when the tables were last looked at; null where rows have no state. */
  outboxes: { readonly waiting: readonly (OutboxProgress | null)[]; readonly atMs: number } | null = null;
  /** As it was when that was last looked at. */
  surroundings: Surroundings | null = null;
  /** At the last look but one, too: between two waits for the lock a relay is not seen. */
  #standbys: number | null = null;
  /** Why the last look did not succeed. */
  fault: FaultCode | null = null;

  constructor(options: DatabaseWatchOptions) {
    this.#options = options;
  }

  /** Until `signal` is aborted. What a look is long in answering holds up the next one, and not `onLook`. */
  async run(signal: AbortSignal): Promise<void> {
    const { reader, clock, onLook } = this.#options;
    let looking: Promise<void> | null = null;
    const look = async (): Promise<void> => {
      await this.look();
      looking = null;
      onLook();
    };
    while (!signal.aborted) {
      if (looking === null) looking = look();
      else onLook();
      await pause(clock, INTERVAL_MS, signal);
    }
    reader.close();
    await looking;
  }

  /** For how long nothing is known; null: nothing ever was. */
  silentMs(nowMs: number): number | null {
    return this.latest === null ? null : Math.max(0, nowMs - this.latest.atMs - INTERVAL_MS);
  }

  /** Since when something is in the log that the tail has not routed; null: nothing known is. */
  behindSinceMs(): number | null {
    this.#forgetRouted();
    return this.#heads.at(0)?.seenMs ?? null;
  }

  async look(): Promise<void> {
    const { reader, stats, clock } = this.#options;
    // The term may have begun on another server, and the one before live on.
    if (stats.epoch !== null && stats.epoch !== this.#epoch) reader.close();
    this.#epoch = stats.epoch ?? this.#epoch;
    const beganMs = clock.nowMs();
    const beganDate = Date.now();
    try {
      const { serverMs, head, leader, paused, purge, outboxes, surroundings, ...took } = await reader.read({
        outboxes: this.#outboxesTurn.isDue(beganMs),
        surroundings: this.#surroundingsTurn.isDue(beganMs),
      });
      const nowMs = clock.nowMs();
      this.latest = { head, leader, paused, purge, atMs: nowMs };
      this.fault = null;
      stats.serverAheadMs =
        serverMs - (beganDate + (nowMs - beganMs - took.outboxesTookMs - took.surroundingsTookMs) / 2);
      if (outboxes !== null) {
        this.outboxes = { waiting: outboxes, atMs: beganMs };
        this.#outboxesTurn.rest(nowMs, took.outboxesTookMs * REST_PER_LOOK);
      }
      if (surroundings !== null) {
        const { standbys, jobs } = surroundings;
        const most = standbys === null ? null : Math.max(standbys, this.#standbys ?? 0);
        this.surroundings = { ...surroundings, standbys: most };
        this.#standbys = standbys;
        const restMs = took.surroundingsTookMs * REST_PER_LOOK_AROUND;
        this.#surroundingsTurn.rest(nowMs, jobs.length > 0 ? restMs : Math.max(restMs, SURROUNDINGS_REST_MS));
      }
      if (head !== null) this.#heads.push({ position: head, seenMs: beganMs });
      this.#forgetRouted();
    } catch (error) {
      this.fault = error instanceof RelayError ? error.fault.code : 'INTERNAL';
    }
  }

  #forgetRouted(): void {
    const { stats } = this.#options;
    // Another leader may read another server.
    if (stats.term === null || stats.epoch !== this.#headsEpoch) this.#heads = this.#heads.slice(-1);
    this.#headsEpoch = stats.epoch;
    const { term } = stats;
    if (term === null) return;
    const { routed } = term;
    this.#heads = this.#heads.filter(({ position }) => comparePositions(position, routed) > 0);
    if (this.#heads.length > MOST_HEADS) this.#heads = this.#heads.filter((_, index) => index % 2 === 0);
  }
}
