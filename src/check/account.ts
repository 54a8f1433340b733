/** `relay@%` as `CURRENT_USER()` has it, for a GRANT: `'relay'@'%'`. */
export function quoteAccount(account: string): string {
  const at = account.lastIndexOf('@');
  const quoted = (part: string): string => `'${part.replaceAll("'", "''")}'`;
  return `${quoted(account.slice(0, at))}@${quoted(account.slice(at + 1))}`;
}

export function grantOf(privileges: string, on: string, account: string): string {
  return `GRANT ${privileges} ON ${on} TO ${quoteAccount(account)};`;
}
