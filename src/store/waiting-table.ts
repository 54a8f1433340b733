import { fault } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { OutboxSettings } from '../model/settings.ts';
import type { Row, Session } from './session.ts';

const INTEGERS: readonly unknown[] = ['tinyint', 'smallint', 'mediumint', 'int', 'bigint'];
const MAX_ERROR_CHARACTERS = 1_000;

export interface WaitingFacts {
  /** Quoted, for FORCE INDEX: finds what waits, by (status, available_at, id). */
  readonly index: string;
  readonly hasIntegerId: boolean;
  /** About the bytes of payload and headers: an expression. */
  readonly documentBytes: string;
  /** The aggregate id as the bytes that SELECT shows: an expression. */
  readonly keyBytes: string;
  /** What the column of the last error takes. */
  readonly errorCharacters: number;
}

/** What the statements on waiting rows need to know of an outbox table; asked once. */
export class WaitingTable {
  readonly #outbox: OutboxSettings;
  #facts: WaitingFacts | null = null;

  constructor(outbox: OutboxSettings) {
    this.#outbox = outbox;
  }

  /** Throws a `RelayError` (MYSQL_SCHEMA) where the table has no index that finds what waits. */
  async facts(session: Session): Promise<WaitingFacts> {
    return (this.#facts ??= await this.#ask(session));
  }

  async #ask(session: Session): Promise<WaitingFacts> {
    const { schema, table, columns } = this.#outbox;
    const doing = `looking at ${schema}.${table}`;
    const described = await session.rows(
      doing,
      `SELECT LOWER(COLUMN_NAME) AS name, DATA_TYPE AS type, CHARACTER_SET_NAME AS character_set,
         CHARACTER_MAXIMUM_LENGTH AS characters
       FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`,
      [schema, table],
    );
    const byName = new Map(described.map((row) => [String(row['name']), row]));
    const find = (name: string): Row => {
      const row = byName.get(name.toLowerCase());
      if (row === undefined) throw fault('MYSQL_SCHEMA', 'halt', `${schema}.${table} has no column ${name}`);
      return row;
    };
    const documents = [columns.payload, columns.headers].filter((name) => name !== null);
    const error = columns.lastError === null ? Infinity : Number(find(columns.lastError)['characters'] ?? Infinity);
    return {
      index: quoteIdentifier(this.#indexOf(await session.rows(doing, `SHOW INDEX FROM ${quoteTable(schema, table)}`))),
      hasIntegerId: INTEGERS.includes(find(columns.id)['type']),
      documentBytes: documents.map((name) => sizeOf(name, find(name))).join(' + '),
      keyBytes: bytesOf(columns.aggregateId, find(columns.aggregateId)),
      errorCharacters: Math.min(MAX_ERROR_CHARACTERS, error),
    };
  }

  #indexOf(parts: readonly Row[]): string {
    const found = waitingIndex(this.#outbox, parts);
    if (found !== null) return found;
    const { schema, table } = this.#outbox;
    const fix = createWaitingIndex(this.#outbox);
    throw fault('MYSQL_SCHEMA', 'halt', `${schema}.${table} has no index that finds its pending rows; run: ${fix}`);
  }
}

/** Of what SHOW INDEX tells, an index that finds what waits; null: there is none. */
export function waitingIndex({ columns }: OutboxSettings, parts: readonly Row[]): string | null {
  const wanted = waitingColumns(columns);
  const indexes = Map.groupBy(parts, (part) => String(part['Key_name']));
  for (const [name, keys] of indexes) if (serves(keys, wanted)) return name;
  return null;
}

/** The statement that is missing where there is none. */
export function createWaitingIndex({ schema, table, columns }: OutboxSettings): string {
  const list = waitingColumns(columns).map(quoteIdentifier).join(', ');
  return `CREATE INDEX waiting ON ${quoteTable(schema, table)} (${list})`;
}

function waitingColumns({ status, availableAt, id }: OutboxSettings['columns']): string[] {
  return [status, availableAt, id].filter((name) => name !== null);
}

/** The primary key stands behind every index, named or not. */
function serves(keys: readonly Row[], wanted: readonly string[]): boolean {
  const sorted = keys.toSorted((a, b) => Number(a['Seq_in_index']) - Number(b['Seq_in_index']));
  const [{ Index_type: type, Visible: visible, Ignored: ignored }] = sorted;
  if (type !== 'BTREE' || visible === 'NO' || ignored === 'YES') return false;
  const isPrefix = sorted.every(
    (key, n) =>
      n >= wanted.length ||
      (String(key['Column_name']).toLowerCase() === wanted[n].toLowerCase() &&
        key['Sub_part'] === null &&
        key['Collation'] === 'A'),
  );
  return isPrefix && sorted.length >= wanted.length - 1;
}

function sizeOf(name: string, { type }: Row): string {
  const measure = type === 'json' ? 'JSON_STORAGE_SIZE' : 'LENGTH';
  return `COALESCE(${measure}(${quoteIdentifier(name)}), 0)`;
}

function bytesOf(name: string, { type, character_set: characterSet }: Row): string {
  const column = quoteIdentifier(name);
  // What has no character set is bytes, or a number or time that is shown as text.
  const isBytes = characterSet === null && /binary|blob|bit/.test(String(type));
  return isBytes ? `CONCAT(${column})` : `CAST(CAST(${column} AS CHAR CHARACTER SET utf8mb4) AS BINARY)`;
}
