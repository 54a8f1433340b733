import { type Clock, pause } from '../model/clock.ts';
import { RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import { Session } from '../store/session.ts';

/** The start goes first: the relay's own connections, and the first records. */
const AFTER_START_MS = 1_000;

/**
 * The short form, for the start of the relay: says once in the log what makes the tail impossible. Only asks, writes
 * nothing; nothing waits for it, and it never rejects.
 */
export async function checkAtStart(settings: Settings, clock: Clock, log: Log, signal: AbortSignal): Promise<void> {
  if (settings.sweep.mode !== 'tail') return;
  await pause(clock, AFTER_START_MS, signal);
  if (signal.aborted) return;
  try {
    const { checkServer } = await import('./check-mysql.ts');
    const session = await Session.open(settings.mysql, log);
    try {
      for (const { severity, stopsTail, check, fact, effect, fix } of (await checkServer(session, settings)).findings) {
        if (severity === 'error' && stopsTail) log.warn('check-finding', { check, fact, effect, fix });
      }
    } finally {
      session.destroy();
    }
  } catch (error) {
    // Whatever it is, the relay has found out by itself, and says it better.
    log.debug('check-not-made', error instanceof RelayError ? { code: error.fault.code } : { err: error });
  }
}
