import { setTimeout as sleep } from 'node:timers/promises';
import type { Kafka } from 'kafkajs';
import { createConnection, type Connection } from 'mysql2/promise';
import type { Retire } from '../../src/model/settings.ts';
import type { DatabaseServer, KafkaCluster } from '../stack/handles.ts';
import { kafkaClient } from '../stack/kafka-client.ts';
import { migrate, oneOutboxConfig } from '../stack/one-outbox.ts';
import { say } from '../stack/progress.ts';
import { type CliProcess, startCli } from '../stack/relay-process.ts';
import { startKafka, startMysql } from '../stack/stack.ts';

export const DATABASE = 'bench';
export const TOPIC = 'bench.orders';
export const PARTITIONS = 12;
export const AGGREGATES = 1_000;

/** So that the relay is measured, not the disk. Together with the stack's own: nothing is flushed to disk at a commit. */
const MYSQL_FLAGS = ['--innodb-buffer-pool-size=512M', '--innodb-redo-log-capacity=512M'];
const FLUSH_WITHIN_MS = 60_000;

export const MYSQL = 'relaxed durability, buffer pool and redo log 512 MB';

export interface StandOptions {
  readonly retire: Retire;
  readonly compression: string;
}

/** Servers of its own, topic, tables and configuration: everything a measurement needs but the relay. */
export interface Stand extends AsyncDisposable {
  readonly mysql: DatabaseServer;
  readonly kafka: KafkaCluster;
  readonly client: Kafka;
  readonly connection: Connection;
  /** Starts the built relay and waits until it reads the binlog. */
  startRelay(): Promise<CliProcess>;
  /** Starts the built relay and does not wait. */
  launchRelay(): Promise<CliProcess>;
}

export async function openStand(options: StandOptions): Promise<Stand> {
  const { retire, compression } = options;
  await using owned = new AsyncDisposableStack();
  say('starting MySQL and Kafka ...');
  const [mysql, kafka] = await Promise.all([
    startMysql({ flags: MYSQL_FLAGS }).then((server) => owned.use(server)),
    startKafka().then((cluster) => owned.use(cluster)),
  ]);
  const client = kafkaClient(kafka.brokers);
  await createTopic(client);
  const { host, port, user, password } = mysql;
  const connection = owned.adopt(await createConnection({ host, port, user, password }), (open) => open.destroy());
  await connection.query(`CREATE DATABASE ${DATABASE}`);
  await connection.query(`USE ${DATABASE}`);
  const config = oneOutboxConfig({ mysql, kafka, database: DATABASE, retire, compression });
  await migrate(config);
  const all = owned.move();
  const launchRelay = async (): Promise<CliProcess> => all.use(await startCli(['run'], { config }));
  return {
    ...{ mysql, kafka, client, connection, launchRelay },
    async startRelay() {
      const relay = await launchRelay();
      await relay.waitFor('binlog-streaming');
      return relay;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Waits until the relay has saved a checkpoint at or behind `end`: read before anything of its own was logged there. */
export async function checkpointReaches(connection: Connection, relay: CliProcess, end: BinlogEnd): Promise<void> {
  const deadline = performance.now() + FLUSH_WITHIN_MS;
  while (!(await checkpointIsAt(connection, end))) {
    if (!relay.alive() || performance.now() > deadline) {
      throw new Error(`the checkpoint has not reached ${end.file}:${end.position}:\n${relay.stderr().slice(-3000)}`);
    }
    await sleep(10);
  }
}

export interface BinlogEnd {
  readonly file: string;
  readonly position: number;
}

export async function binlogEnd(connection: Connection): Promise<BinlogEnd> {
  const [rows] = await connection.query('SHOW BINARY LOG STATUS');
  const [row] = rows as { File: string; Position: number }[];
  return { file: row.File, position: row.Position };
}

async function checkpointIsAt(connection: Connection, end: BinlogEnd): Promise<boolean> {
  const [rows] = await connection.query('SELECT file, position FROM cdc_relay_offsets');
  const [{ file, position }] = rows as { file: string | null; position: string | number | null }[];
  // Names of one server's logs have digits of one width: text order is log order.
  return file !== null && (file > end.file || (file === end.file && Number(position) >= end.position));
}

async function createTopic(client: Kafka): Promise<void> {
  const admin = client.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: PARTITIONS, replicationFactor: 1 }] });
  await admin.disconnect();
}
