import { createHash, randomBytes } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { kafkaJars } from './binaries.ts';
import { cached } from './cache.ts';
import { command } from './command.ts';
import type { Broker, KafkaCluster, KafkaOptions } from './handles.ts';
import { type Address, brokerProperties, formatArguments, heapFor, isVoter, type Place } from './kafka-config.ts';
import { freePort } from './ports.ts';
import { shown } from './progress.ts';
import { brokerServes } from './ready.ts';
import { type Recipe, ServerProcess } from './server-process.ts';
import { removeDirectory, temporaryDirectory } from './ward.ts';

const HOST = '127.0.0.1';
const READY_MS = 90_000;
const ARCHIVE = 'broker.jsa';

/** A Kafka cluster (KRaft), each broker a process on this machine. */
export async function startLocalKafka(options: KafkaOptions): Promise<KafkaCluster> {
  return startCluster(await javaArguments(), [], options);
}

async function startCluster(
  java: readonly string[],
  brokersOnly: readonly string[],
  options: KafkaOptions,
): Promise<KafkaCluster> {
  const directory = await temporaryDirectory();
  const count = options.brokers ?? 1;
  const places: Place[] = [];
  for (let id = 1; id <= count; id++) places.push(await takePlace(id, count, Object.keys(options.listeners ?? {})));
  const keyStore = join(directory, 'key-store.pem');
  const trustStore = join(directory, 'trust-store.pem');
  if (options.certificate !== undefined) {
    const { ca, cert, key } = options.certificate;
    await writeFile(keyStore, `${key}\n${cert}\n`);
    await writeFile(trustStore, ca);
  }
  const clusterId = randomBytes(16).toString('base64url');
  const nodes: LocalBroker[] = [];
  for (const place of places) {
    const name = `broker-${place.id}`;
    const file = join(directory, `${name}.properties`);
    const paths = { data: join(directory, name), keyStore, trustStore };
    await writeFile(file, brokerProperties(place, places, paths, options));
    await command('java', [...java, 'kafka.tools.StorageTool', ...formatArguments(clusterId, file)]);
    const address = place.plain.advertised;
    const recipe = {
      name: `Kafka broker ${place.id} at ${address}`,
      program: 'java',
      args: [`-Xmx${heapFor(count)}`, ...brokersOnly, ...java, 'kafka.Kafka', file],
      directory,
      log: join(directory, `${name}.log`),
      readyMs: READY_MS,
      ready: () => brokerServes(address, place.id),
    };
    nodes.push(new LocalBroker(place.id, address, recipe));
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
  return {
    brokers: nodes.map((node) => node.address),
    controllable: true,
    nodes,
    listener: (name) => places.map((place) => place.secure[name].advertised),
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

class LocalBroker extends ServerProcess implements Broker {
  readonly id: number;
  readonly address: string;

  constructor(id: number, address: string, recipe: Recipe) {
    super(recipe);
    this.id = id;
    this.address = address;
  }
}

async function takePlace(id: number, count: number, secure: readonly string[]): Promise<Place> {
  const at = async (): Promise<Address> => {
    const address = `${HOST}:${await freePort()}`;
    return { listen: address, advertised: address };
  };
  return {
    id,
    internal: await at(),
    controller: isVoter(id, count) ? await at() : null,
    plain: await at(),
    secure: Object.fromEntries(await Promise.all(secure.map(async (name) => [name, await at()] as const))),
  };
}

/**
 * The JVM's arguments: class path, and the classes that a broker loads when it starts, ready to map (class data
 * sharing): 1 s instead of 3 for each start.
 */
async function javaArguments(): Promise<readonly string[]> {
  const jars = await kafkaJars();
  const names = (await readdir(jars)).filter((name) => name.endsWith('.jar')).sort();
  const java = ['-XX:+UseSerialGC', '-cp', names.map((name) => join(jars, name)).join(':')];
  const jvm = createHash('sha256')
    .update(await command('java', ['--version']))
    .digest('hex')
    .slice(0, 12);
  const archives = await cached(`${basename(jars)}-classes-${jvm}`, (directory) =>
    shown('Kafka class archive', null, async () => {
      const atExit = [`-XX:ArchiveClassesAtExit=${join(directory, ARCHIVE)}`];
      await using cluster = await startCluster(java, atExit, {});
      await cluster.nodes[0].stop();
    }),
  );
  return [`-XX:SharedArchiveFile=${join(archives, ARCHIVE)}`, ...java];
}
