import { setTimeout as sleep } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import { createConnection, type Connection } from 'mysql2/promise';
import { RelayProcess, relayCommand, writeRelayConfig } from '../stack/built-relay.ts';
import type { DatabaseServer, KafkaCluster } from '../stack/handles.ts';
import { shown } from '../stack/progress.ts';
import { startKafka, startMysql } from '../stack/stack.ts';
import { removeDirectory, temporaryDirectory } from '../stack/ward.ts';

export const DATABASE = 'bench';
export const TOPIC = 'bench.orders';
export const PARTITIONS = 12;
export const AGGREGATES = 1_000;

export interface StandOptions {
  readonly retire: 'mark' | 'delete' | 'keep';
  readonly compression: string;
}

/** Servers of its own, topic, tables and configuration: everything a measurement needs but the relay. */
export interface Stand extends AsyncDisposable {
  readonly mysql: DatabaseServer;
  readonly kafka: KafkaCluster;
  readonly client: Kafka;
  readonly connection: Connection;
  /** Starts the built relay and waits until it reads the binlog. */
  startRelay(): Promise<RelayProcess>;
  /** Starts the built relay and does not wait. */
  launchRelay(): Promise<RelayProcess>;
}

export async function openStand(options: StandOptions): Promise<Stand> {
  const [mysql, kafka, directory] = await Promise.all([
    shown('MySQL', null, () => startMysql()),
    shown('Kafka', null, () => startKafka()),
    temporaryDirectory(),
  ]);
  const client = new Kafka({ brokers: [...kafka.brokers], logLevel: logLevel.NOTHING });
  await createTopic(client);
  const connection = await createConnection({
    host: mysql.host,
    port: mysql.port,
    user: mysql.user,
    password: mysql.password,
  });
  await connection.query(`CREATE DATABASE ${DATABASE}`);
  await connection.query(`USE ${DATABASE}`);
  const { retire, compression } = options;
  const config = await writeRelayConfig(directory, {
    ...{ mysql, kafka, database: DATABASE, retire },
    kafkaKeys: { compression },
  });
  await relayCommand('migrate', config);
  const launchRelay = (): Promise<RelayProcess> => RelayProcess.start(config, directory);
  return {
    ...{ mysql, kafka, client, connection, launchRelay },
    async startRelay() {
      const relay = await launchRelay();
      await relay.logged('relay-state', { to: 'flowing' });
      return relay;
    },
    async [Symbol.asyncDispose]() {
      connection.destroy();
      await Promise.all([mysql.dispose(), kafka.dispose()]);
      await removeDirectory(directory);
    },
  };
}

/** Waits until the relay has saved a checkpoint at or after where the binlog ends now. */
export async function checkpointReaches(connection: Connection, end: BinlogEnd, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await checkpointIsAt(connection, end))) {
    if (performance.now() > deadline) throw new Error(`the checkpoint has not reached ${end.file}:${end.position}`);
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
