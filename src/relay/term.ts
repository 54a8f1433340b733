import { AckWindow } from '../delivery/ack-window.ts';
import { BufferPool } from '../delivery/buffer-pool.ts';
import { parseGtidSet } from '../delivery/gtid-set.ts';
import { Lane, type SpareBatches } from '../delivery/lane.ts';
import { Scopes } from '../delivery/scopes.ts';
import type { Clock } from '../model/clock.ts';
import type { Duty, MakeDuty } from '../model/duty.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import type { Jobs } from '../model/job.ts';
import type { Log } from '../model/log.ts';
import { comparePositions, type Position } from '../model/position.ts';
import type { Publisher } from '../model/publisher.ts';
import type { Settings } from '../model/settings.ts';
import type { Source } from '../model/source.ts';
import { newRelayStats, type RelayStats, type TermProbe } from '../model/stats.ts';
import type { Leader, ServerFacts, Store } from '../model/store.ts';
import { Claims } from './claimed-rows.ts';
import { DeadLetters } from './dead-letters.ts';
import { Flusher } from './flusher.ts';
import { JobRunner } from './job-runner.ts';
import { LaneSender } from './lane-sender.ts';
import { Parking } from './parking.ts';
import { PAUSED, untilPaused } from './pausing.ts';
import { PayloadCheck } from './payload-check.ts';
import { Reader } from './reader.ts';
import { ReplayChunk } from './replay-chunk.ts';
import { SweptRows } from './replayed-rows.ts';
import { Router } from './router.ts';
import { RowCompletion } from './row-completion.ts';
import { RowVerdicts } from './row-verdicts.ts';
import { SentRows } from './sent-rows.ts';
import { Settlement } from './settlement.ts';
import type { Start } from './start-position.ts';
import { SweepPass } from './sweep-pass.ts';
import { SweepRound } from './sweep-round.ts';
import { Sweeper } from './sweeper.ts';
import { takeOverScopes } from './take-over.ts';
import { probeOf } from './term-probe.ts';
import { Topics } from './topics.ts';
import { Turns } from './turns.ts';

/** Part of the pool that a lane which cannot deliver, or a hand-over, may hold. */
const POOL_PART = 4;
/** What is on its way when a job asks for a new beginning, or people for a pause, is waited for so long. */
const SOFT_END_MS = 15_000;

/** The outside world, as ports. */
export interface RelayDeps {
  readonly settings: Settings;
  readonly source: Source;
  readonly publisher: Publisher;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** What is counted goes there. */
  readonly stats?: RelayStats;
  readonly duties: readonly MakeDuty[];
  /** What people ask for. */
  readonly jobs?: Jobs;
  /** Of this process. */
  readonly sentRows?: SentRows;
}

/**
 * How a term ended: told to stop, or to pause, and everything flushed; leadership lost; a fault that a new term mends
 * (`unusable`: the checkpoint is of no use to it); or a fault that needs a person.
 */
export type TermEnd =
  | { readonly as: 'stopped' }
  | { readonly as: 'paused' }
  | { readonly as: 'lost' }
  | { readonly as: 'again'; readonly fault: Fault; readonly unusable: Fault | null }
  | { readonly as: 'halted'; readonly fault: Fault };

/**
 * One term of leadership, from a checkpoint to its end. Lanes, window, scopes and buffers live and die with it: what
 * another leader may have sent or another server may have logged must not be mixed with them.
 */
export class Term {
  readonly #deps: RelayDeps;
  readonly #leader: Leader;
  readonly #scopes: Scopes;
  readonly #topics: Topics;
  readonly #parking: Parking;
  readonly #sender: LaneSender;
  readonly #flusher: Flusher;
  readonly #router: Router;
  readonly #reader: Reader;
  readonly #round: SweepRound;
  readonly #sweeper: Sweeper | null;
  readonly #duties: readonly Duty[];
  readonly #jobs: JobRunner | null;
  /** Ends reading and sweeping: a stop, a loss, or a fault. */
  readonly #endReading = new AbortController();
  /**
   * Ends everything at once: a loss or a fault. A stop lets what has been read be routed to its end: half a
   * transaction that is sent is sent again by the next start.
   */
  readonly #abandon = new AbortController();
  readonly #stats: RelayStats;
  readonly #probe: TermProbe;
  #fault: Fault | null = null;
  #unusable: Fault | null = null;
  /** A job asks for a new beginning, or people for a pause: the term ends like a stop, and as this. */
  #softEnd: TermEnd | null = null;
  #cancelHardEnd: (() => void) | null = null;
  /** Head of the last pass of the sweep, and what earlier leaders may have sent. */
  #high: Position;

