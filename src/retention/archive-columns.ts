import { fault } from '../model/fault.ts';
import { quoteIdentifier } from '../model/identifier.ts';
import type { OutboxSettings, RetentionSettings } from '../model/settings.ts';
import type { Session } from '../store/session.ts';

type Table = NonNullable<RetentionSettings['archive']>;

/** What the server computes cannot be inserted: the archive computes it too, or does without. */
const COLUMNS = `SELECT COLUMN_NAME AS name, COLUMN_TYPE AS type, COALESCE(CHARACTER_SET_NAME, '') AS characterSet
  FROM information_schema.COLUMNS
  WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND COALESCE(GENERATION_EXPRESSION, '') = ''
  ORDER BY ORDINAL_POSITION`;

/**
 * The columns of an outbox, quoted and with commas between them, that its archive takes. Throws a `RelayError`
 * (MYSQL_SCHEMA) when the archive does not hold each of them as it is: without strict mode a narrower column would cut
 * values in silence.
 */
export async function archivedColumns(session: Session, outbox: OutboxSettings, archive: Table): Promise<string> {
  const [ours, theirs] = [await columnsOf(session, outbox), await columnsOf(session, archive)];
  for (const [name, type] of ours) {
    if (theirs.get(name) === type) continue;
    const problem =
      theirs.size === 0 ? 'does not exist' : theirs.has(name) ? `has another type for ${name}` : `lacks ${name}`;
    const [as, like] = [archive, outbox].map(({ schema, table }) => `${schema}.${table}`);
    throw fault('MYSQL_SCHEMA', 'halt', `the archive ${as} ${problem}; CREATE TABLE ${as} LIKE ${like} makes it`);
  }
  return [...ours.keys()].map(quoteIdentifier).join(', ');
}

async function columnsOf(session: Session, { schema, table }: Table): Promise<Map<string, string>> {
  const rows = await session.rows('comparing outbox and archive', COLUMNS, [schema, table]);
  return new Map(rows.map((row) => [String(row['name']), `${String(row['type'])} ${String(row['characterSet'])}`]));
}
