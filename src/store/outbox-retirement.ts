import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { type RowIds, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import { IdLiterals, idOf, statements } from './id-literals.ts';
import type { Session } from './session.ts';

/**
 * Marks or deletes rows of one outbox. Always by ranges of the primary key with the index forced: the optimizer
 * otherwise scans and locks the whole table when many rows are named. A SELECT of nothing but the key would still
 * let it scan that index: each names one more column. Consecutive ids are named one by one too: BETWEEN would read,
 * and wait for, the row behind its end, which may be the application's.
 */
export class OutboxRetirement {
  readonly #table: string;
  readonly #id: string;
  readonly #literals: IdLiterals;
  readonly #stillPending: string;
  readonly #retire: string;

  constructor(outbox: OutboxSettings) {
    const { schema, table, columns, retire } = outbox;
    this.#literals = new IdLiterals(outbox);
    this.#table = quoteTable(schema, table);
    this.#id = quoteIdentifier(columns.id);
    if (retire === 'keep' || columns.status === null) {
      this.#stillPending = this.#retire = '';
      return;
    }
    const status = quoteIdentifier(columns.status);
    this.#stillPending = `${status} = 'pending'`;
    const publishedAt =
      columns.publishedAt === null ? '' : `, ${quoteIdentifier(columns.publishedAt)} = UTC_TIMESTAMP(6)`;
    this.#retire =
      retire === 'mark'
        ? `UPDATE ${this.#table} FORCE INDEX (PRIMARY) SET ${status} = 'published'${publishedAt}`
        : `DELETE ${this.#table} FROM ${this.#table} FORCE INDEX (PRIMARY)`;
  }

  /**
   * Fewer rows than named is not done: under READ COMMITTED an UPDATE passes over a row that is in the binlog but not
   * yet committed in the engine. Those are read again under lock (which waits for the commit) and retired then. What
   * is gone or no longer pending was settled by somebody else.
   */
  async retire(session: Session, ids: RowIds): Promise<void> {
    for (const some of statements(ids)) await this.#retireSome(session, some);
  }

  async #retireSome(session: Session, ids: RowIds): Promise<void> {
    const doing = `retiring rows of ${this.#table}`;
    const where = await this.#where(session, ids);
    const { matched } = await session.change(doing, `${this.#retire} ${where}`);
    if (matched === ids.length) return;
    const shown = await this.#literals.shown(session, ids);
    const rows = await session.rows(
      doing,
      `SELECT ${shown} AS id FROM ${this.#table} FORCE INDEX (PRIMARY) ${where} FOR UPDATE`,
    );
    if (rows.length === 0) return;
    const left = rowIds(rows.map((row) => idOf(row['id'], ids)));
    await session.change(doing, `${this.#retire} ${await this.#where(session, left)}`);
  }

  async #where(session: Session, ids: RowIds): Promise<string> {
    return `WHERE ${this.#id} IN (${await this.#literals.list(session, ids)}) AND ${this.#stillPending}`;
  }
}
