import { setTimeout as sleep } from 'node:timers/promises';
import { type Fault, fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { newKafkaCounts } from '../model/server-counts.ts';
import type { KafkaSettings } from '../model/settings.ts';
import { type BrokerNode, Brokers } from './brokers.ts';
import { clientFault } from './client-faults.ts';
import { AUTHORIZED_OPERATIONS_VERSION, clusterMetadataExchange, type ClusterMetadata } from './cluster-metadata.ts';
import { createDial, formatAddress, parseAddress } from './dial.ts';
import { NOT_CONTROLLER, requestFault, UNKNOWN_TOPIC_OR_PARTITION } from './fault-table.ts';
import { apiKeys, createKafkaJsLogger } from './kafkajs-internals.ts';
import type { Link } from './link.ts';
import { askMetadata } from './metadata.ts';
import { createSasl } from './sasl.ts';

/** AclOperation's numbers. */
const WRITE = 4;
const TOPIC = 2;
const PRODUCER_GAP_MS = 150;

/** A cluster as the relay's user sees it. */
export interface ClusterLook {
  /** Those of the configuration, and those that the cluster names. */
  readonly brokers: readonly BrokerLook[];
  readonly topics: readonly TopicLook[];
  /** Why the user gets no producer id; null: it does. */
  readonly producer: Fault | null;
}

export interface BrokerLook {
  /** `host:port` */
  readonly address: string;
  readonly isConfigured: boolean;
  /** Named by the cluster: the relay sends to it. */
  readonly isNamed: boolean;
  /** Null: it answers. */
  readonly fault: Fault | null;
}

export interface TopicLook {
  readonly topic: string;
  /** Null: it can be seen. `isMissing`: there is none. */
  readonly fault: Fault | null;
  readonly isMissing: boolean;
  /** It is missing, and `kafka.createTopics` could not make it. */
  readonly creation: Fault | null;
  readonly partitions: number;
  readonly leaderless: number;
  /** Of the partition that has fewest; null: the broker is too old to tell. */
  readonly replicas: number | null;
  readonly inSync: number | null;
  /** Null: the broker does not tell. */
  readonly mayWrite: boolean | null;
  /** Null: the user may not ask (DescribeConfigs). */
  readonly config: { readonly maxMessageBytes: number | null; readonly minInsyncReplicas: number | null } | null;
}

interface DescribeConfigsAnswer {
  readonly resources: readonly {
    readonly errorCode: number;
    readonly resourceName: string;
    readonly configEntries: readonly { readonly configName: string; readonly configValue: string | null }[];
  }[];
}

interface CreateTopicsAnswer {
  readonly topicErrors: readonly { readonly topic: string; readonly errorCode: number }[];
}

/** Connects as the relay does. Throws a `RelayError` when no broker answers, or the PEM text cannot be read. */
export async function lookAtCluster(
  settings: KafkaSettings,
  topics: readonly string[],
  log: Log,
): Promise<ClusterLook> {
  const { clientId, connectTimeoutMs } = settings;
  const logger = createKafkaJsLogger(({ namespace, log: { message, broker } }) =>
    log.debug('kafka-client', { namespace, message, broker }),
  );
  const sasl = settings.sasl === null ? null : createSasl(settings.sasl, connectTimeoutMs);
  const dial = createDial(settings.tls);
  const brokers = new Brokers(
    settings.brokers,
    { clientId, sasl, dial, connectTimeoutMs, logger, counts: newKafkaCounts() },
    log,
  );
  try {
    const metadata = await brokers.any((link) => describe(link, topics, connectTimeoutMs));
    brokers.adopt(metadata.brokers);
    const [looks, configs, producer] = await Promise.all([
      lookAtBrokers(settings, brokers, metadata),
      askConfigs(brokers, topics, connectTimeoutMs),
      askProducer(brokers, connectTimeoutMs),
    ]);
    const found = topics.map((topic) => lookAtTopic(topic, metadata, configs));
    const { createTopics } = settings;
    const missing = found.filter(({ isMissing }) => isMissing).map(({ topic }) => topic);
    const creations =
      createTopics === null
        ? new Map<string, Fault>()
        : await tryCreation(brokers, missing, createTopics, connectTimeoutMs);
    const looked = found.map((look) => ({ ...look, creation: creations.get(look.topic) ?? null }));
    return { brokers: looks, producer, topics: looked };
  } finally {
    brokers.close(fault('STOPPED', 'halt', 'the Kafka connection has been closed').fault);
  }
}

async function describe(link: Link, topics: readonly string[], timeoutMs: number): Promise<ClusterMetadata> {
  let isOld = false;
  const decoded = await link
    .exchange((versions) => {
      isOld = versions[apiKeys.Metadata].maxVersion < AUTHORIZED_OPERATIONS_VERSION;
      if (isOld) throw new Error('asked for in another way');
      return clusterMetadataExchange(topics);
    }, timeoutMs)
    .catch((error: unknown) => {
      if (isOld) return null;
      throw error;
    });
  if (decoded !== null) return decoded as ClusterMetadata;
  const { brokers, topicMetadata } = await askMetadata(link, topics, timeoutMs);
  return {
    brokers,
    operations: null,
    topics: topicMetadata.map(({ topic, topicErrorCode: errorCode, partitionMetadata }) => {
      const partitions = partitionMetadata.map(({ leader }) => ({ leader, replicas: 0, inSync: 0 }));
      return { topic, errorCode, partitions, operations: null };
    }),
  };
}

async function lookAtBrokers(
  settings: KafkaSettings,
  brokers: Brokers,
  metadata: ClusterMetadata,
): Promise<BrokerLook[]> {
  const configured = new Set(settings.brokers.map((text) => formatAddress(parseAddress(text))));
  const named = new Set(metadata.brokers.map(formatAddress));
  const all = [...new Set([...configured, ...named])];
  return Promise.all(
    all.map(async (address) => ({
      address,
      isConfigured: configured.has(address),
      isNamed: named.has(address),
      fault: await reach(brokers.at(parseAddress(address))),
    })),
  );
}

async function reach(node: BrokerNode): Promise<Fault | null> {
  try {
    await node.control.get();
    return null;
  } catch (error) {
    return clientFault(error, node.name);
  }
}

/** By topic; what the user may not see is not there. */
async function askConfigs(
  brokers: Brokers,
  topics: readonly string[],
  timeoutMs: number,
): Promise<ReadonlyMap<string, ReadonlyMap<string, number>>> {
  const configNames = ['max.message.bytes', 'min.insync.replicas'];
  const resources = topics.map((name) => ({ type: TOPIC, name, configNames }));
  if (topics.length === 0) return new Map();
  try {
    const ask = (link: Link) => link.call('DescribeConfigs', { resources }, timeoutMs);
    const answer = (await brokers.any(ask, 'config')) as DescribeConfigsAnswer;
    return new Map(
      answer.resources
        .filter(({ errorCode }) => errorCode === 0)
        .map(({ resourceName, configEntries }) => [
          resourceName,
          new Map(configEntries.map(({ configName, configValue }) => [configName, Number(configValue ?? NaN)])),
        ]),
    );
  } catch {
    // Said of each topic.
    return new Map();
  }
}

/** A broker that has just started, or moves its coordinator, is asked again for a while. */
async function askProducer(brokers: Brokers, timeoutMs: number): Promise<Fault | null> {
  const deadlineMs = performance.now() + timeoutMs;
  const args = { transactionalId: null, transactionTimeout: 0 };
  try {
    for (;;) {
      const answer = await brokers.any((link) => link.call('InitProducerId', args, timeoutMs));
      const { errorCode } = answer as { errorCode: number };
      if (errorCode === 0) return null;
      const refusal = requestFault(errorCode, 'InitProducerId');
      if (refusal.disposition !== 'retry' || performance.now() > deadlineMs) return refusal;
      await sleep(PRODUCER_GAP_MS);
    }
  } catch (error) {
    if (error instanceof RelayError) return error.fault;
    throw error;
  }
}

/** Asks whether topics could be made, and makes none. Those that could not be. */
async function tryCreation(
  brokers: Brokers,
  topics: readonly string[],
  { partitions: numPartitions, replicationFactor }: NonNullable<KafkaSettings['createTopics']>,
  timeoutMs: number,
): Promise<ReadonlyMap<string, Fault>> {
  if (topics.length === 0) return new Map();
  const wanted = topics.map((topic) => ({ topic, numPartitions, replicationFactor }));
  const args = { topics: wanted, validateOnly: true, timeout: Math.floor(timeoutMs / 2) };
  try {
    const answer = (await brokers.any((link) => link.call('CreateTopics', args, timeoutMs))) as CreateTopicsAnswer;
    return new Map(
      answer.topicErrors
        .filter(({ errorCode }) => errorCode !== 0 && errorCode !== NOT_CONTROLLER)
        .map(({ topic, errorCode }) => [topic, requestFault(errorCode, topic)]),
    );
  } catch {
    // Said of the brokers.
    return new Map();
  }
}

function lookAtTopic(
  topic: string,
  metadata: ClusterMetadata,
  configs: ReadonlyMap<string, ReadonlyMap<string, number>>,
): Omit<TopicLook, 'creation'> {
  const entry = metadata.topics.find((candidate) => candidate.topic === topic);
  const errorCode = entry?.errorCode ?? UNKNOWN_TOPIC_OR_PARTITION;
  const partitions = entry?.partitions ?? [];
  const least = (of: 'replicas' | 'inSync'): number => Math.min(...partitions.map((partition) => partition[of]));
  const isTold = partitions.length > 0 && least('replicas') > 0;
  const config = configs.get(topic);
  const operations = entry?.operations ?? null;
  return {
    topic,
    fault: errorCode === 0 ? null : requestFault(errorCode, topic),
    isMissing: errorCode === UNKNOWN_TOPIC_OR_PARTITION,
    partitions: partitions.length,
    leaderless: partitions.filter(({ leader }) => leader < 0).length,
    replicas: isTold ? least('replicas') : null,
    inSync: isTold ? least('inSync') : null,
    mayWrite: operations === null ? null : (operations & (1 << WRITE)) !== 0,
    config:
      config === undefined
        ? null
        : {
            maxMessageBytes: config.get('max.message.bytes') ?? null,
            minInsyncReplicas: config.get('min.insync.replicas') ?? null,
          },
  };
}
