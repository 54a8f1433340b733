import type { Connection } from 'mysql2';
import { z } from 'zod';
import type { Position } from '../model/position.ts';
import type { OutboxSettings } from '../model/settings.ts';
import { ask } from './ask.ts';
import type { KnownOutbox } from './outbox-table.ts';
import type { TableDefinition } from './table-definition.ts';

/** What must be known before the first event is read. */
export interface ServerFacts {
  readonly logBin: boolean;
  readonly mariadb: boolean;
  readonly ignoreCase: boolean;
  readonly outboxes: readonly KnownOutbox[];
  /** The end of the log before and after the definitions were read; null when it was not asked for. */
  readonly heads: { readonly before: Position; readonly after: Position } | null;
  /** Files of the log; null when they were not asked for, or may not be. */
  readonly files: readonly string[] | null;
}

const VARIABLES =
  'SELECT @@GLOBAL.log_bin AS logBin, @@GLOBAL.lower_case_table_names AS nameCase, VERSION() AS version';

/** The last one is the end of the log: the one statement for it that every version takes. */
const LOGS = 'SHOW BINARY LOGS';

/** A statement in the log may not be done yet; this waits for the table until it is. */
const OPEN_TABLE = 'SELECT 1 FROM ??.?? LIMIT 0';

/** Without ORDER BY the server gives columns in whatever order suits it (C5). */
const COLUMNS = `
  SELECT c.TABLE_SCHEMA AS tableSchema, c.TABLE_NAME AS tableName, c.COLUMN_NAME AS name, c.DATA_TYPE AS dataType,
         c.COLUMN_TYPE AS columnType, c.CHARACTER_SET_NAME AS characterSet,
         c.CHARACTER_OCTET_LENGTH AS octetLength,
         UNIX_TIMESTAMP(t.CREATE_TIME) AS createdAtSeconds
  FROM information_schema.COLUMNS c
  JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
  WHERE (c.TABLE_SCHEMA, c.TABLE_NAME) IN (?)
  ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION`;

const Variables = z.tuple([z.object({ logBin: z.coerce.number(), nameCase: z.coerce.number(), version: z.string() })]);

const Logs = z
  .array(z.object({ Log_name: z.string(), File_size: z.coerce.number(), Encrypted: z.string().optional() }))
  .min(1);

/** Leads an encrypted file and counts in its size, but not in positions. */
const ENCRYPTION_HEADER_BYTES = 512;

const Columns = z.array(
  z.object({
    tableSchema: z.string(),
    tableName: z.string(),
    name: z.string(),
    dataType: z.string().transform((type) => type.toLowerCase()),
    columnType: z.string(),
    characterSet: z.string().nullable(),
    octetLength: z.coerce.number().nullable(),
    createdAtSeconds: z.coerce.number(),
  }),
);

/** `heads`: the definitions can be placed in the log; `files`: those that are there. */
export type LogQuestion = 'heads' | 'files' | null;

/**
 * Queues the questions on `connection`, behind what is queued there already. Rejects with the driver's error.
 */
export async function askFacts(
  connection: Connection,
  outboxes: readonly OutboxSettings[],
  question: LogQuestion,
): Promise<ServerFacts> {
  const names = outboxes.map(({ schema, table }) => [schema, table]);
  const withHeads = question === 'heads';
  const askLogs = () => (withHeads ? ask(connection, LOGS, []) : null);
  const open = (name: readonly string[]) => ask(connection, OPEN_TABLE, name).catch(() => null); // it may be gone
  const answers = await Promise.all([
    ask(connection, VARIABLES, []),
    askLogs(),
    withHeads ? Promise.all(names.map(open)) : null,
    ask(connection, COLUMNS, [names]),
    askLogs(),
    question === 'files' ? ask(connection, LOGS, []).catch(() => null) : null,
  ]);
  const [{ logBin, nameCase, version }] = Variables.parse(answers[0]);
  const heads = withHeads ? { before: headOf(answers[1]), after: headOf(answers[4]) } : null;
  const columns = Columns.parse(answers[3]);
  const ignoreCase = nameCase !== 0;
  const key = (name: string) => (ignoreCase ? name.toLowerCase() : name);
  const definitionOf = ({ schema, table }: OutboxSettings): TableDefinition | null => {
    const own = columns.filter((c) => key(c.tableSchema) === key(schema) && key(c.tableName) === key(table));
    return own.length === 0 ? null : { createdAtSeconds: own[0].createdAtSeconds, columns: own };
  };
  return {
    logBin: logBin !== 0,
    mariadb: /mariadb/i.test(version),
    ignoreCase,
    outboxes: outboxes.map((settings, index) => ({
      index,
      settings,
      definition: definitionOf(settings),
      lookedAhead: null,
      definitionIsStale: false,
    })),
    heads,
    files: answers[5] === null ? null : Logs.parse(answers[5]).map(({ Log_name: name }) => name),
  };
}

function headOf(logs: unknown): Position {
  const { Log_name: file, File_size: size, Encrypted: encrypted } = Logs.parse(logs).at(-1)!;
  return { file, offset: encrypted === 'Yes' ? size - ENCRYPTION_HEADER_BYTES : size };
}
