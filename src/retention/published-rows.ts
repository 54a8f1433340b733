import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import { idOf, IdLiterals } from '../store/id-literals.ts';
import { type IdKind, idKind, noIds } from '../store/people-ids.ts';
import type { Session } from '../store/session.ts';
import { archivedColumns } from './archive-columns.ts';

/** Rows next to each other by primary key, looked at in one statement. */
export interface Chunk {
  /** Published long enough ago to go. */
  readonly old: readonly RowId[];
  /** Rows that go later: published since, or not published yet. */
  readonly young: number;
  readonly looked: number;
  /** Where the next chunk begins; null when there is none. */
  readonly last: RowId | null;
}

/**
 * Published rows of one outbox that is marked: found by walking the primary key, never by an index of their age, which
 * would cost every insert and mark.
 */
export class PublishedRows {
  readonly #settings: Settings;
  readonly #outbox: OutboxSettings;
  readonly #literals: IdLiterals;
  readonly #table: string;
  readonly #id: string;
  readonly #status: string;
  readonly #publishedAt: string;
  #kind: IdKind | null = null;
  /** Null: not compared yet. */
  #archived: string | null = null;

  constructor(settings: Settings, outbox: OutboxSettings) {
    this.#settings = settings;
    this.#outbox = outbox;
    this.#literals = new IdLiterals(outbox);
    this.#table = quoteTable(outbox.schema, outbox.table);
    this.#id = quoteIdentifier(outbox.columns.id);
    this.#status = quoteIdentifier(outbox.columns.status!);
    this.#publishedAt = quoteIdentifier(outbox.columns.publishedAt!);
  }

  /**
   * The time (UTC, as the server writes it) before which rows are published long enough ago: `afterMs` before now, and
   * before the last commit that the checkpoint has passed. A row that was published before that commit was written
   * before it, so the relay does not read it from the log again. Null: no such commit is known.
   */
  async before(session: Session, afterMs: number): Promise<string | null> {
    const [row] = await session.rows(
      'looking how far the checkpoint is',
      `SELECT CAST(LEAST(UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND,
         CAST('1970-01-01' AS DATETIME(6)) + INTERVAL last_commit_us MICROSECOND) AS CHAR) AS before_then
       FROM ${quoteTable(this.#settings.mysql.database, 'cdc_relay_offsets')} WHERE name = ?`,
      [Math.round(afterMs * 1000), this.#settings.relay.name],
    );
    const before: unknown = (row as typeof row | undefined)?.['before_then'];
    return typeof before === 'string' ? before : null;
  }

  async idKind(session: Session): Promise<IdKind> {
    return (this.#kind ??= await idKind(session, this.#outbox));
  }

  /** A plain read of `limit` rows at most, behind `after`. */
  async look(session: Session, after: RowId | null, before: string, limit: number): Promise<Chunk> {
    const none = noIds(await this.idKind(session));
    const shown = await this.#literals.shown(session, none);
    const from = after === null ? '' : `WHERE ${this.#id} > ${await this.#literals.list(session, rowIds([after]))}`;
    const rows = await session.rows(
      `looking for published rows of ${this.#table}`,
      `SELECT ${shown} AS id, CASE
         WHEN ${this.#isOld(before)} THEN 'old'
         WHEN ${this.#status} IN ('pending', 'processing') THEN 'young'
         WHEN ${this.#status} = 'published' AND ${this.#publishedAt} IS NOT NULL THEN 'young' END AS age
       FROM ${this.#table} FORCE INDEX (PRIMARY) ${from} ORDER BY ${this.#id} LIMIT ${limit}`,
    );
    const idAt = (row: (typeof rows)[number]): RowId => idOf(row['id'], none);
    return {
      old: rows.filter((row) => row['age'] === 'old').map(idAt),
      young: rows.filter((row) => row['age'] === 'young').length,
      looked: rows.length,
      last: rows.length < limit ? null : idAt(rows[rows.length - 1]),
    };
  }

  /**
   * Inside of a transaction: those of the rows that still are old and that nobody holds are deleted, and where there is
   * an archive put there before. Returns how many. Waits for nobody's row lock.
   */
  async remove(session: Session, ids: readonly RowId[], before: string): Promise<number> {
    const doing = `removing published rows of ${this.#table}`;
    const none = noIds(await this.idKind(session));
    const shown = await this.#literals.shown(session, none);
    const rows = await session.rows(
      doing,
      `SELECT ${shown} AS id, ${this.#status} FROM ${this.#table} FORCE INDEX (PRIMARY)
       WHERE ${await this.#isIn(session, ids)} AND ${this.#isOld(before)} FOR UPDATE SKIP LOCKED`,
    );
    if (rows.length === 0) return 0;
    const locked = rows.map((row) => idOf(row['id'], none));
    // Nothing but the key in the condition would let the server scan the table where its statistics are of a small one.
    const ours = `${await this.#isIn(session, locked)} AND ${this.#status} = 'published'`;
    const archive = this.#outbox.retention?.archive ?? null;
    if (archive !== null) {
      const columns = (this.#archived ??= await archivedColumns(session, this.#outbox, archive));
      await session.change(
        `archiving published rows of ${this.#table}`,
        `INSERT INTO ${quoteTable(archive.schema, archive.table)} (${columns})
         SELECT ${columns} FROM ${this.#table} FORCE INDEX (PRIMARY) WHERE ${ours}`,
      );
    }
    await session.change(doing, `DELETE ${this.#table} FROM ${this.#table} FORCE INDEX (PRIMARY) WHERE ${ours}`);
    return rows.length;
  }

  /** Lowest and highest id, where ids are integers: how far a walk is. Null: an empty table, or other ids. */
  async idRange(session: Session): Promise<{ readonly from: bigint; readonly to: bigint } | null> {
    if ((await this.idKind(session)) !== 'integer') return null;
    const [row] = await session.rows(
      `looking for the ends of ${this.#table}`,
      `SELECT MIN(${this.#id}) AS lowest, MAX(${this.#id}) AS highest FROM ${this.#table}`,
    );
    const { lowest, highest } = row as { lowest: string | number | null; highest: string | number };
    return lowest === null ? null : { from: BigInt(lowest), to: BigInt(highest) };
  }

  /** A row without `published_at` is never old: the comparison is NULL. */
  #isOld(before: string): string {
    return `${this.#status} = 'published' AND ${this.#publishedAt} < '${before}'`;
  }

  async #isIn(session: Session, ids: readonly RowId[]): Promise<string> {
    return `${this.#id} IN (${await this.#literals.list(session, rowIds(ids))})`;
  }
}
