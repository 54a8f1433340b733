import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CLI = `${ROOT}dist/cli.js`;
/** `#!/usr/bin/env node` finds the Node that runs the tests. */
const PATH = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`;

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd: string;
  /** Beside PATH and HOME: nothing else of this process's environment is passed on. */
  readonly environment?: NodeJS.ProcessEnv;
  readonly program?: string;
  /** Ends a run that does not end by itself; `signal` tells it. */
  readonly withinMs?: number;
  /** What is written there finds the disk full. */
  readonly full?: 'stdout' | 'stderr';
  /** Sends SIGINT when it resolves. */
  readonly interrupt?: Promise<unknown>;
}

/** Runs the command line as `npm run build` makes it, to its end. */
export async function runCli(args: readonly string[], options: RunOptions): Promise<Finished> {
  assertFresh();
  return runProgram(process.execPath, [CLI, ...args], options);
}

export function runProgram(program: string, args: readonly string[], options: RunOptions): Promise<Finished> {
  const full = openSync('/dev/full', 'w');
  const to = (stream: RunOptions['full']) => (options.full === stream ? full : 'pipe');
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: { HOME: process.env['HOME'], ...options.environment, PATH },
      stdio: ['ignore', to('stdout'), to('stderr')],
      timeout: options.withinMs ?? 20_000,
      killSignal: 'SIGKILL',
    });
    closeSync(full);
    void options.interrupt?.then(() => child.kill('SIGINT'));
    let stdout = '';
    let stderr = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      resolve({ code, signal, stdout, stderr });
    });
  });
}

/** A test of yesterday's build proves nothing. */
function assertFresh(): void {
  const built = existsSync(CLI) ? statSync(CLI).mtimeMs : 0;
  const sources = readdirSync(`${ROOT}src`, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  const newest = Math.max(...sources.map((name) => statSync(`${ROOT}src/${name}`).mtimeMs));
  if (newest > built) throw new Error('dist/ is older than src/: npm run build');
}
