import { parseArgs } from 'node:util';
import pc from 'picocolors';
import { isGood } from './audit.ts';
import { PlainScreen } from './plain-screen.ts';
import type { Screen } from './screen.ts';
import { runShow } from './show.ts';
import { TerminalScreen } from './terminal-screen.ts';
import { verdict } from './verdict.ts';

/** `npm run demo`: an order service, a relay that is killed twice, a Kafka that goes away, and an audit at the end. */
const DEFAULT_SECONDS = 26;
const CLEAN_UP_MS = 5000;

const seconds = readSeconds();
const screen = screenFor(process.stdout);
const owned = new AsyncDisposableStack();
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    interrupted.abort();
    void end(130, 'interrupted: the servers are ended');
  });
}

try {
  const outcome = await runShow(screen, owned, seconds * 1000);
  screen.result(verdict(outcome.audit, outcome.ledger, outcome.spans));
  const { audit, relayFailure } = outcome;
  await end(isGood(audit) && relayFailure === null ? 0 : 1, relayFailure ?? undefined);
} catch (error) {
  // After an interruption everything fails, and that is no news.
  if (!interrupted.signal.aborted) await end(1, `demo: ${error instanceof Error ? error.message : String(error)}`);
}

function readSeconds(): number {
  try {
    const { values } = parseArgs({ options: { seconds: { type: 'string', default: String(DEFAULT_SECONDS) } } });
    const seconds = Number(values.seconds);
    if (Number.isSafeInteger(seconds) && seconds > 0) return seconds;
  } catch {
    // an option that there is not
  }
  process.stderr.write('npm run demo [-- --seconds N]: for so long the order service works; a whole number above 0\n');
  process.exit(2);
}

function screenFor(out: NodeJS.WriteStream): Screen {
  const isTerminal = out.isTTY && process.env['TERM'] !== 'dumb';
  if (!isTerminal) return new PlainScreen((line) => void out.write(`${line}\n`));
  return new TerminalScreen(out, pc.createColors(pc.isColorSupported));
}

/** Ends the servers and the process; what does not end in time is ended with the process. */
async function end(code: number, message?: string): Promise<never> {
  screen.close();
  if (message !== undefined) process.stderr.write(`${message}\n`);
  await Promise.race([
    owned.disposeAsync().catch(() => undefined),
    new Promise((done) => setTimeout(done, CLEAN_UP_MS)),
  ]);
  process.exit(code);
}
