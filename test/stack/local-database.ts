import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Program } from './binaries.ts';
import type { Certificate, DatabaseOptions, DatabaseServer } from './handles.ts';
import { freePort } from './ports.ts';
import { databaseVersion } from './ready.ts';
import { type Recipe, ServerProcess } from './server-process.ts';
import { removeDirectory, temporaryDirectory } from './ward.ts';

const HOST = '127.0.0.1';
const READY_MS = 60_000;
const ROOT = { host: HOST, user: 'root', password: '' };

export interface Flavour {
  readonly name: string;
  /** An initialised data directory to copy from: initialising costs seconds, copying does not. */
  readonly template: string;
  readonly daemon: (data: string) => Program;
  readonly flags: readonly string[];
}

/** A MySQL or MariaDB as a process on this machine, with a data directory of its own. */
export async function startLocalDatabase(flavour: Flavour, options: DatabaseOptions): Promise<DatabaseServer> {
  const directory = await temporaryDirectory();
  const data = join(directory, 'data');
  await cp(flavour.template, data, { recursive: true });
  const port = await freePort();
  const daemon = flavour.daemon(data);
  const tls = options.certificate !== undefined;
  const server = new LocalDatabase(port, directory, {
    name: `${flavour.name} on port ${port}`,
    program: daemon.program,
    args: [
      ...daemon.args,
      `--bind-address=${HOST}`,
      `--port=${port}`,
      `--socket=${join(directory, 'server.sock')}`,
      `--pid-file=${join(directory, 'server.pid')}`,
      // A MariaDB that starts deletes the temporary tables that it finds, those of others in a common place too.
      `--tmpdir=${directory}`,
      ...databaseFlags(options),
      ...flavour.flags,
      ...(options.certificate === undefined ? [] : await certificateFlags(directory, options.certificate)),
      ...(options.flags ?? []),
    ],
    directory,
    log: join(directory, 'server.log'),
    readyMs: READY_MS,
    ready: async () => {
      server.version = await databaseVersion({ ...ROOT, port, tls });
    },
  });
  try {
    await server.start();
    return server;
  } catch (error) {
    await server.dispose();
    throw error;
  }
}

/** What both products take, in containers too. */
export function databaseFlags(options: DatabaseOptions): string[] {
  return [
    '--skip-name-resolve',
    '--max-connections=500',
    '--default-time-zone=+00:00',
    `--server-id=${options.serverId ?? 1}`,
    '--log-bin=binlog',
    '--binlog-row-metadata=FULL',
    ...(options.durable === true ? [] : RELAXED),
  ];
}

/**
 * For speed. What was committed is in the kernel's hands (`=2`, not 0), so that it outlives a SIGKILL of the server;
 * only a crash of the machine would lose it.
 */
const RELAXED = ['--innodb-flush-log-at-trx-commit=2', '--sync-binlog=0', '--innodb-doublewrite=OFF'];

async function certificateFlags(directory: string, certificate: Certificate): Promise<string[]> {
  const flags = [];
  for (const part of ['ca', 'cert', 'key'] as const) {
    const file = join(directory, `${part}.pem`);
    await writeFile(file, certificate[part]);
    flags.push(`--ssl-${part}=${file}`);
  }
  return flags;
}

class LocalDatabase extends ServerProcess implements DatabaseServer {
  readonly host = HOST;
  readonly port: number;
  readonly user = ROOT.user;
  readonly password = ROOT.password;
  readonly internal: DatabaseServer['internal'];
  version = '';
  readonly #directory: string;

  constructor(port: number, directory: string, recipe: Recipe) {
    super(recipe);
    this.port = port;
    this.internal = { host: HOST, port };
    this.#directory = directory;
  }

  async dispose(): Promise<void> {
    await this.kill();
    await removeDirectory(this.#directory);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
