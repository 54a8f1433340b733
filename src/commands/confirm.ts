import { createInterface } from 'node:readline/promises';
import { terminalText } from '../model/terminal-text.ts';
import { ExitCode } from './exit-codes.ts';
import type { Options } from './option-values.ts';
import { ProblemError, usageError } from './problem.ts';

/**
 * Asks before something is done that cannot be taken back; true when it may be done. Without a terminal nobody can
 * answer: `--yes` must have been given (else exit code 2). Ctrl-C is no answer (exit code 130), Ctrl-D is a no.
 */
export async function confirmed(options: Options, what: string): Promise<boolean> {
  if (options['yes'] === true) return true;
  if (!process.stdin.isTTY)
    throw usageError(`${what}: there is no terminal to ask on`, '--yes, or look first: --dry-run');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const [interrupted, left] = [new AbortController(), new AbortController()];
  // While a line is read the terminal makes no signal of Ctrl-C.
  terminal.once('SIGINT', () => interrupted.abort());
  // A terminal that is closed would leave the question open for ever.
  terminal.once('close', () => left.abort());
  try {
    const answer = await terminal.question(terminalText(`${what}? [y/N] `), {
      signal: AbortSignal.any([interrupted.signal, left.signal]),
    });
    return /^y(es)?$/i.test(answer.trim());
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    process.stderr.write('\n');
    if (interrupted.signal.aborted)
      throw new ProblemError({ exitCode: ExitCode.Interrupted, headline: 'interrupted: nothing was done' });
    return false;
  } finally {
    terminal.close();
  }
}
