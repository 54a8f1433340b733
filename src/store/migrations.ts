import { readdirSync, readFileSync } from 'node:fs';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { isShippedShape } from '../model/outbox-columns.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';

/** One numbered file, names filled in: one statement on one table. */
export interface Migration {
  /** Recorded when it has been applied: `0001_offsets`, and for an outbox with its table, ``0001_outbox `a`.`b` ``. */
  readonly name: string;
  readonly schema: string;
  readonly table: string;
  readonly sql: string;
}

const DIRECTORY = new URL('../../migrations/', import.meta.url);

/** The relay's own tables, in `mysql.database`. */
export function relayMigrations({ mysql }: Settings): Migration[] {
  return filesIn('relay').map(({ name, text }) => {
    const sql = text.replaceAll('{{schema}}', () => quoteIdentifier(mysql.database));
    return { name, schema: mysql.database, table: /\.(cdc_relay_\w+)/.exec(sql)![1], sql };
  });
}

/** The tables of one outbox; empty where its columns are not the shipped ones. */
export function outboxMigrations(outbox: OutboxSettings): Migration[] {
  if (!isShippedShape(outbox)) return [];
  const { schema, table } = outbox;
  const full = quoteTable(schema, table);
  return filesIn('outbox').map(({ name, text }) => ({
    name: `${name} ${full}`,
    schema,
    table,
    sql: text
      .replaceAll('{{table}}', () => full)
      .replaceAll('{{topic_null}}', outbox.topic.kind === 'column' ? 'NOT NULL' : 'NULL'),
  }));
}

/** Statements that record a migration; what is recorded already stays. */
export function recordSql({ mysql }: Settings): string {
  return `INSERT IGNORE INTO ${quoteIdentifier(mysql.database)}.cdc_relay_migrations (name) VALUES (?)`;
}

/** Everything as one script, for those who apply it by other means: at the first start, and again with a new version. */
export function migrationScript(settings: Settings): string {
  const migrations = [...relayMigrations(settings), ...settings.outboxes.flatMap(outboxMigrations)];
  const own = settings.outboxes.filter((outbox) => !isShippedShape(outbox));
  const records = migrations.map(
    ({ name }) => `${recordSql(settings).replace('?', () => `'${name.replaceAll("'", "''")}'`)};`,
  );
  return [
    ...migrations.map((each) => `-- ${each.name}\n${repeatable(each)}`),
    ...own.map(({ schema, table }) => `-- ${quoteTable(schema, table)} has columns of its own: create it yourself\n`),
    `-- what has been applied\n${records.join('\n')}`,
  ].join('\n');
}

/** Columns that are there already (one is there with all of its statement) are passed over, as `migrate` does. */
function repeatable({ schema, table, sql }: Migration): string {
  const column = /\bADD COLUMN (\w+)/.exec(sql)?.[1];
  if (column === undefined) return sql;
  const comment = sql.slice(0, sql.indexOf('ALTER TABLE'));
  const statement = sql.slice(comment.length).trim().replace(/;$/, '');
  return `${comment}SET @change = IF(
  EXISTS (SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ${quoteText(schema)}
    AND TABLE_NAME = ${quoteText(table)} AND COLUMN_NAME = ${quoteText(column)}),
  'DO 0',
  ${quoteText(statement)});
PREPARE change_of_table FROM @change;
EXECUTE change_of_table;
DEALLOCATE PREPARE change_of_table;
`;
}

function quoteText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

function filesIn(directory: 'relay' | 'outbox'): { name: string; text: string }[] {
  const files = readdirSync(new URL(`${directory}/`, DIRECTORY)).filter((file) => file.endsWith('.sql'));
  return files.toSorted().map((file) => ({
    name: file.slice(0, -'.sql'.length),
    text: readFileSync(new URL(`${directory}/${file}`, DIRECTORY), 'utf8'),
  }));
}
