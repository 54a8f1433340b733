import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { RowCursor } from '../model/row.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import { idOf, IdLiterals } from '../store/id-literals.ts';
import { OutboxSelect } from '../store/outbox-select.ts';
import { type IdKind, idKind, noIds } from '../store/people-ids.ts';
import type { Session } from '../store/session.ts';

/** Rows looked at in one statement, whether or not they are meant. */
const CHUNK_ROWS = 1_000;
/** Payloads read in one statement, unless one row alone is larger. */
const READ_BYTES = 4 << 20;

/** Which rows of an outbox: by primary key, ends included, and by time (UTC, as the server writes it). */
export interface RowRange {
  readonly fromId: RowId | null;
  readonly toId: RowId | null;
  readonly since: string | null;
  readonly until: string;
}

/** What is known of a row beside what is in its record. */
export interface RowFacts {
  readonly id: RowId;
  readonly delayed: boolean;
  readonly attempted: boolean;
}

export interface RowChunk {
  readonly facts: ReadonlyMap<RowId, RowFacts>;
  readonly rows: RowCursor;
  readonly ids: readonly RowId[];
  /** The last row looked at. */
  readonly last: RowId;
}

/**
 * Rows of one outbox that should be in Kafka, by walks along the primary key: no statement reads more than a chunk,
 * none locks or sorts. Where rows are marked these are those that the relay has marked (history that only counts as
 * published has no time of it), where they are kept all of them.
 */
export class TableRows {
  readonly #session: Session;
  readonly #outbox: OutboxSettings;
  readonly #literals: IdLiterals;
  readonly #select: OutboxSelect;
  readonly kind: IdKind;

  private constructor(session: Session, index: number, outbox: OutboxSettings, kind: IdKind) {
    this.#session = session;
    this.#outbox = outbox;
    this.#literals = new IdLiterals(outbox);
    this.#select = new OutboxSelect(index, outbox);
    this.kind = kind;
  }

  static async open(session: Session, index: number, outbox: OutboxSettings): Promise<TableRows> {
    return new TableRows(session, index, outbox, await idKind(session, outbox));
  }

  /** Lowest and highest id, where ids are integers: how far a walk is. */
  async idRange(): Promise<{ readonly from: bigint; readonly to: bigint } | null> {
    if (this.kind !== 'integer') return null;
    const id = quoteIdentifier(this.#outbox.columns.id);
    const [row] = await this.#session.rows(
      `looking for the ends of ${this.#name}`,
      `SELECT MIN(${id}) AS lowest, MAX(${id}) AS highest FROM ${this.#name}`,
    );
    const { lowest, highest } = row as { lowest: string | number | null; highest: string | number };
    return lowest === null ? null : { from: BigInt(lowest), to: BigInt(highest) };
  }

  /** Chunks of what is meant; one without rows tells only how far it has come. */
  async *read(range: RowRange): AsyncGenerator<RowChunk> {
    const condition = this.#meant(range);
    const { columns } = this.#outbox;
    const column = (name: string | null, otherwise: string) => (name === null ? otherwise : quoteIdentifier(name));
    const delayed =
      columns.availableAt === null || columns.createdAt === null
        ? '0'
        : `${quoteIdentifier(columns.availableAt)} > ${quoteIdentifier(columns.createdAt)}`;
    const looked = this.#walk(range, [
      `(${condition}) AS meant`,
      `OCTET_LENGTH(${quoteIdentifier(columns.payload)}) AS bytes`,
      `${delayed} AS isDelayed`,
      `${column(columns.attempts, '0')} > 0 AS attempted`,
    ]);
    for await (const { rows, idAt, last } of looked) {
      const facts = new Map<RowId, RowFacts>();
      let bytes = 0;
      for (const row of rows) {
        if (Number(row['meant']) !== 1) continue;
        if (bytes > READ_BYTES) {
          yield await this.#chunk(facts, condition, last);
          facts.clear();
          bytes = 0;
        }
        const id = idAt(row);
        facts.set(id, { id, delayed: Number(row['isDelayed']) === 1, attempted: Number(row['attempted']) === 1 });
        bytes += Number(row['bytes'] ?? 0);
      }
      yield await this.#chunk(facts, condition, last);
    }
  }

  /** These rows, whatever their state. */
  async byIds(ids: readonly RowId[]): Promise<RowCursor> {
    return this.#select.readWhere(this.#session, ids, 'TRUE');
  }

  async #chunk(facts: ReadonlyMap<RowId, RowFacts>, condition: string, last: RowId): Promise<RowChunk> {
    const ids = [...facts.keys()];
    const rows = await this.#select.readWhere(this.#session, ids, condition);
    return { facts: new Map(facts), ids, rows, last };
  }

  async *#walk(range: RowRange, columns: readonly string[]) {
    const none = noIds(this.kind);
    const shown = await this.#literals.shown(this.#session, none);
    const id = quoteIdentifier(this.#outbox.columns.id);
    const literal = (at: RowId) => this.#literals.list(this.#session, rowIds([at]));
    const upTo = range.toId === null ? '' : `AND ${id} <= ${await literal(range.toId)}`;
    const idAt = (row: Readonly<Record<string, unknown>>): RowId => idOf(row['id'], none);
    for (let from = range.fromId, compare = '>='; ; compare = '>') {
      const after = from === null ? 'TRUE' : `${id} ${compare} ${await literal(from)}`;
      const rows = await this.#session.rows(
        `reading rows of ${this.#name}`,
        `SELECT ${[`${shown} AS id`, ...columns].join(', ')} FROM ${this.#name} FORCE INDEX (PRIMARY)
         WHERE ${after} ${upTo} ORDER BY ${id} LIMIT ${CHUNK_ROWS}`,
      );
      if (rows.length > 0) yield { rows, idAt, last: (from = idAt(rows[rows.length - 1])) };
      if (rows.length < CHUNK_ROWS) return;
    }
  }

  #meant({ since, until }: RowRange): string {
    const { columns, retire } = this.#outbox;
    const isMarked = retire === 'mark';
    const time = quoteIdentifier((isMarked ? columns.publishedAt : columns.createdAt)!);
    return [
      ...(isMarked ? [`${quoteIdentifier(columns.status!)} = 'published'`] : []),
      `${time} <= '${until}'`,
      ...(since === null ? [] : [`${time} >= '${since}'`]),
    ].join(' AND ');
  }

  get #name(): string {
    return quoteTable(this.#outbox.schema, this.#outbox.table);
  }
}
