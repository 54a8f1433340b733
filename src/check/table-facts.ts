import type { ColumnDefinition } from '../binlog/table-definition.ts';
import { quoteTable } from '../model/identifier.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import { relayMigrations } from '../store/migrations.ts';
import type { Row, Session } from '../store/session.ts';
import { waitingIndex } from '../store/waiting-table.ts';
import { type Asked, asked, isDenied } from './asked.ts';

/** `hidden`: the user may not see it, so nothing can be said. */
export type Presence = 'there' | 'missing' | 'hidden';

export interface OutboxShape {
  readonly presence: Presence;
  /** Null: it is a view, or is not shown. */
  readonly engine: string | null;
  readonly isView: boolean;
  readonly columns: readonly (ColumnDefinition & { readonly default: string | null })[];
  readonly createdAtSeconds: number;
  readonly primaryKey: readonly string[];
  /** Name of an index that finds pending rows; null: there is none. */
  readonly waitingIndex: string | null;
  /** What the server thinks; it does not count. */
  readonly rowsEstimate: number;
}

export interface TableFacts {
  /** Tables of the relay that are not there. */
  readonly missing: readonly string[];
  /** Migrations that are not recorded as applied. */
  readonly notApplied: Asked<readonly string[]>;
  /** As the outboxes of the settings. */
  readonly outboxes: readonly OutboxShape[];
}

export async function readTables(session: Session, settings: Settings): Promise<TableFacts> {
  const migrations = relayMigrations(settings);
  const missing: string[] = [];
  for (const table of new Set(migrations.map((migration) => migration.table))) {
    if ((await presence(session, settings.mysql.database, table)) === 'missing') missing.push(table);
  }
  const notApplied = await asked(async () => {
    const records = quoteTable(settings.mysql.database, 'cdc_relay_migrations');
    const rows = await session.rows('reading what has been applied', `SELECT name FROM ${records}`);
    const applied = new Set(rows.map((row) => String(row['name'])));
    return migrations.map(({ name }) => name).filter((name) => !applied.has(name));
  });
  const outboxes: OutboxShape[] = [];
  for (const outbox of settings.outboxes) outboxes.push(await readOutbox(session, outbox));
  return { missing, notApplied, outboxes };
}

/** A table without rights on it is not in information_schema: asking it tells why (I6). */
async function presence(session: Session, schema: string, table: string): Promise<Presence> {
  const answer = await asked(() =>
    session.rows(`looking at ${schema}.${table}`, `SELECT 1 FROM ${quoteTable(schema, table)} LIMIT 0`),
  );
  if (answer.known) return 'there';
  if (isDenied(answer.why)) return 'hidden';
  // No such table, or no such schema.
  return answer.why.code === 'MYSQL_SCHEMA' ? 'missing' : 'there';
}

async function readOutbox(session: Session, outbox: OutboxSettings): Promise<OutboxShape> {
  const { schema, table } = outbox;
  const doing = `looking at ${schema}.${table}`;
  const [facts] = (await session.rows(
    doing,
    `SELECT ENGINE AS engine, TABLE_TYPE AS kind, TABLE_ROWS AS row_estimate,
       COALESCE(UNIX_TIMESTAMP(CREATE_TIME), 0) AS created
     FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`,
    [schema, table],
  )) as (Row | undefined)[];
  const columns = await session.rows(
    doing,
    `SELECT COLUMN_NAME AS name, DATA_TYPE AS data_type, COLUMN_TYPE AS column_type, CHARACTER_SET_NAME AS charset,
       CHARACTER_OCTET_LENGTH AS octets, COLUMN_DEFAULT AS default_value
     FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`,
    [schema, table],
  );
  const isShown = facts !== undefined && columns.length > 0;
  const parts = isShown ? await asked(() => session.rows(doing, `SHOW INDEX FROM ${quoteTable(schema, table)}`)) : null;
  const indexes = parts?.known === true ? parts.value : [];
  return {
    presence: isShown ? 'there' : await presence(session, schema, table),
    engine: textOr(facts?.['engine'], null),
    isView: facts?.['kind'] === 'VIEW',
    columns: columns.map((column) => ({
      name: String(column['name']),
      dataType: String(column['data_type']).toLowerCase(),
      columnType: String(column['column_type']),
      characterSet: textOr(column['charset'], null),
      octetLength: column['octets'] === null ? null : Number(column['octets']),
      default: textOr(column['default_value'], null),
    })),
    createdAtSeconds: Number(facts?.['created'] ?? 0),
    primaryKey: indexes.filter((part) => part['Key_name'] === 'PRIMARY').map((part) => String(part['Column_name'])),
    waitingIndex: waitingIndex(outbox, indexes),
    rowsEstimate: Number(facts?.['row_estimate'] ?? 0),
  };
}

function textOr<T>(value: unknown, otherwise: T): string | T {
  return typeof value === 'string' ? value : otherwise;
}
