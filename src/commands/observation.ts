import type { BinlogSource } from '../binlog/binlog-source.ts';
import { systemClock as clock } from '../model/clock.ts';
import type { FaultCode } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { PendingLimitState } from '../model/progress.ts';
import type { Publisher } from '../model/publisher.ts';
import type { ServerCounts } from '../model/server-counts.ts';
import type { Settings } from '../model/settings.ts';
import { ackedRows, newRelayStats, noteError, type RelayStats } from '../model/stats.ts';
import type { Store } from '../model/store.ts';
import { createProgressReader } from '../store/progress-reader.ts';
import { version } from './version.ts';

/** The limits of the term under way, whoever keeps them. */
export interface LimitsPlace {
  current: { readonly state: readonly PendingLimitState[] } | null;
}

export interface Observed {
  readonly stats: RelayStats;
  /** The same parts; what they do is timed and counted. */
  readonly store: Store;
  readonly publisher: Publisher;
  /** Stops looking and answering. */
  stop(): Promise<void>;
}

export interface ObservedParts {
  readonly settings: Settings;
  readonly log: Log;
  readonly store: Store;
  readonly publisher: Publisher;
  readonly source: BinlogSource;
  readonly servers: ServerCounts;
  readonly limits: LimitsPlace;
}

/** Begins to look at the relay and to answer over HTTP. Where nobody may ask nothing is loaded, and nobody looks. */
export async function observe(parts: ObservedParts): Promise<Observed> {
  const { settings, log, store, publisher, source, servers, limits } = parts;
  const stats = newRelayStats();
  if (settings.http.port === 0) return { stats, store, publisher, stop: () => Promise.resolve() };
  const [{ DatabaseWatch }, { History }, { addProcessMetrics, createMetrics }, { Observer }, observed, http] =
    await Promise.all([
      import('../observability/database-watch.ts'),
      import('../observability/history.ts'),
      import('../observability/metrics.ts'),
      import('../observability/observer.ts'),
      Promise.all([
        import('../observability/observed-store.ts'),
        import('../observability/observed-publisher.ts'),
        import('../observability/server-metrics.ts'),
      ]),
      Promise.all([import('../http/server.ts'), import('./http-desk.ts')]),
    ]);
  const [{ observedStore }, { observedPublisher }, { addServerMetrics }] = observed;
  const [{ serveHttp }, { httpDesk }] = http;
  const desk = httpDesk(settings, log, servers.mysql.people);
  const reader = createProgressReader(settings, clock, log, servers.mysql.progress);
  const history = new History();
  const onLook = (): void => {
    const { word, lagMs } = observer.look().verdict;
    history.note(clock.nowMs(), { rows: ackedRows(stats), lagMs, state: word });
  };
  const watch = new DatabaseWatch({ reader, stats, clock, onLook });
  const { readyLagMs } = settings.http;
  const observer = new Observer({ stats, watch, clock, log, readyLagMs, limits: () => limits.current?.state ?? [] });
  const relay = settings.relay.name;
  const outboxes = settings.outboxes.map(({ schema, table }) => `${schema}.${table}`);
  const metrics = createMetrics({ observer, source: source.counters, relay, version, outboxes });
  addServerMetrics(metrics.registry, servers);
  addProcessMetrics(metrics.registry);
  stats.onPublished = (latencyMs) => metrics.publishLatency.observe(Math.max(0, latencyMs) / 1000);
  const noteFault = (code: FaultCode): void => noteError(stats, code, clock.nowMs());
  const end = new AbortController();
  const running = Promise.all([
    watch.run(end.signal),
    serveHttp({ settings: settings.http, relay, outboxes, observer, history, metrics, desk, clock, log }, end.signal),
  ]);
  return {
    stats,
    store: observedStore(store, metrics.store, clock, noteFault),
    publisher: observedPublisher(publisher, metrics.publisher, clock, noteFault),
    async stop() {
      end.abort();
      await running;
    },
  };
}
