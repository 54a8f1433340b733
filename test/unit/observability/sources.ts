import type { Clock } from '../../../src/model/clock.ts';
import type { Log } from '../../../src/model/log.ts';
import type { PendingLimitState, Progress, Surroundings } from '../../../src/model/progress.ts';
import { newServerCounts } from '../../../src/model/server-counts.ts';
import { newRelayStats, type RelayStats, type TermProbe } from '../../../src/model/stats.ts';
import { DatabaseWatch } from '../../../src/observability/database-watch.ts';
import { createMetrics, type Metrics } from '../../../src/observability/metrics.ts';
import { addServerMetrics } from '../../../src/observability/server-metrics.ts';
import { Observer } from '../../../src/observability/observer.ts';

export const OUTBOXES = ['app.outbox', 'app.invoices'];
const at = (offset: number) => ({ file: 'binlog.000007', offset });

/** A term that has done everything, up to `routed`. */
export function termAt(routed: number, over: Partial<TermProbe> = {}): TermProbe {
  return {
    isTailing: true,
    routed: at(routed),
    checkpoint: at(routed),
    high: at(routed),
    pool: { takenBytes: 0, maxBytes: 1_000_000 },
    lanes: { inUse: 1, sending: 0, heldBytes: 0 },
    parked: { pair: 0, 'topic-partition': 0, topic: 0, everything: 0 },
    scopes: () => [],
    window: { openTransactions: 0, oldestCommitMicros: null },
    unflushedRows: 0,
    lockedRows: 0,
    ...over,
  };
}

/** A relay that is only looked at: its counts, its database and its clock are the test's. */
export class Looked {
  nowMs = 1_000_000;
  /** Where the log ends; null: MySQL does not answer. */
  head: number | null = 0;
  oldestPendingMs: number | null = null;
  limits: PendingLimitState[] = [];
  /** What the database says beside. */
  database: Partial<Pick<Progress, 'leader' | 'paused' | 'purge'>> = {};
  surroundings: Partial<Surroundings> = {};
  readonly logged: string[] = [];
  readonly stats: RelayStats = newRelayStats();
  readonly servers = newServerCounts();
  readonly watch: DatabaseWatch;
  readonly observer: Observer;
  readonly metrics: Metrics;

  constructor() {
    const clock: Clock = { nowMs: () => this.nowMs, after: () => () => undefined };
    const say = (event: string, fields: object = {}): void =>
      void this.logged.push(`${event} ${JSON.stringify(fields)}`);
    const log: Log = { debug: say, info: say, warn: say, error: say, child: () => log };
    const reader = { read: () => this.#read(), close: () => undefined };
    this.watch = new DatabaseWatch({ reader, stats: this.stats, clock, onLook: () => undefined });
    const limits = (): readonly PendingLimitState[] => this.limits;
    this.observer = new Observer({ stats: this.stats, watch: this.watch, clock, log, readyLagMs: 60_000, limits });
    const source = { notPending: 0, delayed: 0, replaced: 0 };
    const observed = { observer: this.observer, source, relay: 'orders', version: '1.2.3', outboxes: OUTBOXES };
    this.metrics = createMetrics(observed);
    addServerMetrics(this.metrics.registry, this.servers);
  }

  /** `seconds` later: a look at the database, and at the rest. */
  async after(seconds: number): Promise<ReturnType<Observer['look']>> {
    this.nowMs += seconds * 1_000;
    await this.watch.look();
    return this.observer.look();
  }

  flows(term: TermProbe): void {
    Object.assign(this.stats, { phase: 'flowing', phaseSinceMs: this.nowMs, epoch: 3, term });
  }

  async samples(): Promise<string[]> {
    return (await this.metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  }

  #read(): Promise<Progress> {
    if (this.head === null) return Promise.reject(new Error('no answer'));
    const { oldestPendingMs } = this;
    const none = { nextDelayedInMs: null, processingRows: 0, newestFailedMs: null, newestFailedCode: null };
    const waiting = { pendingRows: 0, oldestPendingMs, delayedRows: 0, failedRows: 0, ...none };
    return Promise.resolve({
      serverMs: Date.now(),
      head: at(this.head),
      ...{ leader: null, paused: null, purge: null, ...this.database },
      outboxes: [waiting, null],
      surroundings: { standbys: null, jobs: [], oldestParkedMs: null, ...this.surroundings },
      ...{ outboxesTookMs: 0, surroundingsTookMs: 0 },
    });
  }
}
