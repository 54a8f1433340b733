import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { OutboxColumns, OutboxSettings } from '../model/settings.ts';
import type { RowFailure } from '../model/store.ts';
import { IdLiterals, statements } from './id-literals.ts';
import type { Session } from './session.ts';
import type { WaitingTable } from './waiting-table.ts';

/** Changes the state of rows of one outbox: by primary key, the index forced, and only where a condition holds. */
export class RowChanges {
  readonly #table: string;
  readonly #id: string;
  readonly #columns: OutboxColumns;
  readonly #status: string;
  readonly #literals: IdLiterals;
  readonly #waiting: WaitingTable;

  /** `status` is the name of the column. */
  constructor(settings: OutboxSettings, status: string, waiting: WaitingTable) {
    const { schema, table, columns } = settings;
    this.#table = quoteTable(schema, table);
    this.#id = quoteIdentifier(columns.id);
    this.#columns = columns;
    this.#status = quoteIdentifier(status);
    this.#literals = new IdLiterals(settings);
    this.#waiting = waiting;
  }

  /** `processing`, and whose. */
  claim(session: Session, ids: readonly RowId[], condition: string, owner: string): Promise<number> {
    const { claimedBy, claimedAt } = this.#columns;
    const set = [...assign(claimedBy, owner), ...assign(claimedAt, 'UTC_TIMESTAMP(6)')];
    return this.#update(session, ids, condition, [`${this.#status} = 'processing'`, ...set]);
  }

  mark(session: Session, ids: readonly RowId[], condition: string): Promise<number> {
    const set = [`${this.#status} = 'published'`, ...assign(this.#columns.publishedAt, 'UTC_TIMESTAMP(6)')];
    return this.#update(session, ids, condition, [...set, ...this.#unclaimed()]);
  }

  /** Counts as published and never was: it has no time of it. */
  leave(session: Session, ids: readonly RowId[], condition: string): Promise<number> {
    const set = [`${this.#status} = 'published'`, ...assign(this.#columns.publishedAt, 'NULL')];
    return this.#update(session, ids, condition, [...set, ...this.#unclaimed()]);
  }

  release(session: Session, ids: readonly RowId[], condition: string): Promise<number> {
    return this.#update(session, ids, condition, [`${this.#status} = 'pending'`, ...this.#unclaimed()]);
  }

  delete(session: Session, ids: readonly RowId[], condition: string): Promise<number> {
    return this.#each(session, ids, condition, `DELETE ${this.#table} FROM ${this.#table} FORCE INDEX (PRIMARY)`);
  }

  /** One more attempt on each row's account, and the error of the last. */
  async fail(session: Session, failures: readonly RowFailure[], condition: string): Promise<void> {
    const { attempts, lastError } = this.#columns;
    const { errorCharacters } = await this.#waiting.facts(session);
    for (const [, alike] of Map.groupBy(failures, ({ as, error }) => `${as} ${error}`)) {
      const [{ as, error }] = alike;
      const text = Buffer.from(Array.from(error).slice(0, errorCharacters).join('')).toString('hex');
      const set = [
        `${this.#status} = '${as}'`,
        ...(attempts === null ? [] : [`${quoteIdentifier(attempts)} = ${quoteIdentifier(attempts)} + 1`]),
        ...assign(lastError, `_utf8mb4 X'${text}'`),
        ...this.#unclaimed(),
      ];
      const ids = alike.map(({ id }) => id);
      await this.#update(session, ids, condition, set);
    }
  }

  #unclaimed(): string[] {
    return [...assign(this.#columns.claimedBy, 'NULL'), ...assign(this.#columns.claimedAt, 'NULL')];
  }

  #update(session: Session, ids: readonly RowId[], condition: string, set: readonly string[]): Promise<number> {
    return this.#each(session, ids, condition, `UPDATE ${this.#table} FORCE INDEX (PRIMARY) SET ${set.join(', ')}`);
  }

  /** Returns how many rows the condition held for. */
  async #each(session: Session, ids: readonly RowId[], condition: string, change: string): Promise<number> {
    if (ids.length === 0) return 0;
    let done = 0;
    for (const some of statements(rowIds(ids))) {
      const where = `WHERE ${this.#id} IN (${await this.#literals.list(session, some)}) AND ${condition}`;
      done += (await session.change(`changing rows of ${this.#table}`, `${change} ${where}`)).matched;
    }
    return done;
  }
}

function assign(column: string | null, value: string): string[] {
  return column === null ? [] : [`${quoteIdentifier(column)} = ${value}`];
}
