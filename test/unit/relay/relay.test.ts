import { expect, test } from 'vitest';
import { systemClock } from '../../../src/model/clock.ts';
import { fault } from '../../../src/model/fault.ts';
import type { Log } from '../../../src/model/log.ts';
import type { RelayDeps } from '../../../src/relay/relay-deps.ts';
import { runRelay } from '../../../src/relay/relay.ts';

const log: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet, child: () => log };

function quiet(): void {
  // Not looked at.
}

/** Told to stop just when leadership is asked for, which ends like this. No server can be made to have a bug of ours. */
function stoppedWhile(error: Error): ReturnType<typeof runRelay> {
  const stop = new AbortController();
  const lead = (): Promise<never> => {
    stop.abort();
    return Promise.reject(error);
  };
  return runRelay({ log, clock: systemClock, store: { lead } } as unknown as RelayDeps, stop.signal);
}

test('a bug that shows while the relay stops is told; a server that is gone is not', async () => {
  expect(await stoppedWhile(new TypeError('undefined is not a function'))).toMatchObject({ code: 'INTERNAL' });
  expect(await stoppedWhile(fault('MYSQL_UNREACHABLE', 'retry', 'gone'))).toBeNull();
});
