import { ExitCode } from './exit-codes.ts';

/**
 * SIGINT and SIGTERM end the process at once, with `tell` as its last word. Said aloud, because the first process of a
 * container gets no signal that it does not listen for. Returns what takes this back.
 */
export function endOnSignals(tell: () => void): () => void {
  const end = (code: ExitCode): void => {
    // Behind whatever gives the terminal back.
    process.once('exit', tell);
    process.exit(code);
  };
  const onInterrupt = (): void => end(ExitCode.Interrupted);
  const onTerminate = (): void => end(ExitCode.Terminated);
  process.once('SIGINT', onInterrupt).once('SIGTERM', onTerminate);
  return () => void process.off('SIGINT', onInterrupt).off('SIGTERM', onTerminate);
}
