import { fault } from '../model/fault.ts';
import { ByteIds, type RowId, type RowIds } from '../model/row-ids.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { Session } from './session.ts';

/** What the primary key of an outbox is made of. */
export type IdKind = 'integer' | 'text' | 'bytes';

const COLUMN = `SELECT DATA_TYPE AS type, CHARACTER_SET_NAME AS characterSet FROM information_schema.COLUMNS
  WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND COLUMN_NAME = ?`;
const UUID_BYTES = 16;

export async function idKind(session: Session, { schema, table, columns }: OutboxSettings): Promise<IdKind> {
  const rows = await session.rows('asking for the primary key', COLUMN, [schema, table, columns.id]);
  if (rows.length === 0) throw fault('MYSQL_SCHEMA', 'halt', `${schema}.${table} has no column ${columns.id}`);
  const [column] = rows;
  if (/int$/i.test(String(column['type']))) return 'integer';
  return column['characterSet'] === null ? 'bytes' : 'text';
}

/** None, of the kind that `IdLiterals` has to know. */
export function noIds(kind: IdKind): RowIds {
  return kind === 'integer' ? new BigUint64Array() : ByteIds.fromHex([]);
}

/** A key as people write it: digits; the text; hexadecimal digits, with hyphens or without. Null: it cannot be one. */
export function parseId(kind: IdKind, text: string): RowId | null {
  switch (kind) {
    case 'integer':
      return /^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n ? BigInt(text) : null;
    case 'text':
      return text === '' ? null : Buffer.from(text).toString('hex');
    case 'bytes': {
      const digits = text.replaceAll('-', '').toLowerCase();
      return /^([0-9a-f]{2})+$/.test(digits) ? digits : null;
    }
  }
}

/** True where no key is from the first to the last. Of text only its collation could say so. */
export function isBackwards(kind: IdKind, first: RowId, last: RowId): boolean {
  return kind !== 'text' && first > last;
}

/** The key as `parseId` reads it; 16 bytes as a UUID. */
export function idText(kind: IdKind, id: RowId): string {
  if (typeof id === 'bigint') return id.toString();
  if (kind === 'text') return Buffer.from(id, 'hex').toString();
  return id.length === UUID_BYTES * 2 ? id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') : id;
}
