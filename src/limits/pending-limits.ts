import { type Clock, pause } from '../model/clock.ts';
import { fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { ConnectionCounts } from '../model/server-counts.ts';
import type { LimitSettings, Settings } from '../model/settings.ts';
import type { Leader } from '../model/store.ts';
import type { Session } from '../store/session.ts';
import { SessionSlot } from '../store/session-slot.ts';
import { type LimitState, nextState, reasonOf } from './limit-state.ts';
import { RefusalFlags } from './refusal-flags.ts';
import { WaitingRows } from './waiting-rows.ts';

const INTERVAL_MS = 1_000;
/** Looking takes at most this share of the time, whatever it costs. */
const REST_PER_LOOK = 100;
/** A flag that stays as it is is written again so often: that it is still valid. */
const REFRESH_MS = 10_000;
/** A flag outlives so many looks, or refreshes, that did not come. */
const VALID_TIMES = 3;

export interface PendingLimitsOptions {
  readonly settings: Settings;
  readonly leader: Leader;
  /** The server that leadership was taken on. */
  readonly serverUuid: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly counts?: ConnectionCounts;
}

interface Watched {
  readonly limits: LimitSettings;
  readonly waiting: WaitingRows;
  state: LimitState;
  /** The flag as it was last written, and when. */
  flag: { readonly reason: string | null; readonly atMs: number } | null;
}

/**
 * Looks about every second how much waits in each outbox that has limits, and keeps the flag by which applications can
 * refuse new rows. Has a connection of its own.
 */
export class PendingLimits {
  /** Applications go on inserting while nobody delivers: then the flag matters most. */
  readonly goesOnWhilePaused = true;
  readonly #options: PendingLimitsOptions;
  readonly #slot: SessionSlot;
  readonly #flags: RefusalFlags;
  readonly #watched: readonly Watched[];
  /** Faults by their detail: each is told once. */
  readonly #told = new Set<string>();

  constructor(options: PendingLimitsOptions) {
    const { settings, clock, log, counts = new ConnectionCounts() } = options;
    this.#options = options;
    const { mysql, relay } = settings;
    this.#slot = new SessionSlot({ mysql, takeOverMs: relay.takeOverMs, clock, log, counts });
    this.#flags = new RefusalFlags(settings, options.leader);
    this.#watched = settings.outboxes.flatMap((outbox) => {
      const { limits } = outbox;
      if (limits === null) return [];
      const state = {
        outbox: `${outbox.schema}.${outbox.table}`,
        ...{ pendingRows: null, oldestAgeMs: null, overRows: false, overAge: false },
      };
      return [{ limits, waiting: new WaitingRows(outbox, limits), state, flag: null }];
    });
  }

  /** One for each outbox with limits, as it was when it was last looked at. */
  get state(): readonly LimitState[] {
    return this.#watched.map(({ state }) => state);
  }

  /**
   * Until `signal`. Throws a `RelayError` only when this relay leads no longer; other faults are logged, and the next
   * look tries again.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    try {
      await this.#guarded(() => this.#removeOldFlags());
      let intervalMs = INTERVAL_MS;
      while (this.#watched.length > 0 && !signal.aborted) {
        let lookedMs = 0;
        for (const watched of this.#watched) {
          await this.#guarded(async () => {
            const startedMs = clock.nowMs();
            await this.#look(watched);
            lookedMs += clock.nowMs() - startedMs;
            if (watched.limits.policy === 'refuse') await this.#keepFlag(watched, intervalMs);
          });
        }
        intervalMs = Math.max(INTERVAL_MS, lookedMs * REST_PER_LOOK);
        await pause(clock, intervalMs, signal);
      }
    } finally {
      this.#slot.close();
    }
  }

  async #removeOldFlags(): Promise<void> {
    const kept = this.#watched.filter(({ limits }) => limits.policy === 'refuse').map(({ state }) => state.outbox);
    await this.#use((session) => this.#flags.removeOthers(session, kept));
  }

  async #look(watched: Watched): Promise<void> {
    const { log } = this.#options;
    const { limits, waiting, state: before } = watched;
    const state = nextState(before, limits, await this.#use((session) => waiting.read(session)));
    watched.state = state;
    const { outbox, pendingRows, oldestAgeMs } = state;
    const [was, is] = [reasonOf(before, limits), reasonOf(state, limits)];
    if (is !== null && is !== was) log.warn('pending-limit-passed', { outbox, pendingRows, oldestAgeMs, reason: is });
    if (is === null && was !== null) log.info('pending-limit-kept-again', { outbox, pendingRows, oldestAgeMs });
  }

  async #keepFlag(watched: Watched, intervalMs: number): Promise<void> {
    const { limits, state, flag } = watched;
    const nowMs = this.#options.clock.nowMs();
    const reason = reasonOf(state, limits);
    const refreshMs = Math.max(REFRESH_MS, intervalMs);
    // A reason that only changes its words waits for the next refresh.
    const isSame = flag !== null && (flag.reason === null) === (reason === null);
    if (isSame && nowMs - flag.atMs < refreshMs) return;
    const refusal = { outbox: state.outbox, reason, validMs: VALID_TIMES * refreshMs };
    await this.#use((session) => this.#flags.put(session, refusal));
    watched.flag = { reason, atMs: nowMs };
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    const { leader, log } = this.#options;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof RelayError)) throw error;
      const { code, detail } = error.fault;
      if (leader.lost.aborted || code === 'LEADERSHIP_LOST' || code === 'MYSQL_FOREIGN_SERVER') throw error;
      if (!this.#told.has(detail)) log.warn('pending-limits-failed', { code, detail });
      this.#told.add(detail);
    }
  }

  #use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#slot.use((session) => {
      if (session.serverUuid === this.#options.serverUuid) return work(session);
      throw fault('MYSQL_FOREIGN_SERVER', 'renew', 'the address answers as another server than at the start');
    });
  }
}
