import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { inTree, mysqlTree, type Program } from './binaries.ts';
import { cached } from './cache.ts';
import { command } from './command.ts';
import type { DatabaseOptions, DatabaseServer } from './handles.ts';
import { startLocalDatabase } from './local-database.ts';
import { shown } from './progress.ts';

/** Beside the flags that MySQL and MariaDB share. */
export const MYSQL_FLAGS = ['--mysqlx=OFF', '--gtid-mode=ON', '--enforce-gtid-consistency=ON'];

export async function startLocalMysql(options: DatabaseOptions): Promise<DatabaseServer> {
  const tree = await mysqlTree();
  const flavour = {
    name: 'MySQL',
    template: await dataTemplate(tree),
    daemon: (data: string) => mysqld(tree, data),
    flags: MYSQL_FLAGS,
  };
  return startLocalDatabase(flavour, options);
}

function mysqld(tree: string, data: string): Program {
  const { program, args } = inTree(tree, 'usr/sbin/mysqld');
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
      '--secure-file-priv=NULL',
      `--datadir=${data}`,
    ],
  };
}

async function dataTemplate(tree: string): Promise<string> {
  const cache = await cached(`${basename(tree)}-data`, async (directory) => {
    const data = join(directory, 'data');
    const init = join(directory, 'init.sql');
    await mkdir(data, { mode: 0o750 });
    await writeFile(
      init,
      "CREATE USER 'root'@'%' IDENTIFIED BY '';\nGRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;\n",
    );
    const { program, args } = mysqld(tree, data);
    const initialize = ['--initialize-insecure', '--innodb-redo-log-capacity=8M', `--init-file=${init}`];
    await shown('MySQL data directory', null, () => command(program, [...args, ...initialize]));
    await rm(init);
    await rm(join(data, 'auto.cnf')); // every copy gets a server_uuid of its own
  });
  return join(cache, 'data');
}
