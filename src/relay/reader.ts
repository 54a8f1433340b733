import { backOffMs } from '../delivery/back-off.ts';
import { type Clock, isAborted, pause } from '../model/clock.ts';
import { type Fault, type FaultCode, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { formatPosition } from '../model/position.ts';
import type { SweepSettings } from '../model/settings.ts';
import type { Source } from '../model/source.ts';
import { count, noteError, type RelayStats } from '../model/stats.ts';
import type { Parking } from './parking.ts';
import type { Router } from './router.ts';

const BACK_OFF = { baseMs: 100, capMs: 5_000 };
/** A stream that has lived so long was a good one: the next may be begun soon. */
const GOOD_STREAM_MS = 5_000;
/** While rows go by the sweep alone: how often the binlog is tried. */
const SWEEP_ONLY_RETRY_MS = 10_000;
/** Where the binlog cannot be read, and the tables can. */
const UNREADABLE: ReadonlySet<FaultCode> = new Set<FaultCode>([
  'BINLOG_DISABLED',
  'BINLOG_NOT_PERMITTED',
  'BINLOG_UNSUPPORTED',
]);

export interface ReaderDeps {
  readonly source: Source;
  readonly router: Router;
  readonly parking: Parking;
  readonly clock: Clock;
  readonly log: Log;
  /** Whose log it is. */
  readonly serverUuid: string;
  readonly stats: RelayStats;
  readonly mode: SweepSettings['mode'];
  /** Some outbox can be swept. */
  readonly canSweep: boolean;
  /** Some outbox is only kept: what is not read of it is lost. */
  readonly keepsSome: boolean;
  readonly takeOverMs: number;
  /** Ends the routing of what has been read. */
  readonly abandon: AbortSignal;
}

/**
 * Reads stream after stream; each begins behind the last transaction routed. Where the binlog cannot be read everything
 * is parked and goes by the sweep, until it can.
 */
export class Reader {
  readonly #deps: ReaderDeps;
  #isTailing: boolean;
  /** Where the stream could not be decoded, and how often. */
  #undecoded: { readonly at: string; times: number } | null = null;

  constructor(deps: ReaderDeps) {
    this.#deps = deps;
    this.#isTailing = deps.mode === 'tail';
  }

  /** False: rows go by the sweep alone. */
  get isTailing(): boolean {
    return this.#isTailing;
  }

  /**
   * Until `signal` is aborted (null), or until the position turns out to be of no use (why). Throws a `RelayError` for
   * what a new term, or a person, must mend.
   */
  async run(signal: AbortSignal): Promise<Fault | null> {
    const { clock, log, mode } = this.#deps;
    if (mode === 'sweep') {
      this.#parkEverything('SWEEP_MODE');
      await aborted(signal);
      return null;
    }
    for (let tries = 1; ; tries++) {
      const beganMs = clock.nowMs();
      const fault = await this.#stream(signal);
      if (signal.aborted || fault === null) return null;
      const resumeAt = formatPosition(this.#deps.router.routedThrough.position);
      count(this.#deps.stats.streamsLost, fault.code);
      noteError(this.#deps.stats, fault.code, clock.nowMs());
      if (fault.code === 'BINLOG_SERVER_ID_CLASH') {
        // Who reads with our id may be our successor, whose lock was ours until a moment ago: the next ping tells.
        await pause(clock, this.#deps.takeOverMs, signal);
        if (isAborted(signal)) return null;
      }
      const verdict = this.#judge(fault, resumeAt);
      if (verdict === 'unusable') return fault;
      if (verdict === 'sweep only') {
        this.#sweepOnly(fault);
        await pause(clock, SWEEP_ONLY_RETRY_MS, signal);
        continue;
      }
      log.warn('tail-lost', { code: fault.code, detail: fault.detail, resumeAt });
      // Its rows so far count for a transaction that will never be whole: the next term begins before it.
      if (this.#deps.router.isInside) throw new RelayError({ ...fault, disposition: 'renew' });
      if (clock.nowMs() - beganMs >= GOOD_STREAM_MS) tries = 1;
      await pause(clock, backOffMs(BACK_OFF, tries, Math.random()), signal);
    }
  }

  /** One stream to its end. */
  async #stream(signal: AbortSignal): Promise<Fault | null> {
    const { source, router, abandon, log, serverUuid } = this.#deps;
    const from = router.routedThrough;
    const isTolerant = this.#undecoded?.at === formatPosition(from.position);
    let isFlowing = false;
    try {
      for await (const group of source.stream(from, signal, isTolerant, serverUuid)) {
        if (!isFlowing) {
          log.info('tail-flowing', { position: formatPosition(from.position) });
          isFlowing = this.#isTailing = true;
        }
        await router.route(group, abandon);
        if (signal.aborted) return null;
      }
      return null;
    } catch (error) {
      if (error instanceof RelayError) return error.fault;
      throw error;
    }
  }

  #judge(fault: Fault, resumeAt: string): 'again' | 'sweep only' | 'unusable' {
    const { router, canSweep, keepsSome } = this.#deps;
    if (fault.code === 'BINLOG_DECODE') {
      // Once may be an accident of the wire; twice at one place is what the log holds: it is passed over.
      // Inside a transaction there is no second try: its rows so far would be sent again with each.
      const times = this.#undecoded?.at === resumeAt ? this.#undecoded.times + 1 : 1;
      this.#undecoded = { at: resumeAt, times };
      if (times === 1 && !router.isInside) return 'again';
      if (keepsSome) throw new RelayError({ ...fault, disposition: 'halt' });
      return times > 2 || router.isInside ? 'unusable' : 'again';
    }
    // Nothing of what is in hand says anything about the rows of another server (S1).
    if (fault.code === 'MYSQL_FOREIGN_SERVER') throw new RelayError(fault);
    if (fault.disposition === 'retry' || fault.disposition === 'renew') return 'again';
    if (!canSweep || keepsSome) throw new RelayError({ ...fault, disposition: 'halt' });
    if (fault.code === 'BINLOG_POSITION_UNUSABLE') return 'unusable';
    if (UNREADABLE.has(fault.code) && !router.isInside) return 'sweep only';
    throw new RelayError({ ...fault, disposition: 'halt' });
  }

  #sweepOnly({ code, detail }: Fault): void {
    if (!this.#isTailing) return;
    this.#isTailing = false;
    this.#deps.log.error('sweep-only', {
      code,
      detail,
      effect: 'every row goes by the sweep until the binlog can be read',
    });
    this.#parkEverything(code);
    this.#deps.router.noLongerFed();
  }

  #parkEverything(reason: string): void {
    this.#deps.parking.park({ kind: 'everything' }, { reason, dueInMs: 0 });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
