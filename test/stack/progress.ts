import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const EVERY_MS = 3000;

let write = (line: string): void => void process.stderr.write(`${line}\n`);

/** One line on stderr: what the stack is doing. stdout belongs to the command. */
export function say(text: string): void {
  write(`stack: ${text}`);
}

/** For who draws on the terminal: the lines go to `sink`. */
export function sayThrough(sink: (line: string) => void): void {
  write = sink;
}

/** Says when `work` starts, how far it is every few seconds (the size of `directory`), and how long it took. */
export async function shown<T>(what: string, directory: string | null, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const seconds = () => ((performance.now() - startedAt) / 1000).toFixed(1);
  say(`${what} ...`);
  const timer = setInterval(() => {
    void sizeOf(directory).then((size) => say(`${what}: ${size}${seconds()} s so far`));
  }, EVERY_MS);
  try {
    const result = await work();
    say(`${what}: done in ${seconds()} s`);
    return result;
  } catch (error) {
    say(`${what}: failed after ${seconds()} s`);
    throw error;
  } finally {
    clearInterval(timer);
  }
}

async function sizeOf(directory: string | null): Promise<string> {
  if (directory === null) return '';
  try {
    const { stdout } = await run('du', ['-sk', directory]);
    return `${Math.round(Number.parseInt(stdout, 10) / 1024).toLocaleString('en-US')} MB, `;
  } catch {
    return ''; // files come and go under du; the next line will have the size
  }
}
