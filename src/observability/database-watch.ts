import { type Clock, pause } from '../model/clock.ts';
import { type FaultCode, RelayError } from '../model/fault.ts';
import { comparePositions, type Position } from '../model/position.ts';
import type { OutboxProgress, ProgressReader } from '../model/progress.ts';
import type { RelayStats } from '../model/stats.ts';

const INTERVAL_MS = 1_000;
/** Looking at the tables takes at most this share of the time, whatever it costs. */
const REST_PER_LOOK = 100;
const LONGEST_REST_MS = 60_000;
/** Heads of the log that have not been routed: of more than this every second one is forgotten. */
const MOST_HEADS = 512;

export interface DatabaseWatchOptions {
  readonly reader: ProgressReader;
  readonly stats: RelayStats;
  readonly clock: Clock;
  /** After each look. */
  readonly onLook: () => void;
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
  #nextOutboxesMs = -Infinity;
  /** As it was at the last look that succeeded. */
  latest: { readonly head: Position | null; readonly atMs: number } | null = null;
  /** By outbox, as it was when the tables were last looked at; null where rows have no state. */
  outboxes: { readonly waiting: readonly (OutboxProgress | null)[]; readonly atMs: number } | null = null;
  /** Why the last look did not succeed. */
  fault: FaultCode | null = null;

  constructor(options: DatabaseWatchOptions) {
    this.#options = options;
  }

  /** Until `signal` is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { reader, clock, onLook } = this.#options;
    while (!signal.aborted) {
      await this.look();
      onLook();
      await pause(clock, INTERVAL_MS, signal);
    }
    reader.close();
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
      const { serverMs, head, outboxes, outboxesTookMs } = await reader.read(beganMs >= this.#nextOutboxesMs);
      const nowMs = clock.nowMs();
      this.latest = { head, atMs: nowMs };
      this.fault = null;
      stats.serverAheadMs = serverMs - (beganDate + (nowMs - beganMs - outboxesTookMs) / 2);
      if (outboxes !== null) {
        this.outboxes = { waiting: outboxes, atMs: beganMs };
        this.#nextOutboxesMs = nowMs + Math.min(LONGEST_REST_MS, outboxesTookMs * REST_PER_LOOK);
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
