import { createInterface } from 'node:readline/promises';
import { terminalText } from '../model/terminal-text.ts';
import type { Options } from './option-values.ts';
import { usageError } from './problem.ts';

/**
 * Asks before something is done that cannot be taken back; true when it may be done. Without a terminal nobody can
 * answer: `--yes` must have been given (else exit code 2).
 */
export async function confirmed(options: Options, what: string): Promise<boolean> {
  if (options['yes'] === true) return true;
  if (!process.stdin.isTTY)
    throw usageError(`${what}: there is no terminal to ask on`, '--yes, or look first: --dry-run');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(terminalText(`${what}? [y/N] `))).trim());
  } finally {
    terminal.close();
  }
}
