import { backOffMs } from '../delivery/back-off.ts';
import { type Clock, pause } from '../model/clock.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Leader, Store } from '../model/store.ts';
import type { MakeDuty } from '../model/duty.ts';

const POLL_MS = 1_000;
/** Where the table cannot say so yet: a newer version of the relay has started before `migrate`. */
const MISSING_POLL_MS = 60_000;
const BACK_OFF = { baseMs: 500, capMs: 10_000 };

export interface PausingDeps {
  readonly store: Pick<Store, 'isPaused' | 'serverFacts'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly duties: readonly MakeDuty[];
}

/** Why a term ends hard that people have paused, and whose rows in hand cannot be settled. */
export const PAUSED: Fault = {
  code: 'PAUSED',
  disposition: 'renew',
  detail: 'the relay is to pause, and what is on its way cannot be settled',
};

/**
 * Resolves when people have asked for a pause (`wanted`), or to go on, or when `signal` is aborted. While that cannot be
 * asked it stays as it is. Throws a `RelayError` only when another server answers.
 */
export async function untilPaused(
  wanted: boolean,
  { store, clock, log }: Pick<PausingDeps, 'store' | 'clock' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; !signal.aborted;) {
    let waitMs = POLL_MS;
    try {
      const isPaused = await store.isPaused();
      if (failures > 0) log.info('pause-known', { failures });
      if ((isPaused ?? false) === wanted) return;
      if (isPaused === null) waitMs = MISSING_POLL_MS;
      failures = 0;
    } catch (error) {
      if (!(error instanceof RelayError) || error.fault.code === 'MYSQL_FOREIGN_SERVER') throw error;
      const { code, detail } = error.fault;
      if (++failures === 1) log.warn('pause-unknown', { code, detail });
      waitMs = backOffMs(BACK_OFF, failures, Math.random());
    }
    await pause(clock, waitMs, signal);
  }
}

/** What a leader does while it is paused; until it may go on, or `signal` is aborted. */
export async function rest(deps: PausingDeps, leader: Leader, signal: AbortSignal): Promise<void> {
  const facts = await deps.store.serverFacts();
  const over = new AbortController();
  const end = (): void => over.abort();
  const until = AbortSignal.any([signal, over.signal]);
  const duties = deps.duties.map((make) => make(leader, facts)).filter(({ goesOnWhilePaused }) => goesOnWhilePaused);
  const doing = duties.map(async (duty) => {
    try {
      await duty.run(until);
    } catch (error) {
      end();
      throw error;
    }
  });
  await Promise.all([untilPaused(false, deps, until).finally(end), ...doing]);
}
