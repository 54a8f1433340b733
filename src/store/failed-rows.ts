import { createHash } from 'node:crypto';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings, TopicRule } from '../model/settings.ts';
import { idOf, IdLiterals } from './id-literals.ts';
import { type IdKind, idKind, noIds } from './people-ids.ts';
import type { Session } from './session.ts';

/** Rows behind a row that are looked at for later events of its aggregate: no index leads to them. */
export const LATER_ROWS = 10_000;

/** A row as its failure is told: all but payload and headers. */
export interface FailedRow {
  readonly id: RowId;
  readonly status: string;
  readonly topic: string | null;
  /** The aggregate id: bytes of the record's key. */
  readonly key: Buffer | null;
  readonly eventType: string | null;
  readonly attempts: number;
  readonly error: string | null;
  /** UTC, as the server writes it. */
  readonly createdAt: string | null;
  readonly availableAt: string | null;
  /** Since `createdAt` by the server's clock. */
  readonly ageMs: number | null;
}

/** What cannot be shown of a row, by its size and SHA-256. */
export interface HiddenValue {
  readonly bytes: number;
  readonly sha256: string;
}

export interface FailedFilter {
  readonly topic: string | null;
  /** Beginning of `last_error`: a code, or more. */
  readonly reason: string | null;
  /** Rows created from there on. */
  readonly since: { readonly agoMs: number } | { readonly atMs: number } | null;
}

/** Behind the last row of a page. */
export interface Place {
  readonly availableAt: string;
  readonly id: RowId;
}

/** Failed rows of one outbox that has the status columns. Plain reads by the index (status, available_at, id). */
export class FailedRows {
  readonly #session: Session;
  readonly #outbox: OutboxSettings;
  readonly #literals: IdLiterals;
  readonly #table: string;
  readonly kind: IdKind;

  private constructor(session: Session, outbox: OutboxSettings, kind: IdKind) {
    this.#session = session;
    this.#outbox = outbox;
    this.#literals = new IdLiterals(outbox);
    this.#table = quoteTable(outbox.schema, outbox.table);
    this.kind = kind;
  }

  static async open(session: Session, outbox: OutboxSettings): Promise<FailedRows> {
    return new FailedRows(session, outbox, await idKind(session, outbox));
  }

  /** Those due last first. `next` is null when there is nothing behind. */
  async page(
    filter: FailedFilter,
    after: Place | null,
    limit: number,
  ): Promise<{ readonly rows: FailedRow[]; readonly next: Place | null }> {
    const { columns } = this.#outbox;
    const due = quoteIdentifier(columns.availableAt!);
    const id = quoteIdentifier(columns.id);
    const conditions = [`${quoteIdentifier(columns.status!)} = 'failed'`, ...this.#conditions(filter)];
    if (after !== null) {
      const last = await this.#literals.list(this.#session, rowIds([after.id]));
      conditions.push(`(${due} < '${after.availableAt}' OR (${due} = '${after.availableAt}' AND ${id} < ${last}))`);
    }
    const rows = await this.#select(
      `WHERE ${conditions.join(' AND ')} ORDER BY ${due} DESC, ${id} DESC LIMIT ${limit + 1}`,
    );
    if (rows.length <= limit) return { rows, next: null };
    const page = rows.slice(0, limit);
    const { availableAt, id: lastId } = page[limit - 1];
    return { rows: page, next: { availableAt: availableAt!, id: lastId } };
  }

  /** The rows with these ids, whatever their status; `locking` ends the statement: `FOR UPDATE SKIP LOCKED`. */
  async byIds(ids: readonly RowId[], onlyFailed: boolean, locking = ''): Promise<FailedRow[]> {
    if (ids.length === 0) return [];
    return this.#select(`${await this.where(ids, onlyFailed)} ${locking}`, 'FORCE INDEX (PRIMARY)');
  }

  /** `WHERE id IN (…)`. */
  async where(ids: readonly RowId[], onlyFailed: boolean): Promise<string> {
    const { id, status } = this.#outbox.columns;
    const list = await this.#literals.list(this.#session, rowIds(ids));
    const failed = onlyFailed ? ` AND ${quoteIdentifier(status!)} = 'failed'` : '';
    return `WHERE ${quoteIdentifier(id)} IN (${list})${failed}`;
  }

