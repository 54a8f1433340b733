import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { command } from './command.ts';
import type { DatabaseServer, KafkaCluster } from './handles.ts';
import { LogTail, type LogLine } from './log-tail.ts';
import { until } from './until.ts';
import { type Exit, startWarded, type WardedProcess } from './ward.ts';

/** The command line as `npm run build` makes it: what is measured and shown is what is shipped. */
const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const STOP_MS = 15_000;

export interface RelayConfigOptions {
  readonly mysql: DatabaseServer;
  readonly kafka: KafkaCluster;
  readonly database: string;
  readonly retire: 'mark' | 'delete' | 'keep';
  /** Further keys of the `kafka` section. */
  readonly kafkaKeys?: Readonly<Record<string, unknown>>;
}

/** Writes a configuration with one outbox table `<database>.outbox` as shipped into `directory`; returns its path. */
export async function writeRelayConfig(directory: string, options: RelayConfigOptions): Promise<string> {
  const { mysql, kafka, database, retire } = options;
  const file = join(directory, 'cdc-relay.yaml');
  const config = {
    name: database,
    start: 'head',
    mysql: { host: mysql.host, port: mysql.port, user: mysql.user, password: mysql.password, database },
    kafka: { brokers: kafka.brokers, ...options.kafkaKeys },
    outboxes: [{ table: `${database}.outbox`, topic: { column: 'topic' }, retire }],
    log: { level: 'info', format: 'json' },
  };
  await writeFile(file, stringify(config));
  return file;
}

/** Runs a command of the built relay to its end and gives its stdout. */
export function relayCommand(name: string, configFile: string, ...args: string[]): Promise<string> {
  return command(process.execPath, [CLI, name, '--config', configFile, ...args]);
}

/** `cdc-relay run` of the built relay as a process of its own, which ends with this one at the latest. */
export class RelayProcess {
  /** `performance.now()` of the start. */
  readonly startedAtMs: number;
  readonly #process: WardedProcess;
  readonly #log: LogTail;

  private constructor(startedAtMs: number, process: WardedProcess, log: LogTail) {
    this.startedAtMs = startedAtMs;
    this.#process = process;
    this.#log = log;
  }

  static async start(configFile: string, directory: string): Promise<RelayProcess> {
    mkdirSync(directory, { recursive: true });
    const log = join(directory, `relay-${++started}.log`);
    const startedAtMs = performance.now();
    const args = [CLI, 'run', '--config', configFile];
    const child = await startWarded({ program: process.execPath, args, directory, log });
    return new RelayProcess(startedAtMs, child, new LogTail(log));
  }

  get pid(): number {
    return this.#process.pid;
  }

  get exited(): Promise<Exit> {
    return this.#process.exited;
  }

  /** Waits until the relay has logged such a line, and gives the first one. Throws when the relay ends before. */
  async logged(event: string, fields: Readonly<Record<string, unknown>> = {}, withinMs = 20_000): Promise<LogLine> {
    const matches = (line: LogLine): boolean =>
      line.event === event && Object.entries(fields).every(([name, value]) => line[name] === value);
    const look = (): LogLine | undefined => {
      const alive = this.#process.alive();
      const found = this.lines().find(matches);
      if (found === undefined && !alive) throw new Error(`the relay has ended:\n${this.tail()}`);
      return found;
    };
    return until(look, { withinMs, what: `${event} ${JSON.stringify(fields)} in the relay's log` });
  }

  /** Everything logged so far. */
  lines(): readonly LogLine[] {
    return this.#log.lines();
  }

  /** The end of the log, for messages. */
  tail(): string {
    return this.#log.end();
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    if (this.#process.alive()) process.kill(this.pid, 'SIGKILL');
    await this.exited;
  }

  /** SIGTERM: the relay drains and flushes. Throws when it does not end by itself, or not with 0. */
  async stop(): Promise<void> {
    if (this.#process.alive()) process.kill(this.pid, 'SIGTERM');
    const timer = setTimeout(() => void this.kill(), STOP_MS);
    const exit = await this.exited;
    clearTimeout(timer);
    if (exit.code !== 0) throw new Error(`the relay ended with ${exit.signal ?? exit.code}:\n${this.tail()}`);
  }
}

let started = 0;
