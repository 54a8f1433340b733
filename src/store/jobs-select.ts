import { UUID_TEXT_BYTES, writeUuid } from '../encoding/uuid.ts';
import { fault } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { ReplayFilter, ReplayKey, ReplayPage } from '../model/job.ts';
import type { RowCursor } from '../model/row.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import { idOf, IdLiterals, statements } from './id-literals.ts';
import { isUuidColumn, OutboxSelect } from './outbox-select.ts';
import { nameOf } from './parked-table.ts';
import { type IdKind, idKind, noIds, parseId } from './people-ids.ts';
import type { Row, Session } from './session.ts';
import { TopicColumns } from './topic-columns.ts';

/** Where the values of a row stand in the list of the SELECT; the topic's columns follow. */
const AT = { id: 0, isWanted: 1, key: 2, idempotencyKey: 3, bytes: 4, firstOfTopic: 5 } as const;
/** Rows looked at in one statement. */
const PAGE_ROWS = 5_000;
/** What leads the key of a row without an aggregate id. */
const NO_KEY = 0xff;

/** Rows of one outbox that have been published, by primary key and plain reads: no index leads to them. */
export class JobsSelect {
  readonly #outbox: OutboxSettings;
  readonly #table: string;
  readonly #id: string;
  readonly #literals: IdLiterals;
  readonly #topic: TopicColumns;
  readonly #whole: OutboxSelect;
  /** Of rows that have been sent: of what is only kept, all may have been. */
  readonly #published: string;
  #kind: IdKind | null = null;

  constructor(index: number, outbox: OutboxSettings) {
    const { schema, table, columns, retire } = outbox;
    this.#outbox = outbox;
    this.#table = quoteTable(schema, table);
    this.#id = quoteIdentifier(columns.id);
    this.#literals = new IdLiterals(outbox);
    this.#topic = new TopicColumns(outbox.topic);
    this.#whole = new OutboxSelect(index, outbox);
    const hasStatus = retire !== 'keep' && columns.status !== null;
    this.#published = hasStatus ? `${quoteIdentifier(columns.status)} = 'published'` : 'TRUE';
  }

