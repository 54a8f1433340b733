import { checkAtStart } from '../check/at-start.ts';
import { PendingLimits } from '../limits/pending-limits.ts';
import { systemClock } from '../model/clock.ts';
import type { MakeDuty } from '../model/duty.ts';
import type { Fault, FaultCode } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import { runRelay } from '../relay/relay.ts';
import { Retention } from '../retention/retention.ts';
import type { CommandBody } from './command.ts';
import { ExitCode } from './exit-codes.ts';
import { type LimitsPlace, observe } from './observation.ts';
import { createParts } from './parts.ts';
import { problemOf } from './problem.ts';

/** Moves rows until it is stopped. */
export const run: CommandBody = async ({ settings, log }) => {
  const fault = await runUntilStopped(settings, log);
  if (fault === null) return ExitCode.Good;
  log.error('relay-halted', { code: fault.code, detail: fault.detail });
  const fix = LOST_POSITION.has(fault.code) ? { fix: WHERE_TO_GO_ON } : {};
  return problemOf(fault, settings, {
    effect: 'nothing more is sent; the checkpoint stands before the cause, no row is lost',
    ...fix,
  });
};

/** Where rows have a status the relay goes on by itself. */
const LOST_POSITION: ReadonlySet<FaultCode> = new Set<FaultCode>(['BINLOG_POSITION_UNUSABLE', 'MYSQL_FOREIGN_SERVER']);
const WHERE_TO_GO_ON = `cdc-relay resync --from-position <file:offset> sends again from there; --from-head leaves out what was not read
(docs/recovery.md, outboxes that are only kept); at a first start: another start in the configuration`;

/**
 * Runs the relay until a signal or a fault that needs a person; resolves with that fault, or null after a soft stop.
 * The first SIGTERM or SIGINT stops softly; the second, or `shutdownMs` after the first, ends the process at once with
 * 1: what was not flushed is sent again by the next start.
 */
async function runUntilStopped(settings: Settings, log: Log): Promise<Fault | null> {
  const stop = new AbortController();
  const parts = createParts(settings, log);
  const limits: LimitsPlace = { current: null };
  const { mysql } = parts.servers;
  const more = { settings, clock: systemClock, log };
  const duties: MakeDuty[] = [
    (leader, { serverUuid }) => new Retention({ ...more, leader, serverUuid, counts: mysql.retention }),
    (leader, { serverUuid }) =>
      (limits.current = new PendingLimits({ ...more, leader, serverUuid, counts: mysql.limits })),
  ];
  const endAtOnce = (why: string): never => {
    log.error('stopped-hard', { why, effect: 'rows sent and not flushed are sent again at the next start' });
    // The promise of a second signal: nothing may hold the process.
    process.exit(1);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) endAtOnce(`second signal (${signal})`);
    log.info('stop-requested', { signal, shutdownMs: settings.relay.shutdownMs });
    stop.abort();
    setTimeout(
      () => endAtOnce(`not drained within ${settings.relay.shutdownMs} ms`),
      settings.relay.shutdownMs,
    ).unref();
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  log.info('relay-started', { name: settings.relay.name, pid: process.pid });
  const observed = await observe({ ...parts, settings, log, limits });
  try {
    const { stats, store, publisher } = observed;
    const clock = systemClock;
    void checkAtStart(settings, clock, log, stop.signal);
    return await runRelay({ ...parts, settings, publisher, store, clock, log, duties, stats }, stop.signal);
  } finally {
    await observed.stop();
    await parts.close();
    process.off('SIGTERM', onSignal);
    process.off('SIGINT', onSignal);
  }
}
