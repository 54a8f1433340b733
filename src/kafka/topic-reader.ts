import { setTimeout as sleep } from 'node:timers/promises';
import { fault, RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { newKafkaCounts } from '../model/server-counts.ts';
import type { KafkaSettings } from '../model/settings.ts';
import { Brokers } from './brokers.ts';
import { clientFault } from './client-faults.ts';
import { createDial } from './dial.ts';
import { LEADER_NOT_AVAILABLE, requestFault, UNKNOWN_TOPIC_OR_PARTITION } from './fault-table.ts';
import { fetchExchange, type FetchAnswer, Isolation } from './fetch-request.ts';
import { createKafkaJsLogger } from './kafkajs-internals.ts';
import type { Link } from './link.ts';
import { askMetadata } from './metadata.ts';
import { createSasl } from './sasl.ts';

const LATEST = -1;
const EARLIEST = -2;
const OFFSET_OUT_OF_RANGE = 1;
const TOPIC = 2;
const RETRY_MS = 150;
/** A topic made a moment ago may not have reached the broker that is asked. */
const UNKNOWN_ATTEMPTS = 3;
/** Of one answer, unless one batch is larger. */
const FETCH_BYTES = 4 << 20;
const FETCH_WAIT_MS = 500;

interface ListOffsetsAnswer {
  readonly responses: readonly {
    readonly partitions: readonly { readonly errorCode: number; readonly offset: string }[];
  }[];
}

interface DescribeConfigsAnswer {
  readonly resources: readonly {
    readonly errorCode: number;
    readonly configEntries: readonly { readonly configName: string; readonly configValue: string | null }[];
  }[];
}

/** A record set, as `readRecordSet` takes it. */
export type Fetched = Pick<FetchAnswer, 'records' | 'aborted'>;

export interface TopicShape {
  readonly partitions: number;
  /** Null: the user may not ask (DescribeConfigs). */
  readonly compacted: boolean | null;
}

/**
 * Reads topics by place, without a consumer group: nothing is left behind in the cluster. What passes by itself (a
 * leader that moves, a broker that restarts) is waited for as long as `requestTimeoutMs`. All methods throw a
 * `RelayError`.
 */
export class TopicReader {
  readonly #brokers: Brokers;
  readonly #settings: KafkaSettings;
  readonly #leaders = new Map<string, readonly number[]>();
  readonly #isolation: Isolation;

  constructor(settings: KafkaSettings, log: Log, isolation: Isolation = Isolation.Uncommitted) {
    this.#settings = settings;
    this.#isolation = isolation;
    const { clientId, connectTimeoutMs } = settings;
    const logger = createKafkaJsLogger(({ namespace, log: { message, broker } }) =>
      log.debug('kafka-client', { namespace, message, broker }),
    );
    const sasl = settings.sasl === null ? null : createSasl(settings.sasl, connectTimeoutMs);
    const dial = createDial(settings.tls);
    this.#brokers = new Brokers(
      settings.brokers,
      { clientId, sasl, dial, connectTimeoutMs, logger, counts: newKafkaCounts() },
      log,
    );
  }

  /** Null: there is no such topic. */
  async shape(topic: string): Promise<TopicShape | null> {
    for (let attempt = 1; ; attempt++) {
      const leaders = await this.#askLeaders(topic);
      if (leaders !== null) return { partitions: leaders.length, compacted: await this.#isCompacted(topic) };
      if (attempt === UNKNOWN_ATTEMPTS) return null;
      await sleep(RETRY_MS);
    }
  }

  firstOffset(topic: string, partition: number): Promise<number> {
    return this.#offset(topic, partition, EARLIEST);
  }

  /** Behind the last record that every replica has; of committed ones, before the first transaction that is open. */
  endOffset(topic: string, partition: number): Promise<number> {
    return this.#offset(topic, partition, LATEST);
  }

  /** No record of this time or later is before it; null: there is none of this time or later. */
  async offsetSince(topic: string, partition: number, timestampMs: number): Promise<number | null> {
    const offset = await this.#offset(topic, partition, Math.max(0, timestampMs));
    return offset < 0 ? null : offset;
  }

  /** A record set from the batch on that holds `offset`; null: the topic's retention has removed it. */
  async fetch(topic: string, partition: number, offset: number): Promise<Fetched | null> {
    return this.#atLeader(topic, partition, async (link) => {
      const limits = { maxBytes: FETCH_BYTES, maxWaitMs: FETCH_WAIT_MS };
      const args = { topic, partition, offset, ...limits, isolation: this.#isolation };
      const answer = await link.exchange(() => fetchExchange(args), this.#settings.requestTimeoutMs);
      const { errorCode, records, aborted } = answer as FetchAnswer;
      if (errorCode === OFFSET_OUT_OF_RANGE) return null;
      if (errorCode !== 0) throw new RelayError(requestFault(errorCode, `${topic}-${partition}`));
      return { records, aborted };
    });
  }

  close(): void {
    this.#brokers.close(fault('STOPPED', 'halt', 'the Kafka connection has been closed').fault);
  }

  #offset(topic: string, partition: number, timestamp: number): Promise<number> {
    return this.#atLeader(topic, partition, async (link) => {
      const topics = [{ topic, partitions: [{ partition, timestamp }] }];
      const args = { replicaId: -1, isolationLevel: this.#isolation, topics };
      const answer = (await link.call('ListOffsets', args, this.#settings.requestTimeoutMs)) as ListOffsetsAnswer;
      const { errorCode, offset } = answer.responses[0].partitions[0];
      if (errorCode !== 0) throw new RelayError(requestFault(errorCode, `${topic}-${partition}`));
      return Number(offset);
    });
  }

  async #atLeader<T>(topic: string, partition: number, work: (link: Link) => Promise<T>): Promise<T> {
    const deadlineMs = performance.now() + this.#settings.requestTimeoutMs;
    for (;;) {
      try {
        const leaders = this.#leaders.get(topic) ?? (await this.#askLeaders(topic)) ?? [];
        const node = this.#brokers.node(leaders[partition] ?? -1);
        if (node === undefined) {
          throw new RelayError(requestFault(LEADER_NOT_AVAILABLE, `${topic}-${partition} has no leader`));
        }
        return await work(await node.data.get());
      } catch (error) {
        this.#leaders.delete(topic);
        const found = clientFault(error, `${topic}-${partition}`);
        if (found.disposition === 'halt' || found.disposition === 'park') throw new RelayError(found);
        if (performance.now() > deadlineMs) throw new RelayError(found);
      }
      await sleep(RETRY_MS);
    }
  }

  /** Node ids by partition; null: no such topic. */
  async #askLeaders(topic: string): Promise<readonly number[] | null> {
    const { connectTimeoutMs } = this.#settings;
    const { brokers, topicMetadata } = await this.#brokers.any((link) => askMetadata(link, [topic], connectTimeoutMs));
    this.#brokers.adopt(brokers);
    const entry = topicMetadata.find((candidate) => candidate.topic === topic);
    const errorCode = entry?.topicErrorCode ?? UNKNOWN_TOPIC_OR_PARTITION;
    if (entry === undefined || errorCode === UNKNOWN_TOPIC_OR_PARTITION) return null;
    if (errorCode !== 0) throw new RelayError(requestFault(errorCode, topic));
    const leaders = Array.from(entry.partitionMetadata, () => -1);
    for (const { partitionId, leader } of entry.partitionMetadata) leaders[partitionId] = leader;
    this.#leaders.set(topic, leaders);
    return leaders;
  }

  async #isCompacted(topic: string): Promise<boolean | null> {
    const resources = [{ type: TOPIC, name: topic, configNames: ['cleanup.policy'] }];
    const ask = (link: Link) => link.call('DescribeConfigs', { resources }, this.#settings.connectTimeoutMs);
    try {
      const answer = (await this.#brokers.any(ask, 'config')) as DescribeConfigsAnswer;
      const [{ errorCode, configEntries }] = answer.resources;
      if (errorCode !== 0) return null;
      return configEntries.some(({ configValue }) => configValue?.split(',').includes('compact') === true);
    } catch {
      // Nothing depends on it but how missing rows are told.
      return null;
    }
  }
}
