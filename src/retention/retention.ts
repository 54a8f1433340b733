import { type Clock, pause } from '../model/clock.ts';
import { fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { ConnectionCounts } from '../model/server-counts.ts';
import type { RowId } from '../model/row-ids.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import type { Leader } from '../model/store.ts';
import { OffsetsRow } from '../store/offsets-row.ts';
import { relayTransaction } from '../store/relay-transaction.ts';
import type { Session } from '../store/session.ts';
import { SessionSlot } from '../store/session-slot.ts';
import { PublishedRows } from './published-rows.ts';
import { type Transaction, walk } from './purge.ts';

const ROUND_MS = 60_000;
/** How often a walk begins at the lowest id again: rows that have failed and were delivered later are found there. */
const FROM_START_MS = 3_600_000;
/**
 * Ids grow with time: behind so many chunks with nothing old and rows that are too young, there is nothing old. The
 * rest of the table, however large, is not read.
 */
const YOUNG_CHUNKS = 10;

export interface RetentionOptions {
  readonly settings: Settings;
  readonly leader: Leader;
  /** The server that leadership was taken on. */
  readonly serverUuid: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly counts?: ConnectionCounts;
}

/** Where a walk of one outbox begins. */
interface Walked {
  readonly outbox: OutboxSettings;
  readonly rows: PublishedRows;
  from: RowId | null;
  fromStartMs: number;
}

/**
 * Deletes or archives published rows for the leader: a round a minute, each as long as there is something to do. It
 * has its own connection, closed between the rounds.
 */
export class Retention {
  readonly goesOnWhilePaused = false;
  readonly #options: RetentionOptions;
  readonly #slot: SessionSlot;
  readonly #transaction: Transaction;
  readonly #outboxes: readonly Walked[];

  constructor(options: RetentionOptions) {
    const { settings, leader, clock, log, counts = new ConnectionCounts() } = options;
    this.#options = options;
    const { mysql, relay } = settings;
    this.#slot = new SessionSlot({ mysql, takeOverMs: relay.takeOverMs, clock, log, counts });
    const offsets = new OffsetsRow(settings);
    this.#transaction = (session, work) => relayTransaction(session, offsets, leader, 'removing published rows', work);
    this.#outboxes = settings.outboxes
      .filter(({ retention }) => retention !== null)
      .map((outbox) => ({
        outbox,
        rows: new PublishedRows(settings, outbox),
        from: null,
        fromStartMs: -Infinity,
      }));
  }

  /**
   * Until `signal`. Throws a `RelayError` only when this relay leads no longer; other faults are logged, and the next
   * round tries again.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    try {
      while (this.#outboxes.length > 0 && !signal.aborted) {
        for (const walked of this.#outboxes) await this.#round(walked, signal);
        await pause(clock, ROUND_MS, signal);
      }
    } finally {
      this.#slot.close();
    }
  }

  async #round(walked: Walked, signal: AbortSignal): Promise<void> {
    const { clock, leader, log } = this.#options;
    const outbox = `${walked.outbox.schema}.${walked.outbox.table}`;
    const startedMs = clock.nowMs();
    try {
      const rows = await this.#walk(walked, signal);
      const ms = Math.round(clock.nowMs() - startedMs);
      if (rows > 0) log.info('published-rows-removed', { outbox, rows, ms });
    } catch (error) {
      if (!(error instanceof RelayError)) throw error;
      const { code, detail } = error.fault;
      if (leader.lost.aborted || code === 'LEADERSHIP_LOST' || code === 'MYSQL_FOREIGN_SERVER') throw error;
      log.warn('retention-failed', { outbox, code, detail, nextTryInMs: ROUND_MS });
    }
  }

  /** Returns how many rows were removed. */
  async #walk(walked: Walked, signal: AbortSignal): Promise<number> {
    const { clock } = this.#options;
    const { rows, outbox } = walked;
    const isOrdered = (await this.#use((session) => rows.idKind(session))) === 'integer';
    const isFromStart = clock.nowMs() - walked.fromStartMs >= FROM_START_MS;
    // Without order every walk is a walk of the whole table.
    if (!isOrdered && !isFromStart) return 0;
    if (isFromStart) {
      walked.from = null;
      walked.fromStartMs = clock.nowMs();
    }
    let removed = 0;
    let youngChunks = 0;
    let at = walked.from;
    let resume: RowId | null | undefined;
    const options = { rows, from: at, transaction: this.#transaction, clock, signal };
    const steps = walk((work) => this.#use(work), { ...options, afterMs: outbox.retention!.afterMs });
    for await (const step of steps) {
      removed += step.removed;
      // The next walk begins where the first row is that will be old some day.
      if (resume === undefined && step.young + step.held > 0) resume = at;
      youngChunks = step.removed + step.held === 0 && step.young > 0 ? youngChunks + 1 : 0;
      if (isOrdered && youngChunks === YOUNG_CHUNKS) break;
      if (step.last !== null) at = step.last;
    }
    walked.from = resume === undefined ? at : resume;
    return removed;
  }

  #use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#slot.use((session) => {
      if (session.serverUuid === this.#options.serverUuid) return work(session);
      throw fault('MYSQL_FOREIGN_SERVER', 'renew', 'the address answers as another server than at the start');
    });
  }
}
