import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ConnectionCounts, ServerCounts } from '../model/server-counts.ts';

/** From a broker of the same rack to one that is about to be given up. */
const ANSWER_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

type Value = readonly [labels: Readonly<Record<string, string>>, value: number];

interface Reading {
  readonly name: string;
  readonly kind: 'gauge' | 'counter';
  readonly labels: readonly string[];
  readonly help: string;
  readonly read: (counts: ServerCounts) => Iterable<Value>;
}

/** Connections, waits, retries and requests, read when somebody asks. */
export function addServerMetrics(registry: Registry, counts: ServerCounts): void {
  const registers = [registry];
  for (const { name, kind, labels, help, read } of READINGS) {
    const Metric = kind === 'gauge' ? Gauge : Counter;
    new Metric({
      ...{ name, help, registers, labelNames: [...labels] },
      collect() {
        this.reset();
        for (const [of, value] of read(counts)) this.inc(of, value);
      },
    });
  }
  const answers = new Histogram({
    ...{ name: 'cdc_relay_kafka_request_seconds', registers, labelNames: ['request'], buckets: ANSWER_SECONDS },
    help:
      'From the writing of a request to the answer of the broker, by request: Produce, Metadata, InitProducerId, ' +
      'DescribeConfigs, CreateTopics. Produce: without the search for the leader and the wait for a quota.',
  });
  counts.kafka.onAnswer = (request, tookMs) => answers.observe({ request }, tookMs / 1000);
}

function* connections({ mysql }: ServerCounts): Iterable<readonly [connection: string, counts: ConnectionCounts]> {
  for (const [connection, counts] of Object.entries(mysql)) yield [connection, counts];
}

/** What was never opened is not there. */
function* used(counts: ServerCounts, read: (counts: ConnectionCounts) => number): Iterable<Value> {
  for (const [connection, of] of connections(counts)) {
    if (of.connects.size > 0 || of.waiting > 0) yield [{ connection }, read(of)];
  }
}

const READINGS: readonly Reading[] = [
  {
    name: 'cdc_relay_mysql_connects_total',
    kind: 'counter',
    labels: ['connection', 'cause'],
    help:
      'Connections to MySQL that were opened, by what they are for and by what ended the one before: FIRST (there was ' +
      'none), IDLE (it had rested), DONE (a term or a piece of work was over), else the code of a fault. Those of the ' +
      'dump: cdc_relay_binlog_reconnects_total.',
    *read(counts) {
      for (const [connection, { connects }] of connections(counts)) {
        for (const [cause, times] of connects) yield [{ connection, cause }, times];
      }
    },
  },
  {
    name: 'cdc_relay_mysql_connections',
    kind: 'gauge',
    labels: ['connection'],
    help: 'Open connections to MySQL, by what they are for. There is no pool: each is for one kind of work.',
    read: (counts) => used(counts, ({ open }) => open),
  },
  {
    name: 'cdc_relay_mysql_work',
    kind: 'gauge',
    labels: ['connection', 'doing'],
    help: 'Pieces of work on a connection to MySQL: running (one at a time, connecting included), waiting for their turn.',
    *read(counts) {
      for (const [labels, value] of used(counts, ({ working }) => working))
        yield [{ ...labels, doing: 'running' }, value];
      for (const [labels, value] of used(counts, ({ waiting }) => waiting))
        yield [{ ...labels, doing: 'waiting' }, value];
    },
  },
  {
    name: 'cdc_relay_mysql_waited_seconds_total',
    kind: 'counter',
    labels: ['connection'],
    help: 'How long pieces of work have waited for their turn on a connection to MySQL.',
    read: (counts) => used(counts, ({ waitedMs }) => waitedMs / 1000),
  },
  {
    name: 'cdc_relay_mysql_retries_total',
    kind: 'counter',
    labels: ['code'],
    help:
      'Statements that ended in a deadlock or waited a second for a lock, by code: MYSQL_DEADLOCK, MYSQL_LOCK_WAIT. ' +
      'They are made again; what was given up in the end is in cdc_relay_mysql_faults_total.',
    *read(counts) {
      for (const [, { lockFaults }] of connections(counts)) {
        for (const [code, times] of lockFaults) yield [{ code }, times];
      }
    },
  },
  {
    name: 'cdc_relay_kafka_connects_total',
    kind: 'counter',
    labels: ['cause'],
    help:
      'Connections to brokers that were opened, by what ended the one before: FIRST (there was none), SESSION_EXPIRES ' +
      '(the broker wants a new login), APART (for one large batch alone), else the code of a fault.',
    *read({ kafka }) {
      for (const [cause, times] of kafka.connects) yield [{ cause }, times];
    },
  },
  {
    name: 'cdc_relay_kafka_connections',
    kind: 'gauge',
    labels: [],
    help: 'Open connections to brokers.',
    read: ({ kafka }) => [[{}, kafka.open]],
  },
  {
    name: 'cdc_relay_kafka_throttled_seconds_total',
    kind: 'counter',
    labels: [],
    help: 'How long brokers have asked the relay to send nothing, because of quotas.',
    read: ({ kafka }) => [[{}, kafka.throttledMs / 1000]],
  },
];
