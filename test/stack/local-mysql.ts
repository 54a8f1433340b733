import { cp, link, mkdir, rm, writeFile } from 'node:fs/promises';
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

/** One whose keys lie in a file beside its data, so that it can encrypt its logs. */
export async function startLocalMysqlWithKeyring(options: DatabaseOptions): Promise<DatabaseServer> {
  const tree = await mysqlTree();
  const keyring = await keyringDirectory(tree);
  const flavour = {
    name: 'MySQL with a keyring',
    template: join(keyring, 'data'),
    daemon: (data: string) => mysqld(tree, data, join(keyring, 'mysqld'), join(keyring, 'plugin')),
    flags: MYSQL_FLAGS,
  };
  return startLocalDatabase(flavour, options);
}

/** The server looks for the list of its components beside its program: that is linked here, beside the list. */
async function keyringDirectory(tree: string): Promise<string> {
  const template = await dataTemplate(tree);
  return cached(`${basename(tree)}-keyring`, async (directory) => {
    const [data, plugin] = [join(directory, 'data'), join(directory, 'plugin')];
    await link(join(tree, PROGRAM), join(directory, 'mysqld'));
    await writeFile(join(directory, 'mysqld.my'), JSON.stringify({ components: `file://${KEYRING}` }));
    await mkdir(plugin);
    await cp(join(tree, PLUGINS, `${KEYRING}.so`), join(plugin, `${KEYRING}.so`));
    await writeFile(join(plugin, `${KEYRING}.cnf`), JSON.stringify({ read_local_config: true }));
    await cp(template, data, { recursive: true });
    // Each server has the data directory as its working directory.
    await writeFile(join(data, `${KEYRING}.cnf`), JSON.stringify({ path: './keys', read_only: false }));
  });
}

const KEYRING = 'component_keyring_file';
const PROGRAM = 'usr/sbin/mysqld';
const PLUGINS = 'usr/lib/mysql/plugin';

function mysqld(tree: string, data: string, file = join(tree, PROGRAM), plugins = join(tree, PLUGINS)): Program {
  const { program, args } = inTree(tree, PROGRAM);
  return {
    program,
    args: [
      ...args.slice(0, -1),
      file,
      '--no-defaults',
      '--user=root',
      `--basedir=${join(tree, 'usr')}`,
      `--lc-messages-dir=${join(tree, 'usr/share/mysql')}`,
      `--character-sets-dir=${join(tree, 'usr/share/mysql/charsets')}`,
      `--plugin-dir=${plugins}`,
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
