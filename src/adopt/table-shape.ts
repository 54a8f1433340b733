import type { Session } from '../store/session.ts';

export interface TableColumn {
  readonly name: string;
  /** `varchar`, `enum`, `datetime`; lower case. */
  readonly type: string;
  /** As declared: `enum('a','b')`, `binary(16)`. */
  readonly declared: string;
  /** As the server shows it: a literal without quotes or with them, an expression. */
  readonly default: string | null;
}

/** A table as it is. */
export interface TableShape {
  readonly engine: string;
  /** What the server thinks; it does not count. */
  readonly rows: number;
  readonly columns: readonly TableColumn[];
  readonly primaryKey: readonly string[];
  /** Columns of each index, by its name. */
  readonly indexes: ReadonlyMap<string, readonly string[]>;
}

/** Null: there is no such table, or the user may not see it. */
export async function readShape(session: Session, schema: string, table: string): Promise<TableShape | null> {
  const doing = `looking at ${schema}.${table}`;
  const [facts] = (await session.rows(
    doing,
    `SELECT ENGINE AS engine, TABLE_ROWS AS row_estimate FROM information_schema.TABLES
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND TABLE_TYPE = 'BASE TABLE'`,
    [schema, table],
  )) as (Readonly<Record<string, unknown>> | undefined)[];
  if (facts === undefined) return null;
  const columns = await session.rows(
    doing,
    `SELECT COLUMN_NAME AS name, DATA_TYPE AS type, COLUMN_TYPE AS declared, COLUMN_DEFAULT AS default_value
     FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`,
    [schema, table],
  );
  const parts = await session.rows(
    doing,
    `SELECT INDEX_NAME AS index_name, COLUMN_NAME AS name FROM information_schema.STATISTICS
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY INDEX_NAME, SEQ_IN_INDEX`,
    [schema, table],
  );
  const indexes = new Map<string, string[]>();
  for (const part of parts) {
    const name = String(part['index_name']);
    indexes.set(name, [...(indexes.get(name) ?? []), textOr(part['name'], '')]);
  }
  return {
    engine: String(facts['engine']),
    rows: Number(facts['row_estimate'] ?? 0),
    columns: columns.map((column) => ({
      name: String(column['name']),
      type: String(column['type']).toLowerCase(),
      declared: String(column['declared']).toLowerCase(),
      default: textOr(column['default_value'], null),
    })),
    primaryKey: indexes.get('PRIMARY') ?? [],
    indexes,
  };
}

/** Null: an index over an expression has no column, a column without a default no text. */
function textOr<T>(value: unknown, otherwise: T): string | T {
  return typeof value === 'string' ? value : otherwise;
}
