import { RelayError } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { type RowId, type RowIds, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import { IdLiterals, idOf, statements } from './id-literals.ts';
import type { Session } from './session.ts';

/** Suspects looked at one by one in a transaction: each is a round trip. The rest counts as held. */
const SINGLE_LOOKS = 200;
/** ER_LOCK_NOWAIT of MySQL; MariaDB answers NOWAIT with 1205. */
const LOCKED_ERRNOS: readonly unknown[] = [3572, 1205];

/**
 * Locks rows of one outbox without waiting for anybody. By the primary key with the index forced; a SELECT of nothing
 * but the key would still let the server scan it: each names one more column.
 */
export class RowLocks {
  readonly #table: string;
  readonly #id: string;
  readonly #column: string;
  readonly #literals: IdLiterals;

  constructor(outbox: OutboxSettings) {
    const { schema, table, columns } = outbox;
    this.#table = quoteTable(schema, table);
    this.#id = quoteIdentifier(columns.id);
    this.#column = quoteIdentifier(columns.status ?? columns.payload);
    this.#literals = new IdLiterals(outbox);
  }

  /** Locks what nobody holds. A row that is gone counts as free: there is nothing to wait for. */
  async take(session: Session, ids: RowIds): Promise<{ free: RowIds; held: RowIds }> {
    const doing = `looking for held rows of ${this.#table}`;
    const shown = await this.#literals.shown(session, ids);
    const select = `SELECT ${shown} AS id, ${this.#column} FROM ${this.#table} FORCE INDEX (PRIMARY) WHERE ${this.#id}`;
    const free = new Set<RowId>();
    for (const some of statements(ids)) {
      const list = await this.#literals.list(session, some);
      const got = await session.rows(doing, `${select} IN (${list}) FOR UPDATE SKIP LOCKED`);
      for (const row of got) free.add(idOf(row['id'], ids));
    }
    const held: RowId[] = [];
    let looks = 0;
    // SKIP LOCKED does not tell held from gone: the few that it left out are asked for one by one.
    for (const id of ids) {
      if (free.has(id)) continue;
      const one = await this.#literals.list(session, rowIds([id]));
      if (looks++ < SINGLE_LOOKS && (await this.#isFree(session, doing, `${select} = ${one} FOR UPDATE NOWAIT`))) {
        free.add(id);
      } else {
        held.push(id);
      }
    }
    return { free: rowIds([...free]), held: rowIds(held) };
  }

  async #isFree(session: Session, doing: string, sql: string): Promise<boolean> {
    try {
      await session.rows(doing, sql);
      return true;
    } catch (error) {
      const cause = error instanceof RelayError ? (error.fault.cause as { errno?: unknown }) : {};
      if (LOCKED_ERRNOS.includes(cause.errno)) return false;
      throw error;
    }
  }
}
