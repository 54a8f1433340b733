import type { Duty } from '../model/duty.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import { newRelayStats, type RelayStats } from '../model/stats.ts';
import type { Leader, ServerFacts } from '../model/store.ts';
import { PAUSED, untilPaused } from './pausing.ts';
import type { RelayDeps } from './relay-deps.ts';
import type { Start } from './start-position.ts';
import { takeOverScopes } from './take-over.ts';
import { termParts, type TermParts } from './term-parts.ts';

/** What is on its way when a job asks for a new beginning, or people for a pause, is waited for so long. */
const SOFT_END_MS = 15_000;

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
  readonly #stats: RelayStats;
  readonly #duties: readonly Duty[];
  readonly #parts: TermParts;
  /** Ends reading and sweeping: a stop, a loss, or a fault. */
  readonly #endReading = new AbortController();
  /**
   * Ends everything at once: a loss or a fault. A stop lets what has been read be routed to its end: half a
   * transaction that is sent is sent again by the next start.
   */
  readonly #abandon = new AbortController();
  #fault: Fault | null = null;
  #unusable: Fault | null = null;
  /** A job asks for a new beginning, or people for a pause: the term ends like a stop, and as this. */
  #softEnd: TermEnd | null = null;
  #cancelHardEnd: (() => void) | null = null;

  constructor(deps: RelayDeps, leader: Leader, facts: ServerFacts, start: Pick<Start, 'from' | 'high'>) {
    const { stats = newRelayStats() } = deps;
    this.#deps = deps;
    this.#leader = leader;
    this.#stats = stats;
    this.#duties = deps.duties.map((make) => make(leader, facts));
    this.#parts = termParts({
      ...{ deps: { ...deps, stats }, leader, facts, start },
      abandon: this.#abandon.signal,
      onFault: (fault) => this.#end(fault),
      onResync: (why) => this.#endSoftly({ as: 'again', fault: why, unusable: null }, why),
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
    this.#stats.term = this.#parts.probe;
    /** For rows that the application holds: this process would send them again. A stop does not wait for anybody. */
    const waits = (): boolean => this.#softEnd !== null && !stop.aborted && !this.#abandon.signal.aborted;
    try {
      await this.#takeOver();
      await this.#work(waits);
      if (!this.#abandon.signal.aborted) {
        await this.#parts.sender.drained();
        await this.#parts.flusher.finish(waits);
      }
    } finally {
      stop.removeEventListener('abort', endReading);
      this.#leader.lost.removeEventListener('abort', lost);
      this.#endReading.abort();
      this.#cancelHardEnd?.();
      this.#parts.sender.stop();
      this.#parts.flusher.stop();
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
    const { store, clock, log } = this.#deps;
    const { scopes, topics, heldClaims } = this.#parts;
    if (this.#parts.sweeper === null) return;
    const signal = this.#endReading.signal;
    await heldClaims.release();
    await takeOverScopes({ store, topics, clock, log, scopes, signal });
    await heldClaims.park(signal);
  }

  async #work(waits: () => boolean): Promise<void> {
    const signal = this.#endReading.signal;
    const endsWith = (error: unknown): void => this.#end(faultOf(error));
    const sweeping = this.#parts.sweeper?.run(signal).catch(endsWith);
    const duties = this.#duties.map((duty) => duty.run(signal).catch(endsWith));
    const working = this.#parts.jobs?.run(signal).catch(endsWith);
    const refreshing = this.#parts.topics.keepFresh(signal).catch(endsWith);
    const pausing = this.#pauseWhenAsked(signal).catch(endsWith);
    try {
      const unusable = await this.#parts.reader.run(signal);
      if (unusable !== null) {
        this.#unusable = unusable;
        this.#end({ ...unusable, disposition: 'renew' });
      }
    } catch (error) {
      this.#end(faultOf(error));
    }
    await Promise.all([sweeping, working]);
    await this.#parts.round.finish(waits).catch(endsWith);
    this.#parts.parking.giveUp('the relay stops');
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

  #end(fault: Fault | null): void {
    this.#fault ??= fault;
    this.#endReading.abort();
    this.#abandon.abort();
    this.#parts.sender.stop();
    this.#parts.flusher.stop();
  }
}

function faultOf(error: unknown): Fault {
  if (error instanceof RelayError) return error.fault;
  return { code: 'INTERNAL', disposition: 'halt', detail: 'running a term', cause: error };
}
