import { backOffMs } from '../delivery/back-off.ts';
import { type Clock, pause } from '../model/clock.ts';
import { RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { Form, type OutboxRow, type RowCursor } from '../model/row.ts';
import { type RowId, shownId } from '../model/row-ids.ts';
import { newRelayStats, type RelayStats } from '../model/stats.ts';
import type { Store } from '../model/store.ts';

const BACK_OFF = { baseMs: 50, capMs: 2_000 };
/** Of one read. The bytes are those that the log has of the rows: the payload is mostly among them. */
const RUN_ROWS = 500;
const RUN_BYTES = 4 * 1024 * 1024;
const SHOWN_IDS = 10;

/** Rows of one outbox that follow each other and that the log has left columns out of (`binlog_row_image`). */
export interface IncompleteRun {
  readonly outbox: number;
  readonly ids: readonly RowId[];
  /** The cursor stands at the row behind them; false: there is none. */
  readonly more: boolean;
}

/** The run that begins at the row where the cursor stands. `whole`: complete rows belong to it too. */
export function takeRun(cursor: RowCursor, whole = false): IncompleteRun {
  const { row } = cursor;
  const { outbox } = row;
  const ids: RowId[] = [];
  let bytes = 0;
  let more: boolean;
  do {
    ids.push(idOf(row));
    bytes += row.value.end - row.value.start;
    more = cursor.next();
  } while (more && (whole || !row.isComplete) && row.outbox === outbox && ids.length < RUN_ROWS && bytes < RUN_BYTES);
  return { outbox, ids, more };
}

/** Reads from the table what the log does not hold. */
export class RowCompletion {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  /** By outbox, for the log. */
  readonly #tables: readonly string[];
  readonly #stats: RelayStats;

  constructor(store: Store, clock: Clock, log: Log, tables: readonly string[], stats: RelayStats = newRelayStats()) {
    this.#store = store;
    this.#tables = tables;
    this.#clock = clock;
    this.#stats = stats;
    this.#log = log;
  }

  /**
   * The rows of the run, in its order. Tries for as long as it may pass (a lock of the application, a lost connection);
   * null when `signal` was aborted. Throws a `RelayError`.
   */
  async read({ outbox, ids }: IncompleteRun, commitMs: number, signal: AbortSignal): Promise<RowCursor | null> {
    // As the tail tells what is delayed: by a second or more, in whole seconds.
    const dueBeforeMs = (Math.floor(commitMs / 1000) + 1) * 1000;
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        const { rows, gone } = await this.#store.readRows(outbox, ids, dueBeforeMs);
        if (tries > 1) this.#log.info('row-read-recovered', { tries });
        this.#report(outbox, gone);
        return rows;
      } catch (error) {
        if (!(error instanceof RelayError) || error.fault.disposition !== 'retry') throw error;
        const { code, detail } = error.fault;
        if (tries === 1)
          this.#log.warn('row-read-failed', { table: this.#tables[outbox], rows: ids.length, code, detail });
        await pause(this.#clock, backOffMs(BACK_OFF, tries, Math.random()), signal);
      }
    }
    return null;
  }

  #report(outbox: number, gone: readonly RowId[]): void {
    if (gone.length === 0) return;
    this.#stats.goneRows += gone.length;
    const ids = gone.slice(0, SHOWN_IDS).map(shownId);
    this.#log.warn('rows-gone-before-read', { table: this.#tables[outbox], rows: gone.length, ids });
  }
}

export function idOf({ idBytes, idLow, idHigh }: OutboxRow): RowId {
  if (idBytes.form !== Form.Null) return idBytes.buffer.toString('hex', idBytes.start, idBytes.end);
  return (BigInt(idHigh) << 32n) | BigInt(idLow);
}
