import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { type Field, Form } from '../model/row.ts';
import type { RowId, RowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import { idOf, IdLiterals } from './id-literals.ts';
import { isUuidColumn } from './outbox-select.ts';
import type { Session } from './session.ts';

/** Idempotency keys of one outbox table by primary key. */
export class KeySelect {
  readonly #literals: IdLiterals;
  readonly #table: string;
  readonly #id: string;
  readonly #key: string;

  constructor(settings: OutboxSettings) {
    const { schema, table, columns } = settings;
    this.#literals = new IdLiterals(settings);
    this.#table = quoteTable(schema, table);
    this.#id = quoteIdentifier(columns.id);
    this.#key = quoteIdentifier(columns.idempotencyKey);
  }

  /** See `Store.idempotencyKeys`. */
  async read(session: Session, ids: RowIds): Promise<Map<RowId, Field>> {
    const shown = await this.#literals.shown(session, ids);
    const list = await this.#literals.list(session, ids);
    const { rows, fields } = await session.raw(
      `looking for rows of ${this.#table}`,
      `SELECT ${shown}, ${this.#key} FROM ${this.#table} FORCE INDEX (PRIMARY) WHERE ${this.#id} IN (${list})`,
    );
    const form = isUuidColumn(fields[1]) ? Form.Uuid : Form.Text;
    return new Map(rows.map(([id, key]) => [idOf(id, ids), fieldOf(key, form)]));
  }
}

function fieldOf(bytes: Buffer | null, form: Form): Field {
  return bytes === null
    ? { form: Form.Null, buffer: Buffer.alloc(0), start: 0, end: 0 }
    : { form, buffer: bytes, start: 0, end: bytes.length };
}
