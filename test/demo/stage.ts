import type { Kafka } from 'kafkajs';
import { createConnection, type Connection } from 'mysql2/promise';
import type { DatabaseServer, KafkaCluster } from '../stack/handles.ts';
import { kafkaClient } from '../stack/kafka-client.ts';
import { migrate, oneOutboxConfig } from '../stack/one-outbox.ts';
import { type CliProcess, startCli } from '../stack/relay-process.ts';
import { startKafka, startMysql } from '../stack/stack.ts';
import { ORDERS_TOPIC, PAYMENTS_TOPIC } from './order-events.ts';
import type { Screen } from './screen.ts';

export const DATABASE = 'shop';
const PARTITIONS = 6;

/** Servers, topics and tables, and a relay that works. */
export interface Stage {
  readonly mysql: DatabaseServer;
  readonly kafka: KafkaCluster;
  readonly client: Kafka;
  readonly connection: Connection;
  startRelay(): Promise<CliProcess>;
}

/** Builds the stage step by step; what was started is handed to `owned`, whose disposal ends it. */
export async function buildStage(screen: Screen, owned: AsyncDisposableStack): Promise<Stage> {
  const [mysql, kafka] = await Promise.all([
    screen.step(
      'starting MySQL',
      async () => owned.use(await startMysql()),
      ({ version }) => `MySQL ${version.replace(/-.*/, '')} started`,
    ),
    screen.step(
      'starting Kafka',
      async () => owned.use(await startKafka()),
      () => 'Kafka started',
    ),
  ]);
  const client = kafkaClient(kafka.brokers);
  const { host, port, user, password } = mysql;
  const connection = owned.adopt(await createConnection({ host, port, user, password }), (open) => open.destroy());
  const config = oneOutboxConfig({ mysql, kafka, database: DATABASE, retire: 'mark' });
  await screen.step(
    'making topics and tables',
    async () => {
      await createTopics(client);
      await connection.query(`CREATE DATABASE ${DATABASE}`);
      await connection.query(`USE ${DATABASE}`);
      await migrate(config);
    },
    () => `topics ${ORDERS_TOPIC} and ${PAYMENTS_TOPIC} made, tables made by cdc-relay migrate`,
  );
  return {
    ...{ mysql, kafka, client, connection },
    startRelay: async () => owned.use(await startCli(['run'], { config })),
  };
}

async function createTopics(client: Kafka): Promise<void> {
  const admin = client.admin();
  await admin.connect();
  const topics = [ORDERS_TOPIC, PAYMENTS_TOPIC];
  await admin.createTopics({
    topics: topics.map((topic) => ({ topic, numPartitions: PARTITIONS, replicationFactor: 1 })),
  });
  await admin.disconnect();
}
