import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { inTree, mariadbTree, type Program } from './binaries.ts';
import { cached } from './cache.ts';
import { command } from './command.ts';
import type { DatabaseOptions, DatabaseServer } from './handles.ts';
import { startLocalDatabase } from './local-database.ts';
import { shown } from './progress.ts';

/** Beside the flags that MySQL and MariaDB share: MariaDB's own defaults are MIXED and latin1. */
export const MARIADB_FLAGS = ['--binlog-format=ROW', '--gtid-strict-mode=ON', '--character-set-server=utf8mb4'];

export async function startLocalMariadb(options: DatabaseOptions): Promise<DatabaseServer> {
  const tree = await mariadbTree();
  const flavour = {
    name: 'MariaDB',
    template: await dataTemplate(tree),
    daemon: (data: string) => mariadbd(tree, data),
    flags: MARIADB_FLAGS,
  };
  return startLocalDatabase(flavour, options);
}

function mariadbd(tree: string, data: string): Program {
  const { program, args } = inTree(tree, 'usr/sbin/mariadbd');
  return {
    program,
    args: [
      ...args,
      '--no-defaults',
      '--user=root',
      `--basedir=${join(tree, 'usr')}`,
      `--lc-messages-dir=${join(tree, 'usr/share/mysql')}`,
      `--character-sets-dir=${join(tree, 'usr/share/mysql/charsets')}`,
      `--plugin-dir=${join(tree, 'usr/lib/mysql/plugin')}`,
      `--datadir=${data}`,
    ],
  };
}

/** What mariadb-install-db does, without its shell script, which knows installed servers only. */
async function dataTemplate(tree: string): Promise<string> {
  const cache = await cached(`${basename(tree)}-data`, async (directory) => {
    const data = join(directory, 'data');
    await mkdir(data, { mode: 0o750 });
    const share = join(tree, 'usr/share/mysql');
    const texts = ['mysql_system_tables.sql', 'mysql_performance_tables.sql', 'mysql_system_tables_data.sql'];
    const sql = ['CREATE DATABASE mysql;', 'USE mysql;', 'SET @auth_root_socket = NULL;'];
    for (const text of texts) sql.push(await readFile(join(share, text), 'utf8'));
    sql.push(
      `REPLACE INTO global_priv SELECT '%', User, Priv FROM global_priv WHERE Host = 'localhost' AND User = 'root';`,
    );
    const bootstrap = join(directory, 'bootstrap.sql');
    await writeFile(bootstrap, `${sql.join('\n')}\n`);
    const { program, args } = mariadbd(tree, data);
    const line = [program, ...args, '--bootstrap', '--skip-log-bin'];
    await shown('MariaDB data directory', null, () =>
      command('/bin/sh', ['-c', 'exec "$@" < "$0"', bootstrap, ...line]),
    );
    await rm(bootstrap);
  });
  return join(cache, 'data');
}
