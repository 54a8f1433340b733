import { fault } from '../model/fault.ts';
import { quoteIdentifier } from '../model/identifier.ts';
import type { RowId, RowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { Session } from './session.ts';

const COLUMN = `SELECT CHARACTER_SET_NAME AS characterSet FROM information_schema.COLUMNS
  WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND COLUMN_NAME = ?`;

/**
 * Ids of one statement. The optimizer's memory for ranges (8 MiB by default) takes some 36,000 integers; beyond, it scans
 * and locks the whole table, index forced or not. Of other keys each takes there what its column could hold: with the
 * longest that there are (3,072 bytes) it ends at 2,500.
 */
const STATEMENT_INTEGERS = 10_000;
const STATEMENT_KEYS = 2_000;

/**
 * Primary keys in statements. Integers stand as they are. Bytes are hexadecimal literals, of text with its character
 * set: the server converts the literal to the column's and compares by the column's own collation, so that the index
 * serves, and a key that is unique by that collation names one row. (A bare literal beside a text column would make
 * both bytes, and the server read the whole table.)
 */
export class IdLiterals {
  readonly #outbox: OutboxSettings;
  readonly #id: string;
  /** Null: not asked yet. */
  #isText: boolean | null = null;

  constructor(outbox: OutboxSettings) {
    this.#outbox = outbox;
    this.#id = quoteIdentifier(outbox.columns.id);
  }

  /** `1,2,3`, for `IN (…)`. */
  async list(session: Session, ids: RowIds): Promise<string> {
    if (ids instanceof BigUint64Array) return ids.join(',');
    const introducer = await this.#introducer(session);
    let list = '';
    for (const id of ids) list += `${list === '' ? '' : ','}${introducer}X'${id}'`;
    return list;
  }

  /** The expression that gives the key of a row as `idOf` reads it. */
  async shown(session: Session, ids: RowIds): Promise<string> {
    if (ids instanceof BigUint64Array) return this.#id;
    return (await this.#introducer(session)) === '' ? `HEX(${this.#id})` : `HEX(CONVERT(${this.#id} USING utf8mb4))`;
  }

  async #introducer(session: Session): Promise<string> {
    this.#isText ??= await this.#ask(session);
    return this.#isText ? '_utf8mb4 ' : '';
  }

  async #ask(session: Session): Promise<boolean> {
    const { schema, table, columns } = this.#outbox;
    const rows = await session.rows('asking for the primary key', COLUMN, [schema, table, columns.id]);
    if (rows.length === 0) throw fault('MYSQL_SCHEMA', 'halt', `${schema}.${table} has no column ${columns.id}`);
    return rows[0]['characterSet'] !== null;
  }
}

/** What `shown` gave for one row, to compare with the ids named. */
export function idOf(value: unknown, ids: RowIds): RowId {
  return ids instanceof BigUint64Array ? BigInt(String(value)) : String(value).toLowerCase();
}

/** As many as one statement bears, and again. */
export function* statements(ids: RowIds): Iterable<RowIds> {
  const most = ids instanceof BigUint64Array ? STATEMENT_INTEGERS : STATEMENT_KEYS;
  for (let at = 0; at < ids.length; at += most) yield ids.subarray(at, at + most);
}
