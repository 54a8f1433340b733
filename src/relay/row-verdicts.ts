import type { Lane } from '../delivery/lane.ts';
import { isFinal } from '../delivery/row-faults.ts';
import { scopeKeyText } from '../delivery/row-key.ts';
import type { Fault } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { OutboxRow } from '../model/row.ts';
import { type RowId, shownId } from '../model/row-ids.ts';
import type { FailureSettings } from '../model/settings.ts';
import { type RelayStats, tally } from '../model/stats.ts';
import type { RowFailure } from '../model/store.ts';
import type { DeadLetters } from './dead-letters.ts';
import type { Letter } from './letter.ts';

/** Of `last_error`. */
const LONGEST_ERROR = 1_000;

export interface RowVerdictsDeps {
  readonly settings: FailureSettings;
  /** Null: failed rows go nowhere else. */
  readonly deadLetters: DeadLetters | null;
  readonly log: Log;
  /** By outbox, for people. */
  readonly tables: readonly string[];
  readonly stats: RelayStats;
  /** Since when a row's pair has been waiting because of this very row, milliseconds since the epoch. */
  readonly waitingSinceMs: (topic: string, key: string, id: RowId) => number | undefined;
  /** The sweep's batches have rows that are sent again: they are told, and that is all. */
  readonly isReplaying: () => boolean;
}

/** What is to be done about a row that cannot be delivered as it is. */
export interface Verdict {
  readonly failure: RowFailure;
  /** Not null: its pair waits, for the next back-off or until somebody acts. */
  readonly park: 'back-off' | 'until somebody acts' | null;
  readonly reason: string;
}

/** A row that could not be delivered. */
export interface Attempted {
  readonly outbox: number;
  readonly id: RowId;
  /** As `scopeKeyText` makes it. */
  readonly key: string;
  /** On its account before this one. */
  readonly attempts: number;
}

/** Judges rows that Kafka refuses by themselves, or that cannot become records. */
export class RowVerdicts {
  readonly #deps: RowVerdictsDeps;

  constructor(deps: RowVerdictsDeps) {
    this.#deps = deps;
  }

  /** A row that never became a record. `topic` '': it names none that can be. */
  async ofRow(row: OutboxRow, topic: string, id: RowId, attempts: number, fault: Fault): Promise<Verdict> {
    const attempted = { outbox: row.outbox, id, key: scopeKeyText(row), attempts };
    return this.#judge(attempted, topic, fault, (letters, letter) => letters.sendRow(row, letter));
  }

  /** The first record of what the lane is sending; `[start, end)` is its place in the buffer. */
  async ofRecord(
    lane: Lane,
    attempted: Attempted,
    fault: Fault,
    place: { readonly buffer: Buffer; readonly start: number; readonly end: number },
  ): Promise<Verdict> {
    const { outbox, id } = attempted;
    if (lane.sending!.isSwept && this.#deps.isReplaying())
      return { failure: failureOf(outbox, id, 'failed', fault), park: null, reason: fault.code };
    return this.#judge(attempted, lane.topic, fault, (letters, letter) =>
      letters.sendRecord(place.buffer, place.start, place.end, { ...letter, topic: lane.topic }),
    );
  }

  async #judge(
    attempted: Attempted,
    topic: string,
    fault: Fault,
    send: (letters: DeadLetters, letter: Letter) => Promise<Fault | null>,
  ): Promise<Verdict> {
    const { outbox, id, key } = attempted;
    const { settings, deadLetters, log, tables, stats } = this.#deps;
    const attempts = attempted.attempts + 1;
    const where = { table: tables[outbox], rowId: shownId(id), code: fault.code, attempts };
    if (!isFinal(fault.code) && attempts < settings.maxAttempts) {
      log.debug('row-retried', where);
      tally(stats.retriedRows, fault.code, outbox, 1);
      return { failure: failureOf(outbox, id, 'pending', fault), park: 'back-off', reason: fault.code };
    }
    if (deadLetters !== null) {
      const firstFailureMs = this.#deps.waitingSinceMs(topic, key, id);
      const undelivered = await send(deadLetters, { outbox, id, attempts, fault, topic: null, firstFailureMs });
      if (undelivered !== null) {
        stats.deadLetters.notSent++;
        tally(stats.retriedRows, undelivered.code, outbox, 1);
        log.warn('dead-letter-not-sent', { ...where, reason: undelivered.code });
        return { failure: failureOf(outbox, id, 'pending', fault), park: 'back-off', reason: undelivered.code };
      }
    }
    if (deadLetters !== null) stats.deadLetters.sent++;
    tally(stats.failedRows, fault.code, outbox, 1);
    log.warn('row-failed', { ...where, detail: fault.detail, deadLetter: deadLetters !== null });
    const park = settings.onExhausted === 'block' ? 'until somebody acts' : null;
    return { failure: failureOf(outbox, id, 'failed', fault), park, reason: 'BLOCKED' };
  }
}

export function failureOf(outbox: number, id: RowId, as: RowFailure['as'], { code, detail }: Fault): RowFailure {
  return { outbox, id, as, error: `${code}: ${detail}`.slice(0, LONGEST_ERROR) };
}
