import { setTimeout as sleep } from 'node:timers/promises';
import { RelayError } from '../model/fault.ts';
import type { TopicState } from '../model/publisher.ts';
import type { KafkaSettings } from '../model/settings.ts';
import type { Brokers } from './brokers.ts';
import {
  brokerFault,
  requestFault,
  CLUSTER_AUTHORIZATION_FAILED,
  LEADER_NOT_AVAILABLE,
  NOT_CONTROLLER,
  TOPIC_ALREADY_EXISTS,
  UNKNOWN_TOPIC_OR_PARTITION,
  verdictOf,
} from './fault-table.ts';
import type { Limits } from './limits.ts';
import { askMetadata, type MetadataRefresher } from './metadata.ts';
import { unusable, type Routes } from './routes.ts';
import { within } from './within.ts';

interface CreateTopicsAnswer {
  readonly topicErrors: readonly { readonly topic: string; readonly errorCode: number }[];
}

/** A topic made a moment ago may not have reached the broker that is asked. */
const UNKNOWN_ATTEMPTS = 3;
const ATTEMPT_GAP_MS = 150;

/** The limits come with the metadata as a rule; a first record does not wait for them longer. */
const LIMIT_WAIT_MS = 200;

/** Whether topics exist, and their creation where the configuration asks for it. */
export class Topics {
  readonly #settings: KafkaSettings;
  readonly #brokers: Brokers;
  readonly #metadata: MetadataRefresher;
  readonly #routes: Routes;
  readonly #limits: Limits;
  readonly #asked = new Map<string, Promise<TopicState>>();

  constructor(settings: KafkaSettings, brokers: Brokers, metadata: MetadataRefresher, routes: Routes, limits: Limits) {
    this.#settings = settings;
    this.#brokers = brokers;
    this.#metadata = metadata;
    this.#routes = routes;
    this.#limits = limits;
  }

  state(name: string, refresh: boolean): Promise<TopicState> {
    const partitions = refresh ? null : this.#routes.partitions(name);
    if (partitions !== null) {
      return Promise.resolve({ as: 'known', partitions, maxBatchBytes: this.#limits.batchBytes(name) });
    }
    let asked = this.#asked.get(name);
    if (asked === undefined) {
      asked = this.#ask(name).finally(() => this.#asked.delete(name));
      this.#asked.set(name, asked);
    }
    return asked;
  }

  async #ask(name: string): Promise<TopicState> {
    const deadlineMs = performance.now() + this.#settings.requestTimeoutMs;
    let unknown = 0;
    let created = false;
    for (;;) {
      const limit = this.#limits.ask(name);
      const { topicErrorCode: errorCode, partitionMetadata } = await this.#metadata.refresh(name);
      if (errorCode === 0) {
        const late = () => new Error('late');
        const maxBatchBytes = await within(LIMIT_WAIT_MS, limit, late).catch(() => this.#limits.batchBytes(name));
        return { as: 'known', partitions: partitionMetadata.length, maxBatchBytes };
      }
      if (verdictOf(errorCode).disposition === 'park') return unusableBy(errorCode, name);
      if (errorCode === UNKNOWN_TOPIC_OR_PARTITION) {
        unknown++;
        if (!created && this.#settings.createTopics !== null) {
          const refusal = await this.#create(name, this.#settings.createTopics);
          if (refusal !== null) return refusal;
          created = true;
        } else if (!created && unknown >= UNKNOWN_ATTEMPTS) {
          if (this.#routes.mayComeBack(name, performance.now())) throw new RelayError(brokerFault(errorCode, name));
          return { as: 'unusable', fault: unusable(name, 'no such topic') };
        }
      } else if (errorCode !== LEADER_NOT_AVAILABLE) throw new RelayError(requestFault(errorCode, name));
      if (performance.now() >= deadlineMs) throw new RelayError(brokerFault(errorCode, `${name}: not served in time`));
      await sleep(ATTEMPT_GAP_MS);
    }
  }

  /** Null: the topic exists now, or will in a moment. */
  async #create(
    topic: string,
    { partitions, replicationFactor }: NonNullable<KafkaSettings['createTopics']>,
  ): Promise<TopicState | null> {
    const { connectTimeoutMs, requestTimeoutMs } = this.#settings;
    // Only the controller creates topics; with KRaft every broker passes the request on.
    const { controllerId } = await this.#brokers.any((link) => askMetadata(link, [], connectTimeoutMs));
    const controller = this.#brokers.node(controllerId);
    if (controller === undefined) throw new RelayError(brokerFault(NOT_CONTROLLER, 'no controller at present'));
    const link = await controller.control.get();
    const answer = (await link.call(
      'CreateTopics',
      {
        topics: [{ topic, numPartitions: partitions, replicationFactor }],
        validateOnly: false,
        timeout: Math.floor(requestTimeoutMs / 2),
      },
      requestTimeoutMs,
    )) as CreateTopicsAnswer;
    const errorCode = answer.topicErrors.find((entry) => entry.topic === topic)?.errorCode ?? -1;
    if (errorCode === 0 || errorCode === TOPIC_ALREADY_EXISTS) return null;
    const { disposition } = verdictOf(errorCode);
    // Who may not create topics has no such topic.
    if (disposition === 'park' || disposition === 'reject' || errorCode === CLUSTER_AUTHORIZATION_FAILED)
      return unusableBy(errorCode, topic);
    throw new RelayError(brokerFault(errorCode, `${topic}: not created`));
  }
}

function unusableBy(errorCode: number, name: string): TopicState {
  return { as: 'unusable', fault: { ...brokerFault(errorCode, name), disposition: 'park' } };
}
