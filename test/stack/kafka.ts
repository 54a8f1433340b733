import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { KAFKA_VERSION, kafkaJars } from './binaries.ts';
import { command } from './command.ts';
import type { Broker, KafkaCluster, KafkaOptions } from './handles.ts';
import { freePort } from './ports.ts';
import { ServerProcess } from './server.ts';
import { removeDirectory, temporaryDirectory } from './ward.ts';

const HOST = '127.0.0.1';
const READY_MS = 90_000;

/** A Kafka cluster (KRaft) as one process a broker on this machine. */
export async function startLocalKafka(options: KafkaOptions): Promise<KafkaCluster> {
  const jars = await kafkaJars();
  const directory = await temporaryDirectory();
  const count = options.brokers ?? 1;
  // With two brokers a quorum of two would need both: then the first alone is the controller.
  const voters = count === 3 ? 3 : 1;
  const clusterId = Buffer.from(randomUUID().replaceAll('-', ''), 'hex').toString('base64url');
  const places = await Promise.all(
    Array.from({ length: count }, async (_, i) => ({
      id: i + 1,
      port: await freePort(),
      controller: await freePort(),
    })),
  );
  const quorum = places.slice(0, voters).map(({ id, controller }) => `${id}@${HOST}:${controller}`);
  const heap = count === 1 ? '512m' : '256m';
  const nodes: Node[] = [];
  for (const place of places) {
    const name = `broker-${place.id}`;
    const isVoter = place.id <= voters;
    const file = join(directory, `${name}.properties`);
    const properties = {
      'node.id': String(place.id),
      'process.roles': isVoter ? 'broker,controller' : 'broker',
      'controller.quorum.voters': quorum.join(','),
      listeners: [
        `PLAINTEXT://${HOST}:${place.port}`,
        ...(isVoter ? [`CONTROLLER://${HOST}:${place.controller}`] : []),
      ].join(','),
      'advertised.listeners': `PLAINTEXT://${HOST}:${place.port}`,
      'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
      'controller.listener.names': 'CONTROLLER',
      'inter.broker.listener.name': 'PLAINTEXT',
      'log.dirs': join(directory, name),
      ...SMALL,
      ...replication(count),
      ...options.properties,
    };
    await writeFile(
      file,
      Object.entries(properties)
        .map(([key, value]) => `${key}=${value}\n`)
        .join(''),
    );
    await command('java', [
      ...JVM,
      '-cp',
      `${jars}/*`,
      'kafka.tools.StorageTool',
      'format',
      '-t',
      clusterId,
      '-c',
      file,
    ]);
    const address = `${HOST}:${place.port}`;
    const server = new ServerProcess({
      name: `Kafka broker ${place.id} on port ${place.port}`,
      program: 'java',
      args: [`-Xmx${heap}`, `-Xms${heap}`, ...JVM, '-cp', `${jars}/*`, 'kafka.Kafka', file],
      directory,
      log: join(directory, `${name}.log`),
      readyMs: READY_MS,
      ready: () => brokerServes(address, place.id),
    });
    nodes.push(new Node(place.id, address, server));
  }
  const dispose = async () => {
    await Promise.all(nodes.map((node) => node.kill()));
    await removeDirectory(directory);
  };
  try {
    await Promise.all(nodes.map((node) => node.start()));
  } catch (error) {
    await dispose();
    throw error;
  }
  const brokers = nodes.map((node) => node.address);
  return { brokers, version: KAFKA_VERSION, controllable: true, nodes, dispose, [Symbol.asyncDispose]: dispose };
}

class Node implements Broker {
  readonly controllable = true;
  readonly id: number;
  readonly address: string;
  readonly #server: ServerProcess;

  constructor(id: number, address: string, server: ServerProcess) {
    this.id = id;
    this.address = address;
    this.#server = server;
  }

  get pid(): number | null {
    return this.#server.pid;
  }

  freeze(): void {
    this.#server.freeze();
  }

  thaw(): void {
    this.#server.thaw();
  }

  kill(): Promise<void> {
    return this.#server.kill();
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  start(): Promise<void> {
    return this.#server.start();
  }
}

/** Throws unless the broker answers and is in its own metadata: registered and not fenced. */
async function brokerServes(address: string, id: number): Promise<void> {
  const admin = new Kafka({
    brokers: [address],
    connectionTimeout: 1000,
    requestTimeout: 2000,
    retry: { retries: 0 },
    logLevel: logLevel.NOTHING,
  }).admin();
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    if (!cluster.brokers.some((broker) => broker.nodeId === id)) throw new Error(`broker ${id} is not registered yet`);
  } finally {
    await admin.disconnect();
  }
}

const JVM = ['-XX:+UseSerialGC', '-Xshare:auto'];

/** For one machine and many short runs. */
const SMALL = {
  'auto.create.topics.enable': 'false',
  'num.partitions': '1',
  'offsets.topic.num.partitions': '3',
  'transaction.state.log.num.partitions': '1',
  'group.initial.rebalance.delay.ms': '0',
  'log.cleaner.dedupe.buffer.size': '8388608',
  'num.network.threads': '2',
  'num.io.threads': '4',
};

function replication(brokers: number): Record<string, string> {
  return {
    'default.replication.factor': String(brokers),
    'min.insync.replicas': brokers === 3 ? '2' : '1',
    'offsets.topic.replication.factor': String(brokers),
    'transaction.state.log.replication.factor': String(brokers),
    'transaction.state.log.min.isr': '1',
    'share.coordinator.state.topic.replication.factor': String(brokers),
    'share.coordinator.state.topic.min.isr': '1',
  };
}
