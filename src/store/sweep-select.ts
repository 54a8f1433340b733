import { UUID_TEXT_BYTES, writeUuid } from '../encoding/uuid.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { Candidate, SweepCursor, SweepPage } from '../model/store.ts';
import { IdLiterals } from './id-literals.ts';
import { isUuidColumn } from './outbox-select.ts';
import type { Session } from './session.ts';
import { TopicColumns } from './topic-columns.ts';
import type { WaitingFacts, WaitingTable } from './waiting-table.ts';

/** Where the values of a candidate stand in the list of the SELECT; the topic's columns follow. */
const AT = { id: 0, dueAt: 1, key: 2, idempotencyKey: 3, attempts: 4, bytes: 5, firstOfTopic: 6 } as const;

/** What leads the scope key of a row without an aggregate id; the idempotency key follows. */
const NO_KEY = 0xff;

export interface IdPage {
  readonly ids: readonly RowId[];
  /** Null: there is nothing behind. */
  readonly next: SweepCursor | null;
}

/** A pending row, and for how long it has been due: negative before its time, null where it has none. */
export interface PendingRow extends Candidate {
  readonly dueForMs: number | null;
}

/** What is in a cursor. `dueAt` as the server shows it; null where the table has no such column, or ids are the order. */
interface Place extends SweepCursor {
  readonly dueAt: string | null;
  readonly id: RowId;
}

/**
 * Finds the rows of one outbox that are pending and due, by plain reads. What looks for them goes through the index
 * (status, available_at, id), whose name is found; published rows are never touched.
 */
export class SweepSelect {
  /** The condition of rows that are pending, due or not. */
  readonly pending: string;
  readonly #outbox: number;
  readonly #waiting: WaitingTable;
  readonly #literals: IdLiterals;
  readonly #topic: TopicColumns;
  readonly #table: string;
  readonly #id: string;
  readonly #dueAt: string | null;
  readonly #status: string;
  readonly #due: string;
  readonly #columns: OutboxSettings['columns'];

  /** `status` is the name of the column: only tables that have one are swept. */
  constructor(outbox: number, settings: OutboxSettings, status: string, waiting: WaitingTable) {
    const { schema, table, columns } = settings;
    this.#outbox = outbox;
    this.#waiting = waiting;
    this.#literals = new IdLiterals(settings);
    this.#topic = new TopicColumns(settings.topic);
    this.#table = quoteTable(schema, table);
    this.#id = quoteIdentifier(columns.id);
    this.#dueAt = columns.availableAt === null ? null : quoteIdentifier(columns.availableAt);
    this.#status = quoteIdentifier(status);
    this.pending = `${this.#status} = 'pending'`;
    this.#due = this.#dueAt === null ? '' : ` AND ${this.#dueAt} <= UTC_TIMESTAMP(6)`;
    this.#columns = columns;
  }

  /** Still pending, and due. */
  get pendingAndDue(): string {
    return `${this.pending}${this.#due}`;
  }

