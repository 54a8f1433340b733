import { systemClock } from '../model/clock.ts';
import type { Fault } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import { runRelay } from '../relay/relay.ts';
import { createParts } from './parts.ts';

/**
 * The relay for as long as a job takes: where none leads, the command does. It moves live rows too, and neither listens
 * nor removes old rows. Until `stop` is aborted (null), or until a fault that needs a person.
 */
export async function leadForAWhile(settings: Settings, log: Log, stop: AbortSignal): Promise<Fault | null> {
  const parts = createParts(settings, log);
  try {
    return await runRelay({ ...parts, settings, clock: systemClock, log, duties: [] }, stop);
  } finally {
    await parts.close();
  }
}
