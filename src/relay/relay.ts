import { backOffMs } from '../delivery/back-off.ts';
import { isAborted, pause } from '../model/clock.ts';
import { type Fault, type FaultCode, RelayError } from '../model/fault.ts';
import { count, newRelayStats, noteError, type RelayPhase, type RelayStats } from '../model/stats.ts';
import type { Leader } from '../model/store.ts';
import { rest } from './pausing.ts';
import type { RelayDeps } from './relay-deps.ts';
import { SentRows } from './sent-rows.ts';
import { startPosition } from './start-position.ts';
import { Term, type TermEnd } from './term.ts';

/*
 * The relay, as a machine. Who moves it:
 *
 *   starting ──▶ standby ──▶ leading ──▶ flowing ──▶ stopping ──▶ stopped
 *                  ▲  ▲         │ │      │  │  │
 *                  │  └─────────┴─┼──────┘  │  │ fault that needs a person
 *                  │  leadership  │         │  ▼
 *                  │     lost     ▼         │ halted
 *                  └────────── paused ◀─────┘
 *                              people ask for it, and to go on
 *
 *   starting   nothing is known of MySQL yet; unreachable = try again with back-off
 *   standby    another relay of this name holds the lock; it is asked for until it is ours
 *   leading    the lock is ours and the epoch is taken: read or choose the start position, connect to Kafka
 *   flowing    one `Term`: the source is read (a lost stream is begun again behind the last transaction routed), rows
 *              go into lanes, lanes send, the flusher retires rows and saves the checkpoint
 *   paused     people have asked for it (`cdc-relay pause`): the term has ended like a stop, or none has begun; nothing is
 *              read, sent or marked. Lock and epoch are kept until people ask to go on: then leadership is given back
 *              and taken anew, so that nothing of the term before can be mixed with the next
 *   stopping   reading has ended; lanes drain, the last flush is made, the lock is given back
 *   halted     the fault is told, nothing more is sent or written; the checkpoint stands before the cause
 *
 * `stop` (the first signal) moves every state to stopping. Losing the lock or a compare-and-set ends the term at once
 * and everything that was in hand with it; the next term begins at the saved checkpoint (its repeats are duplicates
 * after a fault). Only this file changes the state.
 */
export type RelayState = RelayPhase;

const BACK_OFF = { baseMs: 200, capMs: 5_000 };

/** Runs until `stop` is aborted (returns null), or until a fault that the relay cannot mend (returns it). */
export async function runRelay(deps: RelayDeps, stop: AbortSignal): Promise<Fault | null> {
  const { log, clock } = deps;
  const stats = deps.stats ?? newRelayStats();
  let state: RelayState = 'starting';
  stats.phaseSinceMs = clock.nowMs();
  const enter = (next: RelayState, fields: Record<string, unknown> = {}): void => {
    if (next === state) return;
    log.info('relay-state', { from: state, to: next, ...fields });
    state = stats.phase = next;
    stats.phaseSinceMs = clock.nowMs();
    if (next === 'flowing' || next === 'paused') stats.fault = null;
  };
  const noteFault = (code: FaultCode): void => {
    stats.fault = code;
    noteError(stats, code, clock.nowMs());
  };
  stop.addEventListener('abort', () => enter('stopping'), { once: true });
  /** Why the saved checkpoint is of no use; told by the term that found out. */
  let unusable: Fault | null = null;
  const sentRows = deps.sentRows ?? new SentRows(clock);
  for (let tries = 1; ; tries++) {
    try {
      const end = await lead({ ...deps, stats, sentRows }, stop, enter, unusable);
      unusable = end.as === 'again' ? end.unusable : null;
      if (end.as === 'resumed') {
        log.info('resumed');
        tries = 0;
        continue;
      }
      if (end.as === 'stopped') {
        enter('stopped');
        return null;
      }
      if (end.as === 'halted') {
        noteFault(end.fault.code);
        enter('halted', { code: end.fault.code });
        return end.fault;
      }
      const why = end.as === 'again' ? end.fault.code : 'LEADERSHIP_LOST';
      noteFault(why);
      count(stats.termsEnded, why);
      if (end.as === 'again') log.warn('term-ended', { code: end.fault.code, detail: end.fault.detail });
      else log.warn('leadership-lost');
      tries = 0;
      await pause(clock, BACK_OFF.baseMs, stop);
    } catch (error) {
      const fault: Fault =
        error instanceof RelayError
          ? error.fault
          : { code: 'INTERNAL', disposition: 'halt', detail: 'running the relay', cause: error };
      // What a server says now changes nothing; a bug of ours is told whenever it shows.
      if (stop.aborted && fault.code !== 'INTERNAL') {
        enter('stopped');
        return null;
      }
      noteFault(fault.code);
      if (fault.disposition !== 'retry' && fault.disposition !== 'renew') {
        enter('halted', { code: fault.code });
        return fault;
      }
      if (tries === 1) log.warn('relay-waits', { code: fault.code, detail: fault.detail });
      await pause(clock, backOffMs(BACK_OFF, tries, Math.random()), stop);
    }
  }
}

type Deps = RelayDeps & { readonly stats: RelayStats; readonly sentRows: SentRows };
type Enter = (next: RelayState, fields?: Record<string, unknown>) => void;
type LeadEnd = Exclude<TermEnd, { readonly as: 'paused' }> | { readonly as: 'resumed' };

/** Waits for the lock, and leads: one term, and when people ask for it a rest behind it, or instead. */
async function lead(deps: Deps, stop: AbortSignal, enter: Enter, unusable: Fault | null): Promise<LeadEnd> {
  const { store, stats } = deps;
  if (stop.aborted) return { as: 'stopped' };
  const leader = await store.lead(stop, () => enter('standby'));
  try {
    enter('leading', { epoch: leader.epoch });
    stats.epoch = leader.epoch;
    if ((await store.isPaused()) !== true) {
      const end = await term(deps, leader, stop, enter, unusable);
      if (end.as !== 'paused') return end;
    }
    if (isAborted(stop)) return { as: 'stopped' };
    await store.rested(leader);
    enter('paused');
    await rest(deps, leader, AbortSignal.any([stop, leader.lost]));
    if (isAborted(stop)) return { as: 'stopped' };
    return leader.lost.aborted ? { as: 'lost' } : { as: 'resumed' };
  } finally {
    stats.epoch = null;
    await leader.release();
  }
}

async function term(
  deps: Deps,
  leader: Leader,
  stop: AbortSignal,
  enter: Enter,
  unusable: Fault | null,
): Promise<TermEnd> {
  const { store, publisher, settings, log, stats, jobs, sentRows } = deps;
  const [facts] = await Promise.all([store.serverFacts(), publisher.connect(stop)]);
  const start = await startPosition(
    { store, leader, facts, settings, log, ...(jobs === undefined ? {} : { jobs }) },
    unusable,
  );
  await sentRows.compare({ store, facts, outboxes: settings.outboxes, abandoned: start.abandoned, log, stats });
  enter('flowing', { server: facts.serverUuid, version: facts.version });
  return await new Term(deps, leader, facts, start).run(stop);
}
