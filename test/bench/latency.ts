import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPool } from 'mysql2/promise';
import { stopSoftly } from '../stack/one-outbox.ts';
import { PlainConsumer } from '../stack/plain-consumer.ts';
import { until } from '../stack/until.ts';
import { INSERT_ONE, payload } from './backlog.ts';
import { cpuMs } from './cpu-ms.ts';
import { AGGREGATES, DATABASE, MYSQL, openStand, PARTITIONS, type StandOptions, TOPIC } from './stand.ts';

const CONNECTIONS = 8;
/** Not measured: code of all parts is compiled, caches and connections are made. */
const WARM_UP_S = 3;
const TICK_MS = 2;
const ARRIVE_WITHIN_MS = 15_000;

export interface LatencyOptions extends StandOptions {
  readonly rate: number;
  readonly seconds: number;
}

interface Sample {
  readonly sentMs: number;
  committedMs: number;
  receivedMs: number;
}

/** From a single-row commit to a plain consumer, at a steady rate. */
export async function latency(options: LatencyOptions): Promise<Record<string, unknown>> {
  const { rate, seconds, retire, compression } = options;
  await using stand = await openStand(options);
  const relay = await stand.startRelay();
  const samples = new Map<string, Sample>();
  let received = 0;

  const consumer = new PlainConsumer(stand.client, [TOPIC], ({ headers, receivedMs }) => {
    const sample = samples.get(String(headers['id']));
    if (sample === undefined || !Number.isNaN(sample.receivedMs)) return;
    sample.receivedMs = receivedMs;
    received++;
  });
  await consumer.start();

  const { host, port, user, password } = stand.mysql;
  const pool = createPool({ host, port, user, password, database: DATABASE, connectionLimit: CONNECTIONS });
  const commit = async (number: number): Promise<void> => {
    const id = randomUUID();
    const connection = await pool.getConnection();
    const sample: Sample = { sentMs: performance.now(), committedMs: NaN, receivedMs: NaN };
    samples.set(id, sample);
    const key = Buffer.from(id.replaceAll('-', ''), 'hex');
    await connection.execute(INSERT_ONE, [TOPIC, `order-${number % AGGREGATES}`, payload(number), key]);
    sample.committedMs = performance.now();
    connection.release();
  };
  const startedMs = performance.now();
  const measuredFromMs = startedMs + WARM_UP_S * 1000;
  const commits: Promise<void>[] = [];
  for (let elapsedMs = 0; elapsedMs < (WARM_UP_S + seconds) * 1000; elapsedMs = performance.now() - startedMs) {
    const due = Math.floor((elapsedMs * rate) / 1000);
    while (commits.length < due) commits.push(commit(commits.length));
    await sleep(TICK_MS);
  }
  await Promise.all(commits);
  await until(() => received === commits.length, { withinMs: ARRIVE_WITHIN_MS, what: 'all rows received' }).catch(
    (error: unknown) => {
      throw new Error(`${received} of ${commits.length} rows received:\n${relay.stderr().slice(-3000)}`, {
        cause: error,
      });
    },
  );
  const figures = { peakRssBytes: relay.peakRssBytes(), cpuMs: await cpuMs(relay.pid) };
  await consumer.stop();
  await pool.end();
  await stopSoftly(relay);

  const measured = [...samples.values()].filter(({ sentMs }) => sentMs >= measuredFromMs);
  return {
    bench: 'latency',
    // The consumer can be faster than the answer to the commit: that is 0.
    ...summary(measured.map(({ committedMs, receivedMs }) => Math.max(0, receivedMs - committedMs))),
    fromCommitSent: summary(measured.map(({ sentMs, receivedMs }) => receivedMs - sentMs)),
    ...figures,
    ...{ rate, seconds, retire, compression, partitions: PARTITIONS, aggregates: AGGREGATES, rows: measured.length },
    warmUpSeconds: WARM_UP_S,
    mysql: MYSQL,
  };
}

function summary(values: readonly number[]): { p50: number; p95: number; p99: number; max: number } {
  const sorted = Float64Array.from(values).sort();
  const at = (part: number): number =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] * 100) / 100;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}
