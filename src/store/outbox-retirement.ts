import { RelayError } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { Session } from './session.ts';

/** Suspects looked at one by one in a flush: each is a round trip. The rest is looked at in the next flush. */
const SINGLE_LOOKS = 200;
/**
 * Ids of one statement. The optimizer's memory for ranges (8 MiB by default) takes some 36,000; beyond, it scans and
 * locks the whole table, index forced or not.
 */
const STATEMENT_IDS = 10_000;
/** ER_LOCK_NOWAIT of MySQL; MariaDB answers NOWAIT with 1205. */
const LOCKED_ERRNOS: readonly unknown[] = [3572, 1205];

/**
 * Marks or deletes rows of one outbox. Always by ranges of the primary key with the index forced: the optimizer
 * otherwise scans and locks the whole table when many rows are named. A SELECT of nothing but the key would still
 * let it scan that index: each names one more column.
 */
export class OutboxRetirement {
  readonly #table: string;
  readonly #id: string;
  readonly #stillPending: string;
  readonly #retire: string;

  constructor({ schema, table, columns, retire }: OutboxSettings) {
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
  async retire(session: Session, ids: BigUint64Array): Promise<void> {
    for (const some of statements(ids)) await this.#retireSome(session, some);
  }

  async #retireSome(session: Session, ids: BigUint64Array): Promise<void> {
    const list = ids.join(',');
    const doing = `retiring rows of ${this.#table}`;
    const where = `WHERE ${this.#id} IN (${list}) AND ${this.#stillPending}`;
    const { matched } = await session.change(doing, `${this.#retire} ${where}`);
    if (matched === ids.length) return;
    const left = await session.rows(
      doing,
      `SELECT ${this.#id} AS id FROM ${this.#table} FORCE INDEX (PRIMARY) ${where} FOR UPDATE`,
    );
    if (left.length === 0) return;
    await session.change(
      doing,
      `${this.#retire} WHERE ${this.#id} IN (${left.map((row) => String(row['id'])).join(',')}) AND ${this.#stillPending}`,
    );
  }

  /** Locks what nobody holds. A row that is gone counts as free: there is nothing to wait for. */
  async lockWithoutWaiting(
    session: Session,
    ids: BigUint64Array,
  ): Promise<{ free: BigUint64Array; locked: BigUint64Array }> {
    const doing = `looking for held rows of ${this.#table}`;
    const select = `SELECT ${this.#id} AS id, ${this.#stillPending} FROM ${this.#table} FORCE INDEX (PRIMARY) WHERE ${this.#id}`;
    const free = new Set<bigint>();
    for (const some of statements(ids)) {
      const got = await session.rows(doing, `${select} IN (${some.join(',')}) FOR UPDATE SKIP LOCKED`);
      for (const row of got) free.add(BigInt(String(row['id'])));
    }
    const locked: bigint[] = [];
    let looks = 0;
    // SKIP LOCKED does not tell held from gone: the few that it left out are asked for one by one.
    for (const id of ids) {
      if (free.has(id)) continue;
      if (looks++ < SINGLE_LOOKS && (await this.#isFree(session, doing, `${select} = ${id} FOR UPDATE NOWAIT`))) {
        free.add(id);
      } else {
        locked.push(id);
      }
    }
    return { free: BigUint64Array.from(free).sort(), locked: BigUint64Array.from(locked) };
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

function* statements(ids: BigUint64Array): Iterable<BigUint64Array> {
  for (let at = 0; at < ids.length; at += STATEMENT_IDS) yield ids.subarray(at, at + STATEMENT_IDS);
}
