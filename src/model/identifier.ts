/**
 * Quotes a name for MySQL and MariaDB: between backticks, backticks doubled (MySQL Reference Manual, "Schema Object
 * Names"). Every name that comes from a configuration or a server goes through here before it is part of a statement.
 * Throws on what no identifier can be: empty, over 64 characters, with U+0000 or characters beyond the BMP, or ending
 * in a space.
 */
export function quoteIdentifier(name: string): string {
  const problem = identifierProblem(name);
  if (problem !== null) throw new RangeError(`not an identifier: ${problem}`);
  return `\`${name.replaceAll('`', '``')}\``;
}

/** `schema`.`table`, both quoted. */
export function quoteTable(schema: string, table: string): string {
  return `${quoteIdentifier(schema)}.${quoteIdentifier(table)}`;
}

/** What keeps a name from being an identifier; null when nothing does. */
export function identifierProblem(name: string): string | null {
  if (name.length === 0) return 'it is empty';
  if (name.length > 64) return 'it has more than 64 characters';
  if (name.includes('\0')) return 'it has a NUL character';
  if (/[\u{10000}-\u{10ffff}]|\p{Surrogate}/u.test(name))
    return 'it has a character beyond the Basic Multilingual Plane';
  if (name.endsWith(' ')) return 'it ends in a space';
  return null;
}
