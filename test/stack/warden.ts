import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * The process between a test process and its servers. It makes the directories and starts the servers, each in a
 * process group of its own, and when its parent is gone, however that ended, it kills them and removes the directories.
 * That the parent is gone shows by the IPC channel, which the kernel closes.
 */

export type WardenRequest =
  | { readonly ask: number; readonly want: 'directory' }
  | { readonly ask: number; readonly want: 'removal'; readonly directory: string }
  | {
      readonly ask: number;
      readonly want: 'process';
      readonly program: string;
      readonly args: readonly string[];
      readonly env: NodeJS.ProcessEnv;
      readonly directory: string;
      /** stdout is appended to it, and stderr too unless that has a file of its own. */
      readonly log: string;
      readonly errorLog?: string;
    };

export type WardenReply =
  | { readonly ask: number; readonly directory: string }
  | { readonly ask: number; readonly pid: number }
  | { readonly ask: number; readonly removed: true }
  | { readonly ask: number; readonly failed: string }
  | { readonly exited: number; readonly code: number | null; readonly signal: NodeJS.Signals | null };

const running = new Map<number, ChildProcess>();
const directories = new Set<string>();

async function serve(request: WardenRequest): Promise<WardenReply> {
  const { ask } = request;
  switch (request.want) {
    case 'directory': {
      const directory = await mkdtemp(join(tmpdir(), 'cdc-relay-'));
      directories.add(directory);
      return { ask, directory };
    }
    case 'removal':
      await rm(request.directory, { recursive: true, force: true });
      directories.delete(request.directory);
      return { ask, removed: true };
    case 'process':
      return { ask, pid: await start(request) };
  }
}

function start(request: Extract<WardenRequest, { want: 'process' }>): Promise<number> {
  const log = openSync(request.log, 'a');
  const errorLog = request.errorLog === undefined ? log : openSync(request.errorLog, 'a');
  const child = spawn(request.program, request.args, {
    cwd: request.directory,
    env: request.env,
    detached: true,
    stdio: ['ignore', log, errorLog],
  });
  for (const file of new Set([log, errorLog])) closeSync(file);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('spawn', () => {
      const pid = child.pid!;
      running.set(pid, child);
      child.once('exit', (code, signal) => {
        running.delete(pid);
        tell({ exited: pid, code, signal });
      });
      resolve(pid);
    });
  });
}

function tell(reply: WardenReply): void {
  // The parent may go at any moment; what it missed no longer matters then.
  if (process.connected) process.send?.(reply, undefined, undefined, () => undefined);
}

async function cleanUp(): Promise<void> {
  const ended = [...running.values()].map((child) => new Promise((resolve) => child.once('exit', resolve)));
  for (const pid of running.keys()) {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // ended in this moment
    }
  }
  await Promise.all(ended);
  for (const directory of directories) await rm(directory, { recursive: true, force: true });
  process.exit(0);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => void cleanUp());
process.on('message', (request: WardenRequest) => {
  serve(request).then(tell, (error: unknown) => tell({ ask: request.ask, failed: String(error) }));
});
