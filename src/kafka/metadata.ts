import { setTimeout as sleep } from 'node:timers/promises';
import { RelayError } from '../model/fault.ts';
import type { Brokers } from './brokers.ts';
import { unsupported } from './client-faults.ts';
import { UNKNOWN_TOPIC_OR_PARTITION } from './fault-table.ts';
import { apiKeys, createEncoder, exchange } from './kafkajs-internals.ts';
import type { Link } from './link.ts';

/** As decoded by kafkajs, error codes left in. */
export interface Metadata {
  readonly brokers: readonly { readonly nodeId: number; readonly host: string; readonly port: number }[];
  readonly controllerId: number;
  readonly topicMetadata: readonly TopicMetadata[];
}

export interface TopicMetadata {
  readonly topicErrorCode: number;
  readonly topic: string;
  readonly partitionMetadata: readonly {
    readonly partitionErrorCode: number;
    readonly partitionId: number;
    /** -1: none at present. */
    readonly leader: number;
  }[];
}

/** The first version in which the request can forbid that topics are created by asking for them. */
const NO_AUTO_CREATION_VERSION = 4;

/** Between two questions about one topic. */
const REFRESH_GAP_MS = 100;

/**
 * Asks the cluster who leads what, for the topics named and no others: one unknown topic is one entry with an error
 * code. With no topics: the brokers alone (kafkajs would ask for all topics of the cluster).
 */
export async function askMetadata(link: Link, topics: readonly string[], timeoutMs: number): Promise<Metadata> {
  const decoded = await link.exchange((versions) => {
    const { request, response } = exchange(versions, 'Metadata', { topics, allowAutoTopicCreation: false });
    if (request.apiVersion < NO_AUTO_CREATION_VERSION) {
      throw new RelayError(unsupported(link.name, `Metadata v${request.apiVersion} may create topics`));
    }
    const encode = () => Promise.resolve(createEncoder().writeArray(topics).writeBoolean(false));
    return { request: { ...request, apiKey: apiKeys.Metadata, encode }, response };
  }, timeoutMs);
  return decoded as Metadata;
}

/**
 * Refreshes for everybody: what is asked for while one is under way goes into the next, so that an answer is never
 * older than the question; questions about one topic are `REFRESH_GAP_MS` apart. A topic's first question waits for
 * nothing: with many topics, each would otherwise hold up the log.
 */
export class MetadataRefresher {
  readonly #brokers: Brokers;
  readonly #timeoutMs: number;
  readonly #apply: (metadata: Metadata) => void;
  #wanted = new Set<string>();
  #next: Promise<Metadata> | null = null;
  #last: Promise<unknown> = Promise.resolve();
  readonly #askedMs = new Map<string, number>();

  constructor(brokers: Brokers, timeoutMs: number, apply: (metadata: Metadata) => void) {
    this.#brokers = brokers;
    this.#timeoutMs = timeoutMs;
    this.#apply = apply;
  }

  /** Resolves with what the cluster now says of the topic. Rejects with a `RelayError` when no broker answers. */
  async refresh(topic: string): Promise<TopicMetadata> {
    this.#wanted.add(topic);
    this.#next ??= this.#run();
    const { topicMetadata } = await this.#next;
    const entry = topicMetadata.find((candidate) => candidate.topic === topic);
    return entry ?? { topicErrorCode: UNKNOWN_TOPIC_OR_PARTITION, topic, partitionMetadata: [] };
  }

  #run(): Promise<Metadata> {
    const run = (async () => {
      await this.#last;
      const latestMs = Math.max(...[...this.#wanted].map((topic) => this.#askedMs.get(topic) ?? -Infinity));
      const waitMs = latestMs + REFRESH_GAP_MS - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      const topics = [...this.#wanted];
      for (const topic of topics) this.#askedMs.set(topic, performance.now());
      this.#wanted = new Set();
      this.#next = null;
      const metadata = await this.#brokers.any((link) => askMetadata(link, topics, this.#timeoutMs));
      this.#apply(metadata);
      return metadata;
    })();
    this.#last = run.catch(() => undefined);
    return run;
  }
}
