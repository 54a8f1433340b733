import type { Lane } from '../delivery/lane.ts';
import { isFinal } from '../delivery/row-faults.ts';
import type { Fault } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { OutboxRow } from '../model/row.ts';
import type { RowId } from '../model/row-ids.ts';
import type { FailureSettings } from '../model/settings.ts';
import { type RelayStats, tally } from '../model/stats.ts';
import type { RowFailure } from '../model/store.ts';
import type { DeadLetters } from './dead-letters.ts';

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

/** Judges rows that Kafka refuses by themselves, or that cannot become records. */
export class RowVerdicts {
  readonly #deps: RowVerdictsDeps;

  constructor(deps: RowVerdictsDeps) {
    this.#deps = deps;
  }

  /** `row`: of a row that never became a record. `attempts`: on its account before. */
  async ofRow(row: OutboxRow, id: RowId, attempts: number, fault: Fault): Promise<Verdict> {
    return this.#judge(row.outbox, id, attempts, fault, (letters, letter) => letters.sendRow(row, letter));
  }

  /** The first record of what the lane is sending; `[start, end)` is its place in the buffer. */
  async ofRecord(
    lane: Lane,
    outbox: number,
    id: RowId,
    attempts: number,
    fault: Fault,
    place: { readonly buffer: Buffer; readonly start: number; readonly end: number },
  ): Promise<Verdict> {
    if (lane.sending!.isSwept && this.#deps.isReplaying())
      return { failure: failureOf(outbox, id, 'failed', fault), park: null, reason: fault.code };
    return this.#judge(outbox, id, attempts, fault, (letters, letter) =>
      letters.sendRecord(place.buffer, place.start, place.end, { ...letter, topic: lane.topic }),
    );
  }

  async #judge(
    outbox: number,
    id: RowId,
    before: number,
    fault: Fault,
    send: (letters: DeadLetters, letter: Parameters<DeadLetters['sendRow']>[1]) => Promise<Fault | null>,
  ): Promise<Verdict> {
    const { settings, deadLetters, log, tables, stats } = this.#deps;
    const attempts = before + 1;
    const where = { table: tables[outbox], rowId: String(id), code: fault.code, attempts };
    if (!isFinal(fault.code) && attempts < settings.maxAttempts) {
      log.debug('row-retried', where);
      tally(stats.retriedRows, fault.code, outbox, 1);
      return { failure: failureOf(outbox, id, 'pending', fault), park: 'back-off', reason: fault.code };
    }
    if (deadLetters !== null) {
      const undelivered = await send(deadLetters, { outbox, id, attempts, fault, topic: null });
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
