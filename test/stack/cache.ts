import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Downloads shared by all checkouts of one user. */
export function cacheDirectory(): string {
  const given = process.env['XDG_CACHE_HOME'] ?? '';
  return join(given === '' ? join(homedir(), '.cache') : given, 'cdc-relay');
}

/**
 * The directory `name` of the cache, made by `fill` when it is not there. It appears whole or not at all (filled under
 * a temporary name, then renamed); of several processes one fills it and the others wait.
 */
export async function cached(name: string, fill: (directory: string) => Promise<void>): Promise<string> {
  const root = cacheDirectory();
  const final = join(root, name);
  if (existsSync(final)) return final;
  await mkdir(root, { recursive: true });
  const held = await lock(final);
  try {
    if (!existsSync(final)) await fillAtomically(root, name, fill);
    return final;
  } finally {
    await held[Symbol.asyncDispose]();
  }
}

async function fillAtomically(root: string, name: string, fill: (directory: string) => Promise<void>): Promise<void> {
  const unfinished = `.unfinished-${name}-`;
  for (const entry of await readdir(root)) {
    if (entry.startsWith(unfinished)) await rm(join(root, entry), { recursive: true, force: true });
  }
  const directory = await mkdtemp(join(root, unfinished));
  try {
    await chmod(directory, 0o755);
    await fill(directory);
    await rename(directory, join(root, name));
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

/** A lock between processes that the kernel drops with its holder, however that ends: an abstract Unix socket. */
async function lock(name: string): Promise<AsyncDisposable> {
  // Hashed, because the kernel takes 107 bytes.
  const path = `\0cdc-relay-cache-${createHash('sha256').update(name).digest('hex')}`;
  for (;;) {
    const server = createServer();
    const taken = await new Promise<boolean>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE') resolve(true);
        else reject(error);
      });
      server.listen({ path }, () => resolve(false));
    });
    if (!taken) {
      return {
        [Symbol.asyncDispose]: () =>
          new Promise<void>((resolve) => {
            server.close(() => resolve());
          }),
      };
    }
    await sleep(300);
  }
}