  /** Payload, headers and idempotency key as the record would have them; null is NULL, or no column. */
  async hidden(id: RowId): Promise<{ payload: HiddenValue | null; headers: HiddenValue | null }> {
    const { payload, headers } = this.#outbox.columns;
    const { rows } = await this.#session.raw(
      `reading a row of ${this.#table}`,
      `SELECT ${quoteIdentifier(payload)}, ${column(headers)} FROM ${this.#table} FORCE INDEX (PRIMARY)
       ${await this.where([id], false)}`,
    );
    const [values = [null, null]] = rows;
    return { payload: digest(values[0]), headers: digest(values[1]) };
  }

  /**
   * Published rows of the same topic and aggregate among the `LATER_ROWS` rows behind this one; null where that cannot
   * be told: published rows are deleted, or the ids have no order.
   */
  async laterPublished(id: RowId): Promise<number | null> {
    const { columns, retire, topic } = this.#outbox;
    if (retire !== 'mark' || typeof id !== 'bigint') return null;
    const key = quoteIdentifier(columns.aggregateId);
    const idColumn = quoteIdentifier(columns.id);
    const status = quoteIdentifier(columns.status!);
    const select = `SELECT ${topicExpression(topic)} AS topic, ${key} AS aggregate`;
    const [row] = await this.#session.rows(
      `looking for later events in ${this.#table}`,
      `SELECT COUNT(*) AS later FROM (${select} FROM ${this.#table} WHERE ${idColumn} = ${id}) AS failed
       JOIN (${select}, ${status} AS status FROM ${this.#table} FORCE INDEX (PRIMARY)
             WHERE ${idColumn} > ${id} ORDER BY ${idColumn} LIMIT ${LATER_ROWS}) AS behind
         ON behind.topic = failed.topic AND CAST(behind.aggregate AS BINARY) = CAST(failed.aggregate AS BINARY)
       WHERE behind.status = 'published'`,
    );
    return Number(row['later']);
  }

  #conditions({ topic, reason, since }: FailedFilter): string[] {
    const { columns } = this.#outbox;
    const conditions: string[] = [];
    if (topic !== null) conditions.push(`${topicExpression(this.#outbox.topic)} = ${textLiteral(topic)}`);
    if (reason !== null) {
      const wanted = textLiteral(reason);
      conditions.push(`LEFT(${column(columns.lastError)}, CHAR_LENGTH(${wanted})) = ${wanted}`);
    }
    if (since !== null) {
      const from =
        'agoMs' in since
          ? `UTC_TIMESTAMP(6) - INTERVAL ${Math.round(since.agoMs * 1000)} MICROSECOND`
          : `'${new Date(since.atMs).toISOString().replace('T', ' ').replace('Z', '')}'`;
      conditions.push(`${column(columns.createdAt ?? columns.availableAt)} >= ${from}`);
    }
    return conditions;
  }

  async #select(rest: string, index = ''): Promise<FailedRow[]> {
    const { columns, topic } = this.#outbox;
    const none = noIds(this.kind);
    const created = column(columns.createdAt);
    const listed = [
      await this.#literals.shown(this.#session, none),
      column(columns.status),
      topicExpression(topic),
      column(columns.aggregateId),
      column(columns.eventType),
      column(columns.attempts),
      column(columns.lastError),
      created,
      column(columns.availableAt),
      `TIMESTAMPDIFF(MICROSECOND, ${created}, UTC_TIMESTAMP(6)) DIV 1000`,
    ];
    const { rows } = await this.#session.raw(
      `reading failed rows of ${this.#table}`,
      `SELECT ${listed.join(', ')} FROM ${this.#table} ${index} ${rest}`,
    );
    return rows.map(([id, status, topicName, key, eventType, attempts, error, createdAt, availableAt, age]) => ({
      id: idOf(text(id), none),
      status: text(status) ?? '',
      topic: text(topicName),
      key,
      eventType: text(eventType),
      attempts: Number(text(attempts) ?? 0),
      error: text(error),
      createdAt: text(createdAt),
      availableAt: text(availableAt),
      ageMs: age === null ? null : Number(text(age)),
    }));
  }
}

const column = (name: string | null): string => (name === null ? 'NULL' : quoteIdentifier(name));

const text = (value: Buffer | null): string | null => value?.toString() ?? null;

/** Whatever is in it, it cannot end the literal. */
function textLiteral(value: string): string {
  return `_utf8mb4 X'${Buffer.from(value).toString('hex')}'`;
}

/** The topic of a row, in SQL; NULL when it names none. */
function topicExpression(topic: TopicRule): string {
  switch (topic.kind) {
    case 'column':
      return quoteIdentifier(topic.column);
    case 'fixed':
      return textLiteral(topic.topic);
    case 'template': {
      const pieces = topic.template.split(/\{([^{}]+)\}/);
      return `CONCAT(${pieces.map((piece, n) => (n % 2 === 0 ? textLiteral(piece) : quoteIdentifier(piece))).join(', ')})`;
    }
  }
}

function digest(value: Buffer | null): HiddenValue | null {
  if (value === null) return null;
  return { bytes: value.length, sha256: createHash('sha256').update(value).digest('hex') };
}
