import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { type LogLine, LogTail } from './log-tail.ts';
import { until } from './until.ts';
import { type Exit, removeDirectory, startWarded, temporaryDirectory, type WardedProcess } from './ward.ts';

/** The command line as `npm run build` makes it. */
const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const SAMPLE_MS = 100;

export interface CliOptions {
  /** Written as YAML; `--config` with its path is added to the arguments. */
  readonly config?: object;
  /** Beside this process's own environment. */
  readonly env?: NodeJS.ProcessEnv;
  /** Flags of Node itself, such as a limit of the heap. */
  readonly nodeFlags?: readonly string[];
}

/** Starts the built command line: `startCli(['run'], { config })`. It ends, at the latest, with this process. */
export async function startCli(args: readonly string[], options: CliOptions = {}): Promise<CliProcess> {
  const directory = await temporaryDirectory();
  const all = [...(options.nodeFlags ?? []), CLI, ...args];
  if (options.config !== undefined) {
    const file = join(directory, 'cdc-relay.yaml');
    await writeFile(file, stringify(options.config), { mode: 0o600 });
    all.push('--config', file);
  }
  const child = await startWarded({
    program: process.execPath,
    args: all,
    directory,
    log: join(directory, 'stdout'),
    errorLog: join(directory, 'stderr'),
    env: { ...process.env, ...options.env },
  });
  return new CliProcess(child, directory);
}

/** A command of the built command line as a child process. */
export class CliProcess implements AsyncDisposable {
  readonly #child: WardedProcess;
  readonly #directory: string;
  readonly #log: LogTail;
  readonly #sampler: NodeJS.Timeout;
  #peakRssBytes = 0;

  constructor(child: WardedProcess, directory: string) {
    this.#child = child;
    this.#directory = directory;
    this.#log = new LogTail(join(directory, 'stderr'));
    this.#sampler = setInterval(() => this.peakRssBytes(), SAMPLE_MS).unref();
  }

  get pid(): number {
    return this.#child.pid;
  }

  get exited(): Promise<Exit> {
    return this.#child.exited;
  }

  alive(): boolean {
    return this.#child.alive();
  }

  stdout(): string {
    return readFileSync(join(this.#directory, 'stdout'), 'utf8');
  }

  stderr(): string {
    return readFileSync(join(this.#directory, 'stderr'), 'utf8');
  }

  /** The log lines so far. */
  lines(): readonly LogLine[] {
    return this.#log.lines();
  }

  /**
   * The first log line of this event (and with these fields) behind the first `after` lines; waits for it. Throws when
   * the process ends without it.
   */
  waitFor(
    event: string,
    options: {
      readonly fields?: Readonly<Record<string, unknown>>;
      readonly after?: number;
      readonly withinMs?: number;
    } = {},
  ): Promise<LogLine> {
    const { fields = {}, after = 0, withinMs = 60_000 } = options;
    const wanted = Object.entries(fields);
    const look = () => {
      const alive = this.alive(); // before the log is read: its last lines count
      const matches = (line: LogLine) => line.event === event && wanted.every(([name, value]) => line[name] === value);
      const found = this.lines().slice(after).find(matches);
      if (found === undefined && !alive) throw new Error(`the process ended without ${event}:\n${this.#log.end()}`);
      return found;
    };
    return until(look, { withinMs, what: `${event} ${JSON.stringify(fields)} in the log` });
  }

  /** Sends a signal. */
  signal(signal: NodeJS.Signals): void {
    if (this.alive()) process.kill(this.pid, signal);
  }

  /** Sends the signal and waits for the end. */
  async kill(signal: NodeJS.Signals = 'SIGKILL', withinMs = 60_000): Promise<Exit> {
    this.peakRssBytes();
    this.signal(signal);
    await until(() => !this.alive(), { withinMs, what: `the end after ${signal}`, everyMs: 5 });
    return this.exited;
  }

  /** The most memory that the process has held at once so far (VmHWM; Linux). Sampled, so it is known after the end too. */
  peakRssBytes(): number {
    try {
      const status = readFileSync(`/proc/${this.pid}/status`, 'latin1');
      const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
      if (this.alive() && kilobytes !== undefined) this.#peakRssBytes = Number(kilobytes) * 1024;
    } catch {
      // it has ended: the last sample stands
    }
    return this.#peakRssBytes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sampler);
    this.signal('SIGKILL');
    await this.exited;
    await removeDirectory(this.#directory);
  }
}
