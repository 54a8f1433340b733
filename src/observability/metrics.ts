import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client';
import type { StateSources } from './reading.ts';
import { registerState } from './state-metrics.ts';

/** Of a request to MySQL or Kafka. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** From milliseconds to an outage. */
const LATENCY_SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
const RECORDS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_000, 5_000];
const BYTES = [256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

export type PublisherMetrics = ReturnType<typeof publisherMetrics>;
export type StoreMetrics = ReturnType<typeof storeMetrics>;

/** All metrics of a relay. */
export interface Metrics {
  readonly registry: Registry;
  readonly publisher: PublisherMetrics;
  readonly store: StoreMetrics;
  /** Commit to acknowledgement. */
  readonly publishLatency: Histogram;
  /** All of them as they are now, in Prometheus's text format. */
  text(): Promise<string>;
}

/** `sources`: what is read when somebody asks. */
export function createMetrics(sources: StateSources): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const readState = registerState(registry, sources);
  return {
    registry,
    publishLatency: new Histogram({
      ...{ name: 'cdc_relay_publish_latency_seconds', registers, buckets: LATENCY_SECONDS },
      help: "From a transaction's commit, by the server's clock, to Kafka's acknowledgement: the oldest row of each batch of the tail.",
    }),
    publisher: publisherMetrics(registry),
    store: storeMetrics(registry),
    text() {
      readState();
      return registry.metrics();
    },
  };
}

/** Memory, CPU, event loop: `process_*` and `nodejs_*`, as prom-client has them. */
export function addProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry });
}

function publisherMetrics(registry: Registry) {
  const registers = [registry];
  return {
    ackedRecords: new Counter({
      ...{ name: 'cdc_relay_kafka_acked_records_total', registers, labelNames: ['topic'] },
      help: 'Records that Kafka acknowledged, dead letters among them. Topics beyond 100 are counted as (others).',
    }),
    ackedBytes: new Counter({
      ...{ name: 'cdc_relay_kafka_acked_bytes_total', registers },
      help: 'Bytes of acknowledged record batches, as sent.',
    }),
    batchRecords: new Histogram({
      ...{ name: 'cdc_relay_kafka_batch_records', registers, buckets: RECORDS },
      help: 'Records of an acknowledged batch.',
    }),
    batchBytes: new Histogram({
      ...{ name: 'cdc_relay_kafka_batch_bytes', registers, buckets: BYTES },
      help: 'Bytes of an acknowledged batch, as sent.',
    }),
    requestSeconds: new Histogram({
      ...{ name: 'cdc_relay_kafka_send_seconds', registers, labelNames: ['outcome'], buckets: REQUEST_SECONDS },
      help: 'One attempt to send a batch, throttling included. Outcome: acked, refused, uncertain.',
    }),
    sendFaults: new Counter({
      ...{ name: 'cdc_relay_kafka_send_faults_total', registers, labelNames: ['outcome', 'code'] },
      help: 'Attempts to send a batch that failed, by outcome (refused, uncertain) and code. Most are tried again.',
    }),
    duplicateBatches: new Counter({
      ...{ name: 'cdc_relay_kafka_duplicate_batches_total', registers },
      help: 'Batches sent again that the broker had already: no record is there twice by them.',
    }),
    producers: new Counter({
      ...{ name: 'cdc_relay_kafka_producers_total', registers },
      help: 'Producer identities asked for.',
    }),
  };
}

function storeMetrics(registry: Registry) {
  const registers = [registry];
  return {
    storeSeconds: new Histogram({
      ...{ name: 'cdc_relay_mysql_seconds', registers, labelNames: ['operation'], buckets: REQUEST_SECONDS },
      help: 'One operation on MySQL, its own retries included: flush, claim, writeBack, dueRows and so on.',
    }),
    storeFaults: new Counter({
      ...{ name: 'cdc_relay_mysql_faults_total', registers, labelNames: ['operation', 'code'] },
      help: 'Operations on MySQL that failed, by code: MYSQL_DEADLOCK, MYSQL_LOCK_WAIT, MYSQL_UNREACHABLE and so on.',
    }),
  };
}