  async dueRows(session: Session, after: SweepCursor | null, limit: number): Promise<SweepPage> {
    const { index } = await this.#waiting.facts(session);
    const { rows, last } = await this.#candidates(
      session,
      `FORCE INDEX (${index}) WHERE ${await this.#behind(session, after, this.#due)} ORDER BY ${this.#order()} LIMIT ${limit}`,
    );
    return { rows, next: rows.length < limit ? null : last };
  }

  async dueIds(session: Session, after: SweepCursor | null, limit: number, key: Buffer | null): Promise<IdPage> {
    const facts = await this.#waiting.facts(session);
    const behind = facts.hasIntegerId
      ? await this.#behindId(session, after, this.#due)
      : await this.#behind(session, after, this.#due);
    const ofKey = key === null ? '' : ` AND ${this.#ofKey(key, facts.keyBytes)}`;
    return this.#ids(session, facts, `${behind}${ofKey}`, facts.hasIntegerId ? this.#id : this.#order(), limit);
  }

  /** Due or not, in the order of the index. */
  async pendingIds(session: Session, after: SweepCursor | null, limit: number): Promise<IdPage> {
    const facts = await this.#waiting.facts(session);
    return this.#ids(session, facts, await this.#behind(session, after, ''), this.#order(), limit);
  }

  /** Those of the ids for which the condition holds, in their order. */
  async candidates(
    session: Session,
    ids: readonly RowId[],
    condition: string = this.pendingAndDue,
  ): Promise<readonly Candidate[]> {
    if (ids.length === 0) return [];
    const list = await this.#literals.list(session, rowIds(ids));
    const where = `FORCE INDEX (PRIMARY) WHERE ${this.#id} IN (${list}) AND ${condition}`;
    const { rows } = await this.#candidates(session, where);
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
  }

  async nextDueMs(session: Session): Promise<number | null> {
    if (this.#dueAt === null) return null;
    const { index } = await this.#waiting.facts(session);
    const rows = await session.rows(
      `looking for delayed rows of ${this.#table}`,
      `SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), ${this.#dueAt}) AS us FROM ${this.#table} FORCE INDEX (${index})
       WHERE ${this.pending} AND ${this.#dueAt} > UTC_TIMESTAMP(6) ORDER BY ${this.#dueAt} LIMIT 1`,
    );
    return rows.length === 0 ? null : Math.ceil(Number(rows[0]['us']) / 1000);
  }

  async #ids(
    session: Session,
    { index, hasIntegerId }: WaitingFacts,
    where: string,
    order: string,
    limit: number,
  ): Promise<IdPage> {
    const { rows } = await session.raw(
      `looking for waiting rows of ${this.#table}`,
      `SELECT ${this.#id}, ${this.#dueAt ?? 'NULL'} FROM ${this.#table} FORCE INDEX (${index})
       WHERE ${where} ORDER BY ${order} LIMIT ${limit}`,
    );
    const ids = rows.map(([id]) => idFrom(id!, hasIntegerId));
    return { ids, next: ids.length < limit ? null : placeOf(rows.at(-1)![1], ids.at(-1)!) };
  }

  async isFailed(session: Session, id: RowId): Promise<boolean> {
    const literal = await this.#literals.list(session, rowIds([id]));
    const rows = await session.rows(
      `looking at a row of ${this.#table}`,
      `SELECT 1 FROM ${this.#table} WHERE ${this.#id} = ${literal} AND ${this.#status} = 'failed'`,
    );
    return rows.length > 0;
  }

  /** Pending rows, due or not, and for how long they have been due. Their payloads, which may be large, are not touched. */
  async pendingRows(session: Session, limit: number): Promise<readonly PendingRow[]> {
    const { index, hasIntegerId } = await this.#waiting.facts(session);
    const dueForMs =
      this.#dueAt === null ? 'NULL' : `TIMESTAMPDIFF(MICROSECOND, ${this.#dueAt}, UTC_TIMESTAMP(6)) DIV 1000`;
    const where = `FORCE INDEX (${index}) WHERE ${this.pending} LIMIT ${limit}`;
    const { rows, isUuid } = await this.#values(session, { dueAt: dueForMs, bytes: '0' }, where);
    return rows.map((values) => ({
      ...this.#candidateOf(values, isUuid, hasIntegerId),
      dueForMs: values[AT.dueAt] === null ? null : Number(values[AT.dueAt]),
    }));
  }

  /** From the index on; `last` is behind the last row. */
  async #candidates(session: Session, rest: string): Promise<{ rows: Candidate[]; last: SweepCursor | null }> {
    const { hasIntegerId, documentBytes } = await this.#waiting.facts(session);
    const { rows, isUuid } = await this.#values(session, { dueAt: this.#dueAt ?? 'NULL', bytes: documentBytes }, rest);
    const found = rows.map((values) => this.#candidateOf(values, isUuid, hasIntegerId));
    return { rows: found, last: rows.length === 0 ? null : placeOf(rows.at(-1)![AT.dueAt], found.at(-1)!.id) };
  }

  async #values(
    session: Session,
    { dueAt, bytes }: { readonly dueAt: string; readonly bytes: string },
    rest: string,
  ): Promise<{ rows: (Buffer | null)[][]; isUuid: boolean }> {
    const { aggregateId, idempotencyKey, attempts } = this.#columns;
    const listed: string[] = [];
    listed[AT.id] = this.#id;
    listed[AT.dueAt] = dueAt;
    listed[AT.key] = quoteIdentifier(aggregateId);
    listed[AT.idempotencyKey] = quoteIdentifier(idempotencyKey);
    listed[AT.attempts] = attempts === null ? '0' : quoteIdentifier(attempts);
    listed[AT.bytes] = bytes;
    const { rows, fields } = await session.raw(
      `looking for waiting rows of ${this.#table}`,
      `SELECT ${[...listed, ...this.#topic.names.map(quoteIdentifier)].join(', ')} FROM ${this.#table} ${rest}`,
    );
    return { rows, isUuid: isUuidColumn(fields[AT.idempotencyKey]) };
  }

  #candidateOf(values: readonly (Buffer | null)[], isUuid: boolean, hasIntegerId: boolean): Candidate {
    return {
      outbox: this.#outbox,
      id: idFrom(values[AT.id]!, hasIntegerId),
      topic: this.#topic.of(values, AT.firstOfTopic)?.toString() ?? null,
      key: values[AT.key] ?? keyWithout(values[AT.idempotencyKey], isUuid),
      attempts: Number(values[AT.attempts]),
      bytes: Number(values[AT.bytes]),
    };
  }

  #order(): string {
    return this.#dueAt === null ? this.#id : `${this.#dueAt}, ${this.#id}`;
  }

  /** As two ranges of the index: many rows may have one time. */
  async #behind(session: Session, after: SweepCursor | null, due: string): Promise<string> {
    const place = after as Place | null;
    if (this.#dueAt === null || place?.dueAt == null) return this.#behindId(session, after, due);
    const at = `'${place.dueAt}'`;
    const id = await this.#literals.list(session, rowIds([place.id]));
    return `${this.pending} AND ((${this.#dueAt} = ${at} AND ${this.#id} > ${id}) OR (${this.#dueAt} > ${at}${due}))`;
  }

  async #behindId(session: Session, after: SweepCursor | null, due: string): Promise<string> {
    if (after === null) return `${this.pending}${due}`;
    const id = await this.#literals.list(session, rowIds([(after as Place).id]));
    return `${this.pending}${due} AND ${this.#id} > ${id}`;
  }

  #ofKey(key: Buffer, keyBytes: string): string {
    const same = `${keyBytes} = X'${key.toString('hex')}'`;
    // A binary column may have keys that begin like those of rows without any.
    return key[0] === NO_KEY ? `(${quoteIdentifier(this.#columns.aggregateId)} IS NULL OR ${same})` : same;
  }
}

function placeOf(dueAt: Buffer | null, id: RowId): Place {
  return { __brand: 'SweepCursor', dueAt: dueAt === null ? null : String(dueAt), id };
}

/** As the rest of the store names rows: bytes in hexadecimal digits. */
function idFrom(bytes: Buffer, hasIntegerId: boolean): RowId {
  return hasIntegerId ? BigInt(String(bytes)) : bytes.toString('hex');
}

/** A row without aggregate is a pair of its own: its idempotency key, as header `id` has it. */
function keyWithout(idempotencyKey: Buffer | null, isUuid: boolean): Buffer {
  if (idempotencyKey === null || !isUuid) return Buffer.concat([Buffer.of(NO_KEY), idempotencyKey ?? Buffer.alloc(0)]);
  const key = Buffer.alloc(1 + UUID_TEXT_BYTES, NO_KEY);
  writeUuid(key, 1, idempotencyKey, 0, idempotencyKey.length);
  return key;
}
