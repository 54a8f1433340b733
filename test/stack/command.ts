import { execFile } from 'node:child_process';

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** Runs a program to its end and gives its stdout; the error of a failure carries the end of what it printed. */
export function command(program: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const settings = { ...options, maxBuffer: 64 * 1024 * 1024, encoding: 'utf8' as const };
    execFile(program, args, settings, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${program} failed: ${`${stdout}\n${stderr}`.trim().slice(-2000)}`, { cause: error }));
    });
  });
}

/** Whether the program is on the PATH. */
export async function available(program: string): Promise<boolean> {
  try {
    await command('/bin/sh', ['-c', 'command -v "$0"', program]);
    return true;
  } catch {
    return false;
  }
}