  async lastId(session: Session): Promise<bigint | null> {
    if ((await this.#idKind(session)) !== 'integer') return null;
    const sql = `SELECT MAX(${this.#id}) AS last FROM ${this.#table}`;
    const [row] = await session.rows(`looking for the end of ${this.#table}`, sql);
    return row['last'] === null ? null : BigInt(row['last'] as string | number);
  }

  /** Throws a `RelayError` (MYSQL_SCHEMA) where the filter names what the table does not have. */
  async page(session: Session, filter: ReplayFilter, after: RowId | null, last: bigint | null): Promise<ReplayPage> {
    const { outbox, topic } = filter;
    if (outbox !== null && outbox !== nameOf(this.#outbox)) return { rows: [], looked: 0, next: null };
    const range: string[] = [];
    if (after !== null) range.push(`${this.#id} > ${await this.#literals.list(session, rowIds([after]))}`);
    if (last !== null) range.push(`${this.#id} <= ${last}`);
    if (filter.ids !== null) {
      if (after === null) range.push(`${this.#id} >= ${await this.#literal(session, filter.ids.from)}`);
      range.push(`${this.#id} <= ${await this.#literal(session, filter.ids.to)}`);
    }
    const where = range.length === 0 ? '' : `WHERE ${range.join(' AND ')}`;
    const rows = await this.#keys(
      session,
      this.#wanted(filter),
      '0',
      `${where} ORDER BY ${this.#id} LIMIT ${PAGE_ROWS}`,
    );
    const wantedTopic = topic === null ? null : Buffer.from(topic);
    return {
      rows: rows.filter((row) => row.isWanted && (wantedTopic === null || row.topic?.equals(wantedTopic) === true)),
      looked: rows.length,
      next: rows.length < PAGE_ROWS ? null : rows[rows.length - 1].id,
    };
  }

  /** When the row was made: UTC, as the server writes it; null where that cannot be said. */
  async createdAt(session: Session, id: RowId): Promise<string | null> {
    const { createdAt } = this.#outbox.columns;
    if (createdAt === null) return null;
    const sql = `SELECT CAST(${quoteIdentifier(createdAt)} AS CHAR) AS created FROM ${this.#table}
      WHERE ${this.#id} = ${await this.#literals.list(session, rowIds([id]))}`;
    const [row] = (await session.rows(`looking at a row of ${this.#table}`, sql)) as (Row | undefined)[];
    return typeof row?.['created'] === 'string' ? row['created'] : null;
  }

  async keys(session: Session, ids: readonly RowId[]): Promise<readonly ReplayKey[]> {
    const { payload, headers } = this.#outbox.columns;
    const bytes = [payload, headers]
      .filter((name) => name !== null)
      .map((name) => `COALESCE(LENGTH(${quoteIdentifier(name)}), 0)`);
    const byId = new Map<RowId, ReplayKey>();
    for (const some of statements(rowIds(ids))) {
      const list = await this.#literals.list(session, some);
      const rows = await this.#keys(session, this.#published, bytes.join(' + '), `WHERE ${this.#id} IN (${list})`);
      for (const row of rows) if (row.isWanted) byId.set(row.id, row);
    }
    return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
  }

  rows(session: Session, ids: readonly RowId[]): Promise<RowCursor> {
    return this.#whole.readWhere(session, ids, this.#published);
  }

  async #keys(
    session: Session,
    isWanted: string,
    bytes: string,
    rest: string,
  ): Promise<(ReplayKey & { readonly isWanted: boolean })[]> {
    const { columns } = this.#outbox;
    const none = noIds(await this.#idKind(session));
    const listed: string[] = [];
    listed[AT.id] = await this.#literals.shown(session, none);
    listed[AT.isWanted] = `COALESCE(${isWanted}, 0)`;
    listed[AT.key] = quoteIdentifier(columns.aggregateId);
    listed[AT.idempotencyKey] = quoteIdentifier(columns.idempotencyKey);
    listed[AT.bytes] = bytes;
    const { rows, fields } = await session.raw(
      `looking for rows of ${this.#table} to send again`,
      `SELECT ${[...listed, ...this.#topic.names.map(quoteIdentifier)].join(', ')}
       FROM ${this.#table} FORCE INDEX (PRIMARY) ${rest}`,
    );
    const isUuid = isUuidColumn(fields[AT.idempotencyKey]);
    return rows.map((values) => ({
      id: idOf(values[AT.id], none),
      isWanted: String(values[AT.isWanted]) === '1',
      topic: this.#topic.of(values, AT.firstOfTopic),
      key: values[AT.key] ?? keyWithout(values[AT.idempotencyKey], isUuid),
      bytes: Number(values[AT.bytes]),
    }));
  }

  /** One expression: what is not wanted is looked at all the same, so that no statement reads on and on. */
  #wanted({ aggregate, sinceMs, untilMs }: ReplayFilter): string {
    const { aggregateId, createdAt } = this.#outbox.columns;
    const conditions = [this.#published];
    if (aggregate !== null) {
      const column = quoteIdentifier(aggregateId);
      const bytes = `CAST(CAST(${column} AS CHAR CHARACTER SET utf8mb4) AS BINARY)`;
      conditions.push(`(${bytes} = X'${Buffer.from(aggregate).toString('hex')}')`);
    }
    if (sinceMs !== null) conditions.push(`${this.#column(createdAt, '--since')} >= '${timeOf(sinceMs)}'`);
    if (untilMs !== null) conditions.push(`${this.#column(createdAt, '--until')} < '${timeOf(untilMs)}'`);
    return conditions.join(' AND ');
  }

  #column(name: string | null, flag: string): string {
    if (name !== null) return quoteIdentifier(name);
    throw fault('MYSQL_SCHEMA', 'halt', `${nameOf(this.#outbox)} has no column that says when a row was made: ${flag}`);
  }

  async #literal(session: Session, text: string): Promise<string> {
    const id = parseId(await this.#idKind(session), text);
    if (id === null) throw fault('MYSQL_SCHEMA', 'halt', `${nameOf(this.#outbox)} has other ids than the job names`);
    return this.#literals.list(session, rowIds([id]));
  }

  async #idKind(session: Session): Promise<IdKind> {
    return (this.#kind ??= await idKind(session, this.#outbox));
  }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
}

/** A row without aggregate is a pair of its own: its idempotency key, as header `id` has it. */
function keyWithout(idempotencyKey: Buffer | null, isUuid: boolean): Buffer {
  if (idempotencyKey === null || !isUuid) return Buffer.concat([Buffer.of(NO_KEY), idempotencyKey ?? Buffer.alloc(0)]);
  const key = Buffer.alloc(1 + UUID_TEXT_BYTES, NO_KEY);
  writeUuid(key, 1, idempotencyKey, 0, idempotencyKey.length);
  return key;
}
