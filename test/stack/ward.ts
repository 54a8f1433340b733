import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { WardenReply, WardenRequest } from './warden.ts';

/** This process's warden: one, started when the first directory or server is wanted. */

type Answer = Exclude<WardenReply, { exited: number }>;
type Wanted = WardenRequest extends infer R ? (R extends WardenRequest ? Omit<R, 'ask'> : never) : never;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface WardedProcess {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** False once the exit is known: the pid may be another process's then. */
  alive(): boolean;
}

let warden: ChildProcess | null = null;
let asked = 0;
let awaited = 0;
const waiting = new Map<number, (answer: Answer) => void>();
const exits = new Map<number, (exit: Exit) => void>();

/** A new temporary directory that is gone, at the latest, with this process. */
export async function temporaryDirectory(): Promise<string> {
  const answer = await ask({ want: 'directory' });
  if (!('directory' in answer)) throw new Error('the warden gave no directory');
  return answer.directory;
}

export async function removeDirectory(directory: string): Promise<void> {
  await ask({ want: 'removal', directory });
}

/** A process that ends, at the latest, with this one. */
export async function startWarded(options: {
  readonly program: string;
  readonly args: readonly string[];
  readonly directory: string;
  readonly log: string;
  readonly errorLog?: string;
  readonly env?: NodeJS.ProcessEnv;
}): Promise<WardedProcess> {
  const answer = await ask({ want: 'process', env: process.env, ...options });
  if (!('pid' in answer)) throw new Error('the warden gave no pid');
  const { pid } = answer;
  let alive = true;
  const exited = new Promise<Exit>((resolve) => {
    exits.set(pid, (exit) => {
      alive = false;
      exits.delete(pid);
      resolve(exit);
    });
  });
  return {
    pid,
    get exited() {
      return keptAlive(exited);
    },
    alive: () => alive,
  };
}

async function ask(wanted: Wanted): Promise<Answer> {
  const child = (warden ??= engage());
  const request = { ...wanted, ask: ++asked } as WardenRequest;
  const answer = await keptAlive(
    new Promise<Answer>((resolve) => {
      waiting.set(request.ask, resolve);
      child.send(request);
    }),
  );
  if ('failed' in answer) throw new Error(answer.failed);
  return answer;
}

/** A quiet warden does not keep this process from ending; what is awaited from it does. */
async function keptAlive<T>(promise: Promise<T>): Promise<T> {
  if (awaited++ === 0) warden?.channel?.ref();
  try {
    return await promise;
  } finally {
    if (--awaited === 0) warden?.channel?.unref();
  }
}

function engage(): ChildProcess {
  const child = fork(fileURLToPath(new URL('warden.ts', import.meta.url)), {
    detached: true, // Ctrl-C in the terminal is for us, not for the warden and the servers
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  child.unref();
  child.channel?.unref();
  child.on('message', (reply: WardenReply) => {
    if ('exited' in reply) exits.get(reply.exited)?.(reply);
    else settle(reply);
  });
  child.on('exit', () => {
    warden = null;
    for (const ask of waiting.keys()) settle({ ask, failed: 'the warden has ended' });
  });
  return child;
}

function settle(answer: Answer): void {
  waiting.get(answer.ask)?.(answer);
  waiting.delete(answer.ask);
}
