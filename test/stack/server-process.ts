import { readdir, readFile } from 'node:fs/promises';
import type { Controls } from './handles.ts';
import { type Ready, serves } from './ready.ts';
import { until } from './until.ts';
import { type Exit, startWarded, type WardedProcess } from './ward.ts';

const STOP_MS = 30_000;

export interface Recipe extends Ready {
  readonly program: string;
  readonly args: readonly string[];
  readonly directory: string;
  /** stdout and stderr are appended to it. */
  readonly log: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** A server as a process of its own on this machine. */
export class ServerProcess implements Controls {
  readonly controllable = true;
  readonly #recipe: Recipe;
  #process: WardedProcess | null = null;

  constructor(recipe: Recipe) {
    this.#recipe = recipe;
  }

  get pid(): number | null {
    return this.#process?.alive() === true ? this.#process.pid : null;
  }

  /** Until its last thread stands still: one that runs may answer yet. */
  async freeze(): Promise<void> {
    const { pid } = this;
    if (pid === null) return;
    this.#signal('SIGSTOP');
    await until(() => standsStill(pid), { withinMs: 20_000, everyMs: 1, what: `${this.#recipe.name} stands still` });
  }

  thaw(): Promise<void> {
    this.#signal('SIGCONT');
    return Promise.resolve();
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
    if (this.pid !== null) throw new Error(`${this.#recipe.name} is running`);
    const process = await startWarded(this.#recipe);
    this.#process = process;
    await serves(this.#recipe, async () => {
      if (process.alive()) return null;
      return `it ended (${described(await process.exited)}):\n${await this.#logTail()}`;
    });
  }

  async #logTail(): Promise<string> {
    const text = await readFile(this.#recipe.log, 'utf8');
    return text.slice(-3000);
  }

  #signal(signal: NodeJS.Signals): void {
    const pid = this.pid;
    if (pid !== null) process.kill(pid, signal);
  }
}

/** By the state of each thread (proc_pid_stat(5)); what the kernel does not tell is taken for true. */
async function standsStill(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const stats = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(() => '')),
  );
  return stats.every((stat) => stat === '' || /^\d+ \(.*\) [TtZ]/s.test(stat));
}

function described(exit: Exit): string {
  return exit.signal ?? `exit code ${exit.code}`;
}
