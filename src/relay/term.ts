import { AckWindow } from '../delivery/ack-window.ts';
import { backOffMs } from '../delivery/back-off.ts';
import { BufferPool } from '../delivery/buffer-pool.ts';
import { parseGtidSet } from '../delivery/gtid-set.ts';
import type { SpareBatches } from '../delivery/lane.ts';
import { type Clock, pause } from '../model/clock.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { type Checkpoint, formatPosition } from '../model/position.ts';
import type { Publisher } from '../model/publisher.ts';
import type { Settings } from '../model/settings.ts';
import type { Source } from '../model/source.ts';
import type { Leader, ServerFacts, Store } from '../model/store.ts';
import { Flusher } from './flusher.ts';
import { LaneSender } from './lane-sender.ts';
import { Router } from './router.ts';
import { RowCompletion } from './row-completion.ts';

const STREAM_BACK_OFF = { baseMs: 100, capMs: 5_000 };
/** A stream that has lived so long was a good one: the next may be begun soon. */
const GOOD_STREAM_MS = 5_000;

/** The outside world, as ports. */
export interface RelayDeps {
  readonly settings: Settings;
  readonly source: Source;
  readonly publisher: Publisher;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}

/** How a term ended: told to stop and everything flushed, leadership lost, or a fault that needs a person. */
export type TermEnd =
  { readonly as: 'stopped' } | { readonly as: 'lost' } | { readonly as: 'halted'; readonly fault: Fault };

/**
 * One term of leadership, from a checkpoint to its end. Lanes, window and buffers live and die with it: what another
 * leader may have sent or another server may have logged must not be mixed with them.
 */
export class Term {
  readonly #deps: RelayDeps;
  readonly #leader: Leader;
  readonly #sender: LaneSender;
  readonly #flusher: Flusher;
  readonly #router: Router;
  /** Ends reading: a stop, a loss, or a fault. */
  readonly #endReading = new AbortController();
  /**
   * Ends everything at once: a loss or a fault. A stop lets what has been read be routed to its end: half a
   * transaction that is sent is sent again by the next start.
   */
  readonly #abandon = new AbortController();
  #fault: Fault | null = null;

  constructor(deps: RelayDeps, leader: Leader, facts: ServerFacts, from: Checkpoint) {
    const { settings, publisher, store, clock, log } = deps;
    this.#deps = deps;
    this.#leader = leader;
    const spare: SpareBatches = [];
    const pool = new BufferPool(settings.relay.maxInFlightBytes, settings.kafka.batchBytes);
    const gtids = from.gtidSet === null || !facts.gtidMode ? null : parseGtidSet(from.gtidSet, facts.flavour);
    const window = new AckWindow(from, gtids);
    const onFault = (fault: Fault): void => this.#end(fault);
    this.#flusher = new Flusher({
      ...{ store, leader, window, clock, log, spare, onFault },
      flushMs: settings.relay.flushMs,
      flushRows: settings.relay.flushRows,
      retires: settings.outboxes.map((outbox) => outbox.retire !== 'keep'),
      high: () => this.#router.routedThrough.position,
    });
    this.#sender = new LaneSender({
      ...{ publisher, leader, clock, log, onFault },
      compression: settings.kafka.compression,
      onAcked: (batch) => this.#flusher.add(batch),
    });
    this.#router = new Router({
      ...{ window, pool, spare, publisher, clock, log, from },
      completion: new RowCompletion(
        store,
        clock,
        log,
        settings.outboxes.map(({ schema, table }) => `${schema}.${table}`),
      ),
      sender: this.#sender,
      flusher: this.#flusher,
      batchRecords: settings.kafka.batchRecords,
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
    try {
      await this.#read();
      if (this.#fault === null && !this.#leader.lost.aborted) {
        await this.#sender.drained();
        await this.#flusher.finish();
      }
    } finally {
      stop.removeEventListener('abort', endReading);
      this.#leader.lost.removeEventListener('abort', lost);
      this.#sender.stop();
      this.#flusher.stop();
    }
    // A fault of our own session (another epoch, another server) is mended by a new term.
    if (this.#leader.lost.aborted || this.#fault?.disposition === 'renew') return { as: 'lost' };
    return this.#fault === null ? { as: 'stopped' } : { as: 'halted', fault: this.#fault };
  }

  /** Reads stream after stream; each begins behind the last transaction routed. */
  async #read(): Promise<void> {
    const { source, settings, clock, log } = this.#deps;
    const signal = this.#endReading.signal;
    const ended = (): boolean => signal.aborted;
    /** Where the stream could not be read last time. */
    let unreadableAt: string | null = null;
    for (let tries = 1; !ended(); tries++) {
      const from = this.#router.routedThrough;
      const beganMs = clock.nowMs();
      let flowing = false;
      try {
        for await (const group of source.stream(from, signal)) {
          if (!flowing) log.info('tail-flowing', { position: formatPosition(from.position) });
          flowing = true;
          await this.#router.route(group, this.#abandon.signal);
          if (ended()) return;
        }
      } catch (error) {
        if (ended()) return;
        const fault = faultOf(error);
        const resumeAt = formatPosition(this.#router.routedThrough.position);
        // Once may be an accident of the wire; twice at one place is what the log holds.
        // Inside a transaction there is no second try: its rows so far would be sent again with each.
        const isUnreadable = fault.code === 'BINLOG_DECODE' && (resumeAt === unreadableAt || this.#router.isInside);
        if (fault.code === 'BINLOG_SERVER_ID_CLASH') {
          // Who reads with our id may be our successor, whose lock was ours until a moment ago: the next ping tells.
          await pause(clock, settings.relay.takeOverMs, signal);
          if (ended()) return;
        }
        if (isUnreadable || (fault.disposition !== 'retry' && fault.disposition !== 'renew')) {
          this.#end({ ...fault, disposition: 'halt' });
          return;
        }
        if (this.#router.isInside) {
          // Its rows so far count for a transaction that will never be whole: the next term begins before it.
          log.warn('tail-lost', { code: fault.code, detail: fault.detail, resumeAt });
          this.#end({ ...fault, disposition: 'renew' });
          return;
        }
        if (fault.code === 'BINLOG_DECODE') unreadableAt = resumeAt;
        log.warn('tail-lost', { code: fault.code, detail: fault.detail, resumeAt });
        if (clock.nowMs() - beganMs >= GOOD_STREAM_MS) tries = 1;
        await pause(clock, backOffMs(STREAM_BACK_OFF, tries, Math.random()), signal);
      }
    }
  }

  #end(fault: Fault | null): void {
    this.#fault ??= fault;
    this.#endReading.abort();
    this.#abandon.abort();
    this.#sender.stop();
    this.#flusher.stop();
  }
}

function faultOf(error: unknown): Fault {
  if (error instanceof RelayError) return error.fault;
  return { code: 'INTERNAL', disposition: 'halt', detail: 'reading the binlog', cause: error };
}
