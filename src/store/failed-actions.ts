import { RelayError } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { RowId } from '../model/row-ids.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import type { FailedRow, FailedRows } from './failed-rows.ts';
import { idText } from './people-ids.ts';
import type { Session } from './session.ts';

export type FailedAction = 'retry' | 'discard';

/** What became of the rows named, in one transaction. */
export interface Acted {
  readonly done: readonly FailedRow[];
  /** Somebody holds them: nothing was done. */
  readonly held: readonly RowId[];
  /** Not there, or not failed (any more): nothing was done. */
  readonly notFailed: readonly RowId[];
}

const DEADLOCK_TRIES = 5;
/** As long as the shipped column for it is. */
const REASON_CHARACTERS = 1_000;

/**
 * What people do to failed rows of one outbox. Rows are locked by primary key without waiting for anybody, and each act
 * is recorded in the transaction of the act. The leader notices by itself: rows that are pending again are swept, a pair
 * whose row is failed no longer is released.
 */
export class FailedActions {
  readonly #session: Session;
  readonly #rows: FailedRows;
  readonly #relay: string;
  readonly #who: string;
  readonly #outbox: string;
  readonly #actions: string;
  readonly #changes: Readonly<Record<FailedAction, string>>;

  /** `who`: user and host of the operating system. */
  constructor(session: Session, settings: Settings, outbox: OutboxSettings, rows: FailedRows, who: string) {
    this.#session = session;
    this.#rows = rows;
    this.#relay = settings.relay.name;
    this.#who = who;
    this.#outbox = `${outbox.schema}.${outbox.table}`;
    this.#actions = quoteTable(settings.mysql.database, 'cdc_relay_actions');
    const table = quoteTable(outbox.schema, outbox.table);
    this.#changes = {
      retry: `UPDATE ${table} FORCE INDEX (PRIMARY) SET ${pendingAgain(outbox)}`,
      discard: `DELETE ${table} FROM ${table} FORCE INDEX (PRIMARY)`,
    };
  }

  /** One transaction for some hundred rows. Throws a `RelayError`; nothing is done then. */
  async act(action: FailedAction, ids: readonly RowId[]): Promise<Acted> {
    const done = await this.#inTransaction(action, ids);
    const missing = ids.filter((id) => !done.some((row) => row.id === id));
    const held = (await this.#rows.byIds(missing, true)).map(({ id }) => id);
    return { done, held, notFailed: missing.filter((id) => !held.includes(id)) };
  }

  async #inTransaction(action: FailedAction, ids: readonly RowId[]): Promise<readonly FailedRow[]> {
    const doing = `${action === 'retry' ? 'retrying' : 'discarding'} failed rows of ${this.#outbox}`;
    for (let tries = 1; ; tries++) {
      try {
        await this.#session.change(doing, 'START TRANSACTION');
        const rows = await this.#rows.byIds(ids, true, 'FOR UPDATE SKIP LOCKED');
        if (rows.length > 0) {
          await this.#record(action, rows);
          const where = await this.#rows.where(
            rows.map(({ id }) => id),
            true,
          );
          await this.#session.change(doing, `${this.#changes[action]} ${where}`);
        }
        await this.#session.change(doing, 'COMMIT');
        return rows;
      } catch (error) {
        if (this.#session.isUsable) await this.#session.change(doing, 'ROLLBACK').catch(() => undefined);
        const isDeadlock = error instanceof RelayError && error.fault.code === 'MYSQL_DEADLOCK';
        if (!isDeadlock || tries === DEADLOCK_TRIES) throw error;
      }
    }
  }

  async #record(action: FailedAction, rows: readonly FailedRow[]): Promise<void> {
    const row = '(?, ?, CURRENT_USER(), ?, ?, ?, ?, ?, ?)';
    await this.#session.change(
      'recording who did it',
      `INSERT INTO ${this.#actions} (relay, who, account, action, outbox, row_id, topic, aggregate_key, reason)
       VALUES ${rows.map(() => row).join(', ')}`,
      rows.flatMap(({ id, topic, key, error }) => [
        ...[this.#relay, this.#who, action, this.#outbox, idText(this.#rows.kind, id), topic, key],
        error?.slice(0, REASON_CHARACTERS) ?? null,
      ]),
    );
  }
}

/** Due at once, and nothing on its account. */
function pendingAgain({ columns }: OutboxSettings): string {
  const name = (column: string | null): string => quoteIdentifier(column!);
  return [
    `${name(columns.status)} = 'pending'`,
    `${name(columns.attempts)} = 0`,
    `${name(columns.lastError)} = NULL`,
    `${name(columns.claimedAt)} = NULL`,
    `${name(columns.claimedBy)} = NULL`,
    `${name(columns.availableAt)} = LEAST(${name(columns.availableAt)}, UTC_TIMESTAMP(6))`,
  ].join(', ');
}
