import type { Connection } from 'mysql2';
import { z } from 'zod';
import type { OutboxSettings } from '../model/settings.ts';
import type { KnownOutbox } from './outbox-table.ts';
import type { TableDefinition } from './table-definition.ts';

/** What must be known before the first event is read. */
export interface ServerFacts {
  readonly logBin: boolean;
  readonly ignoreCase: boolean;
  readonly outboxes: readonly KnownOutbox[];
}

const VARIABLES =
  'SELECT @@GLOBAL.log_bin AS logBin, @@GLOBAL.lower_case_table_names AS nameCase, UNIX_TIMESTAMP() AS nowSeconds';

/** Without ORDER BY the server gives columns in whatever order suits it (C5). */
const COLUMNS = `
  SELECT c.TABLE_SCHEMA AS tableSchema, c.TABLE_NAME AS tableName, c.COLUMN_NAME AS name, c.DATA_TYPE AS dataType,
         c.COLUMN_TYPE AS columnType, c.CHARACTER_SET_NAME AS characterSet,
         UNIX_TIMESTAMP(t.CREATE_TIME) AS createdAtSeconds
  FROM information_schema.COLUMNS c
  JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
  WHERE (c.TABLE_SCHEMA, c.TABLE_NAME) IN (?)
  ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION`;

const Variables = z.tuple([
  z.object({ logBin: z.coerce.number(), nameCase: z.coerce.number(), nowSeconds: z.coerce.number() }),
]);

const Columns = z.array(
  z.object({
    tableSchema: z.string(),
    tableName: z.string(),
    name: z.string(),
    dataType: z.string().transform((type) => type.toLowerCase()),
    columnType: z.string(),
    characterSet: z.string().nullable(),
    createdAtSeconds: z.coerce.number(),
  }),
);

/** Queues the questions on `connection`, behind what is queued there already. Rejects with the driver's error. */
export async function askFacts(connection: Connection, outboxes: readonly OutboxSettings[]): Promise<ServerFacts> {
  const tables = outboxes.map(({ schema, table }) => [schema, table]);
  const answers = await Promise.all([ask(connection, VARIABLES, []), ask(connection, COLUMNS, [tables])]);
  const [{ logBin, nameCase, nowSeconds }] = Variables.parse(answers[0]);
  const columns = Columns.parse(answers[1]);
  const ignoreCase = nameCase !== 0;
  const key = (name: string) => (ignoreCase ? name.toLowerCase() : name);
  const definitionOf = ({ schema, table }: OutboxSettings): TableDefinition | null => {
    const own = columns.filter((c) => key(c.tableSchema) === key(schema) && key(c.tableName) === key(table));
    return own.length === 0 ? null : { createdAtSeconds: own[0].createdAtSeconds, columns: own };
  };
  return {
    logBin: logBin !== 0,
    ignoreCase,
    outboxes: outboxes.map((settings, index) => ({
      index,
      settings,
      definition: definitionOf(settings),
      askedAtSeconds: nowSeconds,
      definitionIsStale: false,
    })),
  };
}

function ask(connection: Connection, sql: string, values: unknown[]): Promise<unknown> {
  return new Promise((resolve, reject) => {
    connection.query(sql, values, (error, rows) => {
      if (error === null) resolve(rows);
      else reject(error);
    });
  });
}
