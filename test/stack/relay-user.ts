import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';

const PAGE = new URL('../../docs/mysql.md', import.meta.url);

/** What docs/mysql.md tells people to grant, for a user and a schema of a test: the relay is to need no more. */
export function documentedGrants(user: string, database: string): string[] {
  const lines = readFileSync(PAGE, 'utf8').match(/^GRANT .+ TO 'cdc_relay'@'%';$/gm) ?? [];
  if (lines.length === 0) throw new Error('docs/mysql.md has no GRANT for the relay');
  return lines.map((line) =>
    line.replace(' ON app.*', ` ON ${database}.*`).replace("'cdc_relay'@'%'", `'${user}'@'%'`),
  );
}

export interface RelayUser {
  readonly user: string;
  readonly password: string;
}

/** Makes a user that may do what the documentation says, and nothing else. */
export async function createRelayUser(
  sql: (text: string) => Promise<unknown>,
  database: string,
  password = randomBytes(12).toString('hex'),
): Promise<RelayUser> {
  const user = `r_${randomBytes(6).toString('hex')}`;
  await sql(`CREATE USER '${user}'@'%' IDENTIFIED BY '${password}'`);
  for (const grant of documentedGrants(user, database)) await sql(grant);
  return { user, password };
}
