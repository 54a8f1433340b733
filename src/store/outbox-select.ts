import type { FieldPacket } from 'mysql2';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { emptyRow, Form, type OutboxRow, type RowCursor } from '../model/row.ts';
import { type RowId, type RowIds, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { FoundRows } from '../model/store.ts';
import { idOf, IdLiterals } from './id-literals.ts';
import type { Session } from './session.ts';
import { selectedTimeMs } from './selected-time.ts';
import { put, TopicColumns } from './topic-columns.ts';

/** Of the protocol's field description. */
const BINARY_COLLATION = 63;
const TYPE_STRING = 254;
const INTEGER_TYPES: readonly unknown[] = [1, 2, 3, 8, 9];
const UUID_BYTES = 16;

type Values = readonly (Buffer | null)[];

/** What is asked of a row beside its columns: expressions. */
interface Asked {
  readonly pending: string;
  readonly delayed: string;
}

const NOTHING_ASKED: Asked = { pending: '1', delayed: '0' };

/** Where the values of a row stand in the list of the SELECT; the topic's columns follow. */
const AT = {
  shownId: 0,
  pending: 1,
  delayed: 2,
  id: 3,
  key: 4,
  eventType: 5,
  value: 6,
  headers: 7,
  idempotencyKey: 8,
  createdAt: 9,
  firstOfTopic: 10,
} as const;

/**
 * Rows of one outbox table by SELECT, as the tail gives them: the columns come as the server sends them over a utf8mb4
 * connection, which is what `CAST(… AS CHAR)` shows, and the bytes of binary columns.
 */
export class OutboxSelect {
  readonly #outbox: number;
  readonly #settings: OutboxSettings;
  readonly #literals: IdLiterals;
  readonly #topic: TopicColumns;

  constructor(outbox: number, settings: OutboxSettings) {
    this.#outbox = outbox;
    this.#settings = settings;
    this.#literals = new IdLiterals(settings);
    this.#topic = new TopicColumns(settings.topic);
  }

  /** See `Store.readRows`. Waits for locks as the session does; throws a `RelayError`. */
  async read(session: Session, ids: readonly RowId[], dueBeforeMs: number): Promise<FoundRows> {
    const { columns } = this.#settings;
    const due = new Date(dueBeforeMs).toISOString().replace('T', ' ').replace('Z', '');
    const pending = columns.status === null ? '1' : `${quoteIdentifier(columns.status)} = 'pending'`;
    const delayed = columns.availableAt === null ? '0' : `${quoteIdentifier(columns.availableAt)} >= '${due}'`;
    const { byId, reader } = await this.#select(session, rowIds(ids), { pending, delayed }, '', 'LOCK IN SHARE MODE');
    const found = ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
    const ours = found.filter((row) => isOne(row[AT.pending]) && !isOne(row[AT.delayed]));
    return { rows: new SelectedRows(ours, reader), gone: ids.filter((id) => !byId.has(id)) };
  }

  /** A plain read of those for which `condition` holds, in the order of `ids`. Throws a `RelayError`. */
  async readWhere(session: Session, ids: readonly RowId[], condition: string): Promise<RowCursor> {
    if (ids.length === 0) return new SelectedRows([], () => undefined);
    const { byId, reader } = await this.#select(session, rowIds(ids), NOTHING_ASKED, `AND ${condition}`, '');
    return new SelectedRows(
      ids.map((id) => byId.get(id)).filter((row) => row !== undefined),
      reader,
    );
  }

  async #select(
    session: Session,
    ids: RowIds,
    asked: Asked,
    condition: string,
    lock: string,
  ): Promise<{ byId: ReadonlyMap<RowId, Values>; reader: (values: Values, row: OutboxRow) => void }> {
    const { schema, table, columns } = this.#settings;
    const list = await this.#literals.list(session, ids);
    const shown = await this.#literals.shown(session, ids);
    const name = quoteTable(schema, table);
    const { rows, fields } = await session.raw(
      `reading rows of ${name}`,
      `SELECT ${this.#columns(shown, asked)} FROM ${name} FORCE INDEX (PRIMARY)
       WHERE ${quoteIdentifier(columns.id)} IN (${list}) ${condition} ${lock}`,
    );
    return { byId: new Map(rows.map((row) => [idOf(row[AT.shownId], ids), row])), reader: this.#reader(fields) };
  }

  #columns(shownId: string, { pending, delayed }: Asked): string {
    const { columns } = this.#settings;
    const column = (name: string | null) => (name === null ? 'NULL' : quoteIdentifier(name));
    const listed: string[] = [];
    listed[AT.shownId] = shownId;
    listed[AT.pending] = pending;
    listed[AT.delayed] = delayed;
    listed[AT.id] = column(columns.id);
    listed[AT.key] = column(columns.aggregateId);
    listed[AT.eventType] = column(columns.eventType);
    listed[AT.value] = column(columns.payload);
    listed[AT.headers] = column(columns.headers);
    listed[AT.idempotencyKey] = column(columns.idempotencyKey);
    listed[AT.createdAt] = column(columns.createdAt);
    return [...listed, ...this.#topic.names.map(column)].join(', ');
  }

  /** What fills the flyweight from a row of the result. */
  #reader(fields: readonly FieldPacket[]): (values: Values, row: OutboxRow) => void {
    const isUuid = isUuidColumn(fields[AT.idempotencyKey]);
    const hasIntegerId = INTEGER_TYPES.includes(fields[AT.id].columnType);
    return (values, row) => {
      row.outbox = this.#outbox;
      const id = hasIntegerId ? BigInt(String(values[AT.id])) : 0n;
      row.idLow = Number(id & 0xffff_ffffn);
      row.idHigh = Number(id >> 32n);
      put(row.idBytes, hasIntegerId ? null : values[AT.id]);
      put(row.topic, this.#topic.of(values, AT.firstOfTopic));
      put(row.key, values[AT.key]);
      put(row.eventType, values[AT.eventType]);
      put(row.value, values[AT.value]);
      put(row.headers, values[AT.headers]);
      put(row.idempotencyKey, values[AT.idempotencyKey], isUuid ? Form.Uuid : Form.Text);
      row.createdAtMs = selectedTimeMs(values[AT.createdAt]);
    };
  }
}

class SelectedRows implements RowCursor {
  readonly row = emptyRow();
  readonly #rows: readonly Values[];
  readonly #fill: (values: Values, row: OutboxRow) => void;
  #next = 0;

  constructor(rows: readonly Values[], fill: (values: Values, row: OutboxRow) => void) {
    this.#rows = rows;
    this.#fill = fill;
  }

  next(): boolean {
    if (this.#next >= this.#rows.length) return false;
    this.#fill(this.#rows[this.#next++], this.row);
    return true;
  }
}

function isOne(value: Buffer | null): boolean {
  return value !== null && String(value) === '1';
}

/** A BINARY(16), which stands for a UUID. */
export function isUuidColumn({ columnType, characterSet, columnLength }: FieldPacket): boolean {
  return columnType === TYPE_STRING && characterSet === BINARY_COLLATION && columnLength === UUID_BYTES;
}
