import { readFile } from 'node:fs/promises';
import { type Exit, startWarded, type WardedProcess } from './ward.ts';

const STOP_MS = 30_000;

/** What a test may do to one server. Each call returns when it has taken effect; `start` when clients are served. */
export interface Controls {
  /** False for servers at given addresses: every other call throws then. */
  readonly controllable: boolean;
  readonly pid: number | null;
  /** SIGSTOP: connections stay open and nothing answers. */
  freeze(): void;
  thaw(): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGTERM, and SIGKILL when that takes over 30 s. */
  stop(): Promise<void>;
  /** Again on the same port and data, after `kill` or `stop`. */
  start(): Promise<void>;
}

export interface ServerRecipe {
  /** As it appears in messages. */
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly directory: string;
  readonly log: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Throws while the server does not serve yet. */
  readonly ready: () => Promise<void>;
  readonly readyMs: number;
}

/** A server as a process of its own on this machine. */
export class ServerProcess implements Controls {
  readonly controllable = true;
  readonly #recipe: ServerRecipe;
  #process: WardedProcess | null = null;

  constructor(recipe: ServerRecipe) {
    this.#recipe = recipe;
  }

  get pid(): number | null {
    return this.#process?.alive() ? this.#process.pid : null;
  }

  freeze(): void {
    this.#signal('SIGSTOP');
  }

  thaw(): void {
    this.#signal('SIGCONT');
  }

  async kill(): Promise<void> {
    this.#signal('SIGKILL');
    await this.#process?.exited;
  }

  async stop(): Promise<void> {
    this.#signal('SIGTERM');
    this.#signal('SIGCONT');
    const timer = setTimeout(() => this.#signal('SIGKILL'), STOP_MS);
    await this.#process?.exited;
    clearTimeout(timer);
  }

  async start(): Promise<void> {
    await this.launch();
    await this.served();
  }

  /** Starts the process and does not wait until it serves: brokers of one cluster wait for each other. */
  async launch(): Promise<void> {
    if (this.pid !== null) throw new Error(`${this.#recipe.name} is running`);
    this.#process = await startWarded(this.#recipe);
  }

  /** Waits until the server serves. */
  async served(): Promise<void> {
    const { name, ready, readyMs } = this.#recipe;
    const ended = this.#process!.exited.then(async (exit): Promise<never> => {
      throw new Error(`${name} ended while it started (${describe(exit)}):\n${await this.logTail()}`);
    });
    ended.catch(() => undefined); // it may end much later, when nobody listens any more
    const deadline = performance.now() + readyMs;
    for (;;) {
      try {
        await Promise.race([ready(), ended]);
        return;
      } catch (error) {
        if (this.pid === null) return await ended;
        if (performance.now() > deadline) {
          const tail = await this.logTail();
          throw new Error(`${name} does not serve after ${readyMs} ms:\n${tail}`, { cause: error });
        }
      }
      await Promise.race([new Promise((resolve) => setTimeout(resolve, 50)), ended]);
    }
  }

  async logTail(): Promise<string> {
    const text = await readFile(this.#recipe.log, 'utf8').catch(() => '');
    return text.slice(-3000);
  }

  #signal(signal: NodeJS.Signals): void {
    const pid = this.pid;
    if (pid !== null) process.kill(pid, signal);
  }
}

function describe(exit: Exit): string {
  return exit.signal ?? `exit code ${exit.code}`;
}

/** The handle's controls for a server that somebody else runs. */
export function notOurs(name: string): Controls {
  const refuse = (): never => {
    throw new Error(`${name} is at a given address: it cannot be frozen, killed or started by a test`);
  };
  return { controllable: false, pid: null, freeze: refuse, thaw: refuse, kill: refuse, stop: refuse, start: refuse };
}
