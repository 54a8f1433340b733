import type { FieldPacket } from 'mysql2';
import { TopicTemplate } from '../encoding/topic-template.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { emptyField, emptyRow, type Field, Form, type OutboxRow, type RowCursor } from '../model/row.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { FoundRows } from '../model/store.ts';
import { idOf, IdLiterals } from './id-literals.ts';
import type { Session } from './session.ts';
import { selectedTimeMs } from './selected-time.ts';

/** Of the protocol's field description. */
const BINARY_COLLATION = 63;
const TYPE_STRING = 254;
const INTEGER_TYPES: readonly unknown[] = [1, 2, 3, 8, 9];
const UUID_BYTES = 16;

/** Where the values of a row stand in the list of the SELECT; a template's columns follow. */
const AT = {
  shownId: 0,
  pending: 1,
  delayed: 2,
  id: 3,
  topic: 4,
  key: 5,
  eventType: 6,
  value: 7,
  headers: 8,
  idempotencyKey: 9,
  createdAt: 10,
  firstPart: 11,
} as const;

/**
 * Rows of one outbox table by SELECT, as the tail gives them: the columns come as the server sends them over a utf8mb4
 * connection, which is what `CAST(… AS CHAR)` shows, and the bytes of binary columns.
 */
export class OutboxSelect {
  readonly #outbox: number;
  readonly #settings: OutboxSettings;
  readonly #literals: IdLiterals;
  readonly #template: TopicTemplate | null;

  constructor(outbox: number, settings: OutboxSettings) {
    this.#outbox = outbox;
    this.#settings = settings;
    this.#literals = new IdLiterals(settings);
    this.#template = settings.topic.kind === 'template' ? new TopicTemplate(settings.topic.template) : null;
  }

  /** See `Store.readRows`. Waits for locks as the session does; throws a `RelayError`. */
  async read(session: Session, ids: readonly RowId[], dueBeforeMs: number): Promise<FoundRows> {
    const { schema, table, columns } = this.#settings;
    const named = rowIds(ids);
    const list = await this.#literals.list(session, named);
    const shown = await this.#literals.shown(session, named);
    const name = quoteTable(schema, table);
    const { rows, fields } = await session.raw(
      `reading rows of ${name}`,
      `SELECT ${this.#columns(shown, dueBeforeMs)} FROM ${name} FORCE INDEX (PRIMARY)
       WHERE ${quoteIdentifier(columns.id)} IN (${list}) LOCK IN SHARE MODE`,
    );
    const byId = new Map(rows.map((row) => [idOf(row[AT.shownId], named), row]));
    const found = ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
    const ours = found.filter((row) => isOne(row[AT.pending]) && !isOne(row[AT.delayed]));
    return { rows: new SelectedRows(ours, this.#reader(fields)), gone: ids.filter((id) => !byId.has(id)) };
  }

  #columns(shownId: string, dueBeforeMs: number): string {
    const { columns, topic } = this.#settings;
    const column = (name: string | null) => (name === null ? 'NULL' : quoteIdentifier(name));
    const due = new Date(dueBeforeMs).toISOString().replace('T', ' ').replace('Z', '');
    const listed: string[] = [];
    listed[AT.shownId] = shownId;
    listed[AT.pending] = columns.status === null ? '1' : `${column(columns.status)} = 'pending'`;
    listed[AT.delayed] = columns.availableAt === null ? '0' : `${column(columns.availableAt)} >= '${due}'`;
    listed[AT.id] = column(columns.id);
    listed[AT.topic] = column(topic.kind === 'column' ? topic.column : null);
    listed[AT.key] = column(columns.aggregateId);
    listed[AT.eventType] = column(columns.eventType);
    listed[AT.value] = column(columns.payload);
    listed[AT.headers] = column(columns.headers);
    listed[AT.idempotencyKey] = column(columns.idempotencyKey);
    listed[AT.createdAt] = column(columns.createdAt);
    return [...listed, ...(this.#template?.columns ?? []).map(column)].join(', ');
  }

  /** What fills the flyweight from a row of the result. */
  #reader(fields: readonly FieldPacket[]): (values: readonly (Buffer | null)[], row: OutboxRow) => void {
    const { topic } = this.#settings;
    const fixedTopic = topic.kind === 'fixed' ? Buffer.from(topic.topic) : null;
    const parts = (this.#template?.columns ?? []).map(() => emptyField());
    const { columnType, characterSet, columnLength } = fields[AT.idempotencyKey];
    const isUuid = columnType === TYPE_STRING && characterSet === BINARY_COLLATION && columnLength === UUID_BYTES;
    const hasIntegerId = INTEGER_TYPES.includes(fields[AT.id].columnType);
    return (values, row) => {
      row.outbox = this.#outbox;
      const id = hasIntegerId ? BigInt(String(values[AT.id])) : 0n;
      row.idLow = Number(id & 0xffff_ffffn);
      row.idHigh = Number(id >> 32n);
      put(row.idBytes, hasIntegerId ? null : values[AT.id]);
      put(row.topic, fixedTopic ?? values[AT.topic]);
      put(row.key, values[AT.key]);
      put(row.eventType, values[AT.eventType]);
      put(row.value, values[AT.value]);
      put(row.headers, values[AT.headers]);
      put(row.idempotencyKey, values[AT.idempotencyKey], isUuid ? Form.Uuid : Form.Text);
      row.createdAtMs = selectedTimeMs(values[AT.createdAt]);
      if (this.#template === null) return;
      parts.forEach((part, n) => put(part, values[AT.firstPart + n]));
      put(row.topic, compose(this.#template, parts));
    };
  }
}

class SelectedRows implements RowCursor {
  readonly row = emptyRow();
  readonly #rows: readonly (readonly (Buffer | null)[])[];
  readonly #fill: (values: readonly (Buffer | null)[], row: OutboxRow) => void;
  #next = 0;

  constructor(
    rows: readonly (readonly (Buffer | null)[])[],
    fill: (values: readonly (Buffer | null)[], row: OutboxRow) => void,
  ) {
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

function put(field: Field, bytes: Buffer | null, form: Form = Form.Text): void {
  field.form = bytes === null ? Form.Null : form;
  if (bytes === null) return;
  field.buffer = bytes;
  field.start = 0;
  field.end = bytes.length;
}

function compose(template: TopicTemplate, parts: readonly Field[]): Buffer | null {
  const bytes = template.measure(parts, 0);
  if (bytes < 0) return null;
  const out = Buffer.alloc(bytes);
  template.write(parts, 0, out);
  return out;
}
