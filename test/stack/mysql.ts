import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { inTree, mysqlTree } from './binaries.ts';
import { cached } from './cache.ts';
import { command } from './command.ts';
import { freePort } from './ports.ts';
import { shown } from './progress.ts';
import { ServerProcess } from './server.ts';
import { removeDirectory, temporaryDirectory } from './ward.ts';
import type { MysqlOptions, MysqlServer } from './handles.ts';

const HOST = '127.0.0.1';
const READY_MS = 60_000;

/** A MySQL of Debian's packages as a process on this machine, with a data directory of its own. */
export async function startLocalMysql(options: MysqlOptions): Promise<MysqlServer> {
  const tree = await mysqlTree();
  const template = await dataTemplate(tree);
  const directory = await temporaryDirectory();
  const data = join(directory, 'data');
  await cp(template, data, { recursive: true });
  const port = await freePort();
  const log = join(directory, 'mysqld.log');
  const serverId = options.serverId ?? 1;
  const mysqld = mysqldIn(tree, data);
  const server = new ServerProcess({
    name: `MySQL on port ${port}`,
    program: mysqld.program,
    args: [
      ...mysqld.args,
      `--bind-address=${HOST}`,
      `--port=${port}`,
      `--socket=${join(directory, 'mysqld.sock')}`,
      `--pid-file=${join(directory, 'mysqld.pid')}`,
      '--mysqlx=OFF',
      '--skip-name-resolve',
      '--max-connections=500',
      '--default-time-zone=+00:00',
      `--server-id=${serverId}`,
      '--log-bin=binlog',
      '--gtid-mode=ON',
      '--enforce-gtid-consistency=ON',
      '--binlog-row-metadata=FULL',
      ...(options.durable === true ? [] : RELAXED),
      ...(options.flags ?? []),
    ],
    directory,
    log,
    readyMs: READY_MS,
    ready: async () => {
      const connection = await createConnection({ host: HOST, port, user: 'root', connectTimeout: 1000 });
      connection.destroy();
    },
  });
  try {
    await server.start();
    const version = await versionOf(port);
    const dispose = async () => {
      if (server.pid !== null) await server.kill();
      await removeDirectory(directory);
    };
    return {
      host: HOST,
      port,
      user: 'root',
      password: '',
      version,
      controllable: true,
      get pid() {
        return server.pid;
      },
      freeze: () => server.freeze(),
      thaw: () => server.thaw(),
      kill: () => server.kill(),
      stop: () => server.stop(),
      start: () => server.start(),
      dispose,
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await server.kill();
    await removeDirectory(directory);
    throw error;
  }
}

/**
 * For speed. What was committed is in the kernel's hands (`=2`, not 0), so that it outlives a SIGKILL of the server;
 * only a crash of the machine would lose it.
 */
const RELAXED = ['--innodb-flush-log-at-trx-commit=2', '--sync-binlog=0', '--innodb-doublewrite=OFF'];

function mysqldIn(tree: string, data: string): { readonly program: string; readonly args: readonly string[] } {
  const { program, args } = inTree(tree, 'usr/sbin/mysqld');
  return {
    program,
    args: [
      ...args,
      '--no-defaults',
      ...(process.getuid?.() === 0 ? ['--user=root'] : []),
      `--basedir=${join(tree, 'usr')}`,
      `--lc-messages-dir=${join(tree, 'usr/share/mysql')}`,
      `--character-sets-dir=${join(tree, 'usr/share/mysql/charsets')}`,
      `--plugin-dir=${join(tree, 'usr/lib/mysql/plugin')}`,
      '--secure-file-priv=/tmp',
      `--datadir=${data}`,
    ],
  };
}

/** An initialised data directory to copy from: initialising costs seconds, copying does not. */
async function dataTemplate(tree: string): Promise<string> {
  const cache = await cached(`${basename(tree)}-data`, async (directory) => {
    const data = join(directory, 'data');
    const init = join(directory, 'init.sql');
    await mkdir(data, { mode: 0o750 });
    const { program, args } = mysqldIn(tree, data);
    await writeFile(
      init,
      "CREATE USER 'root'@'%' IDENTIFIED BY '';\nGRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;\n",
    );
    const initialize = ['--initialize-insecure', '--innodb-redo-log-capacity=8M', `--init-file=${init}`];
    await shown('MySQL data directory', null, () => command(program, [...args, ...initialize]));
    await rm(init);
    await rm(join(data, 'auto.cnf')); // every copy gets a server_uuid of its own
  });
  return join(cache, 'data');
}

async function versionOf(port: number): Promise<string> {
  const connection = await createConnection({ host: HOST, port, user: 'root' });
  const [rows] = await connection.query<RowDataPacket[]>('SELECT VERSION() AS version');
  await connection.end();
  return String(rows[0]!['version']);
}
