/** A table's name as people write it: `app.outbox`, `outbox`, or with backticks where a name has a dot or a backtick. */
export interface TableName {
  /** Null when only the table was named. */
  readonly schema: string | null;
  readonly table: string;
}

const NAME = '(?:`((?:[^`]|``)+)`|([^`.]+))';
const FULL = new RegExp(`^(?:${NAME}\\.)?${NAME}$`);

/** Null when it is no table name. */
export function parseTableName(text: string): TableName | null {
  const match = FULL.exec(text);
  if (match === null) return null;
  const [, quotedSchema, plainSchema, quotedTable, plainTable] = match as (string | undefined)[];
  const schema = quotedSchema?.replaceAll('``', '`') ?? plainSchema ?? null;
  return { schema, table: quotedTable?.replaceAll('``', '`') ?? plainTable! };
}
