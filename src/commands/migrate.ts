import { RelayError } from '../model/fault.ts';
import { quoteIdentifier } from '../model/identifier.ts';
import type { Settings } from '../model/settings.ts';
import { migrationScript } from '../store/migrations.ts';
import type { CommandBody } from './command.ts';
import { ExitCode } from './exit-codes.ts';
import { type Problem, problemOf } from './problem.ts';

/** Creates what is missing and says what it did; with `--print` only prints the SQL. */
export const migrate: CommandBody = async ({ settings, log, options, print, note }) => {
  if (options['print'] === true) {
    print(migrationScript(settings));
    return ExitCode.Good;
  }
  const { Migrator } = await import('../store/migrator.ts');
  const migrator = await Migrator.open(settings, log);
  try {
    const outcomes = await migrator.run();
    const done = outcomes.filter(({ as }) => as === 'created' || as === 'changed');
    for (const { table, as } of done) print(`${as} ${table}`);
    if (done.length === 0) print('nothing to do');
    for (const { table } of outcomes.filter(({ as }) => as === 'absent')) {
      note(`${table} does not exist; its columns are its own, so migrate does not create it`);
    }
    return ExitCode.Good;
  } catch (error) {
    if (error instanceof RelayError) return explained(error, settings, migrator);
    throw error;
  } finally {
    migrator.close();
  }
};

function explained(
  error: RelayError,
  settings: Settings,
  { account, version }: { account: string; version: string },
): Problem {
  const problem = problemOf(error.fault, settings, {
    effect: 'what was created before this stays; migrate can be run again',
  });
  const server = `${problem.server ?? ''} (${version})`;
  const database = quoteIdentifier(settings.mysql.database);
  switch (error.fault.code) {
    case 'MYSQL_ACCESS_DENIED': {
      const schemas = [...new Set([database, ...settings.outboxes.map(({ schema }) => quoteIdentifier(schema))])];
      const grants = schemas.map(
        (schema) => `GRANT SELECT, INSERT, CREATE, ALTER ON ${schema}.* TO ${quoteAccount(account)};`,
      );
      return { ...problem, server, fix: [...grants, 'or hand this on: cdc-relay migrate --print'].join('\n') };
    }
    case 'MYSQL_SCHEMA':
      return { ...problem, server, fix: `see mysql.database and outboxes[].table; CREATE DATABASE ${database};` };
    case 'MYSQL_LOCK_WAIT':
      return { ...problem, server, fix: 'end what holds the lock (a backup, an open transaction), then run it again' };
    default:
      return { ...problem, server };
  }
}

/** `relay@%` as CURRENT_USER() has it, for a GRANT. */
function quoteAccount(account: string): string {
  const at = account.lastIndexOf('@');
  const quoted = (part: string): string => `'${part.replaceAll("'", "''")}'`;
  return `${quoted(account.slice(0, at))}@${quoted(account.slice(at + 1))}`;
}