  constructor(deps: RelayDeps, leader: Leader, facts: ServerFacts, { from, high }: Pick<Start, 'from' | 'high'>) {
    const { settings, publisher, store, clock, log, stats = newRelayStats() } = deps;
    this.#stats = stats;
    this.#deps = deps;
    this.#leader = leader;
    this.#duties = deps.duties.map((make) => make(leader, facts));
    this.#high = high;
    const { maxInFlightBytes, laneStallMs } = settings.relay;
    const keeps = settings.outboxes.map((outbox) => outbox.retire === 'keep');
    const tables = settings.outboxes.map(({ schema, table }) => `${schema}.${table}`);
    const spare: SpareBatches = [];
    const pool = new BufferPool(maxInFlightBytes, settings.kafka.batchBytes);
    const gtids = from.gtidSet === null || !facts.gtidMode ? null : parseGtidSet(from.gtidSet, facts.flavour);
    const window = new AckWindow(from, gtids);
    const onFault = (fault: Fault): void => this.#end(fault);
    const isTailing = (): boolean => this.#reader.isTailing;
    const { backOffMs: baseMs, backOffCapMs: capMs, deadLetterTopic } = settings.failures;
    const scopes = (this.#scopes = new Scopes({ baseMs, capMs }));
    const claims = new Claims();
    const swept = new SweptRows(claims);
    const turns = new Turns();
    const topics = (this.#topics = new Topics({
      ...{ publisher, clock, log, patienceMs: laneStallMs },
      makeLane: (topic, partition) => new Lane(topic, partition, pool, spare, settings.kafka.batchRecords),
    }));
    const flusher = (this.#flusher = new Flusher({
      ...{ store, leader, window, clock, log, spare, onFault, scopes, stats },
      flushMs: settings.relay.flushMs,
      flushRows: settings.relay.flushRows,
      retires: keeps.map((keep) => !keep),
      high: () => this.#highest(),
    }));
    const sent = deps.sentRows ?? new SentRows(clock);
    const settlement = new Settlement(window, flusher, swept, sent, spare, clock, stats);
    const parking = (this.#parking = new Parking({
      ...{ scopes, topics, settlement, clock, log, keeps, stats },
      maxHeldBytes: maxInFlightBytes / POOL_PART,
      onParked: () => {
        this.#flusher.wake();
        this.#sweeper?.wake();
      },
    }));
    const deadLetters =
      deadLetterTopic === null
        ? null
        : new DeadLetters({ publisher, clock, log, leader, topic: deadLetterTopic, outboxes: tables });
    const verdicts = new RowVerdicts({
      settings: settings.failures,
      deadLetters,
      log,
      tables,
      stats,
      waitingSinceMs: (topic, key, id) => parking.waitingSinceMs(topic, key, id),
      isReplaying: () => swept.isReplaying,
    });
    const sender = (this.#sender = new LaneSender({
      ...{ publisher, leader, clock, log, onFault, laneStallMs, settlement, parking, verdicts, stats },
      compression: settings.kafka.compression,
      maxStuckBytes: maxInFlightBytes / POOL_PART,
    }));
    const payloads = new PayloadCheck(settings.outboxes.map((outbox) => outbox.validateJson));
    const completion = new RowCompletion(store, clock, log, tables, stats);
    const router = (this.#router = new Router({
      ...{
        window,
        pool,
        topics,
        parking,
        sender,
        flusher,
        verdicts,
        payloads,
        completion,
        stats,
        clock,
        log,
        keeps,
        from,
        high,
      },
    }));
    const canSweep = keeps.includes(false);
    this.#reader = new Reader({
      ...{ source: deps.source, router, parking, clock, log, stats, canSweep },
      serverUuid: facts.serverUuid,
      keepsSome: keeps.includes(true),
      mode: settings.sweep.mode,
      takeOverMs: settings.relay.takeOverMs,
      abandon: this.#abandon.signal,
    });
    const round = (this.#round = new SweepRound({
      ...{
        store,
        leader,
        claims,
        topics,
        parking,
        sender,
        flusher,
        router,
        verdicts,
        payloads,
        pool,
        clock,
        isTailing,
      },
      noteHigh: (head) => (this.#high = further(this.#high, head)),
      abandon: this.#abandon.signal,
    }));
    const { batchRows } = settings.sweep;
    const pass = new SweepPass({ store, parking, topics, round, clock, batchRows, keeps });
    this.#sweeper = canSweep
      ? new Sweeper({
          ...{
            store,
            leader,
            scopes,
            topics,
            parking,
            sender,
            flusher,
            router,
            pass,
            turns,
            clock,
            log,
            keeps,
            isTailing,
          },
          ...{ settings: settings.sweep, stats },
          high: () => this.#high,
        })
      : null;
    const { jobs } = deps;
    this.#jobs =
      jobs === undefined
        ? null
        : new JobRunner({
            ...{ jobs, leader, turns, clock, log, tables, isTailing },
            chunk: new ReplayChunk({
              ...{ jobs, store, scopes, parking, topics, sender, router, swept, pool, stats, keeps, isTailing },
              abandon: this.#abandon.signal,
            }),
            isReconciled: () => !scopes.hasEverything && comparePositions(router.routedThrough.position, high) >= 0,
            onResync: (why) => this.#endSoftly({ as: 'again', fault: why, unusable: null }, why),
          });
    this.#probe = probeOf({
      clock,
      window,
      pool,
      scopes,
      topics,
      router,
      flusher,
      isTailing,
      high: () => this.#highest(),
    });
  }

  /** Runs until `stop` is aborted and everything on its way is settled and flushed, or the term ends otherwise. */
  async run(stop: AbortSignal): Promise<TermEnd> {
    const endReading = (): void => this.#endReading.abort();
    const lost = (): void => this.#end(null);
    stop.addEventListener('abort', endReading, { once: true });
    this.#leader.lost.addEventListener('abort', lost, { once: true });
    if (stop.aborted) endReading();
    if (this.#leader.lost.aborted) lost();
    this.#stats.term = this.#probe;
    /** For rows that the application holds: this process would send them again. A stop does not wait for anybody. */
    const waits = (): boolean => this.#softEnd !== null && !stop.aborted && !this.#abandon.signal.aborted;
    try {
      await this.#takeOver();
      await this.#work(waits);
      if (!this.#abandon.signal.aborted) {
        await this.#sender.drained();
        await this.#flusher.finish(waits);
      }
    } finally {
      stop.removeEventListener('abort', endReading);
      this.#leader.lost.removeEventListener('abort', lost);
      this.#endReading.abort();
      this.#cancelHardEnd?.();
      this.#sender.stop();
      this.#flusher.stop();
      this.#stats.term = null;
    }
    if (this.#leader.lost.aborted) return { as: 'lost' };
    const fault = this.#fault;
    if (fault === null) return (stop.aborted ? null : this.#softEnd) ?? { as: 'stopped' };
    // A fault of our own session (another epoch, another server, an unusable position) is mended by a new term, and so is
    // one that passes.
    if (fault.disposition === 'renew' || fault.disposition === 'retry')
      return { as: 'again', fault, unusable: this.#unusable };
    return { as: 'halted', fault };
  }

  /** What leaders before this one left: claims are rows that wait again, parked scopes go on waiting. */
  async #takeOver(): Promise<void> {
    const { store, publisher, clock, log } = this.#deps;
    if (this.#sweeper === null) return;
    const claims = await store.releaseClaims(this.#leader);
    if (claims > 0) log.info('claims-released', { rows: claims });
    await takeOverScopes({ store, publisher, clock, log, scopes: this.#scopes });
  }

  async #work(waits: () => boolean): Promise<void> {
    const signal = this.#endReading.signal;
    const endsWith = (error: unknown): void => this.#end(faultOf(error));
    const sweeping = this.#sweeper?.run(signal).catch(endsWith);
    const duties = this.#duties.map((duty) => duty.run(signal).catch(endsWith));
    const working = this.#jobs?.run(signal).catch(endsWith);
    const refreshing = this.#topics.keepFresh(signal).catch(endsWith);
    const pausing = this.#pauseWhenAsked(signal).catch(endsWith);
    try {
      const unusable = await this.#reader.run(signal);
      if (unusable !== null) {
        this.#unusable = unusable;
        this.#end({ ...unusable, disposition: 'renew' });
      }
    } catch (error) {
      this.#end(faultOf(error));
    }
    await Promise.all([sweeping, working]);
    await this.#round.finish(waits).catch(endsWith);
    this.#parking.giveUp('the relay stops');
    await Promise.all([refreshing, pausing, ...duties]);
  }

  async #pauseWhenAsked(signal: AbortSignal): Promise<void> {
    await untilPaused(true, this.#deps, signal);
    if (signal.aborted) return;
    this.#deps.log.info('pause-asked-for');
    this.#endSoftly({ as: 'paused' }, PAUSED);
  }

  /** What is on its way is settled and flushed first: nothing of it is sent again. `hard`: where that takes too long. */
  #endSoftly(as: TermEnd, hard: Fault): void {
    if (this.#softEnd !== null) return;
    this.#softEnd = as;
    this.#endReading.abort();
    this.#cancelHardEnd = this.#deps.clock.after(SOFT_END_MS, () => this.#end(hard));
  }

  #highest(): Position {
    return further(this.#high, this.#router.routedThrough.position);
  }

  #end(fault: Fault | null): void {
    this.#fault ??= fault;
    this.#endReading.abort();
    this.#abandon.abort();
    this.#sender.stop();
    this.#flusher.stop();
  }
}

function further(a: Position, b: Position): Position {
  return comparePositions(a, b) >= 0 ? a : b;
}

function faultOf(error: unknown): Fault {
  if (error instanceof RelayError) return error.fault;
  return { code: 'INTERNAL', disposition: 'halt', detail: 'running a term', cause: error };
}
