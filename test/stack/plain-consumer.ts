import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer, EachBatchPayload, IHeaders, Kafka } from 'kafkajs';

/** One record as a plain consumer got it. */
export interface Delivery {
  readonly topic: string;
  readonly partition: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: IHeaders;
  readonly timestampMs: number;
  /** `performance.now()`. */
  readonly receivedMs: number;
}

const AGAIN_AFTER_MS = 100;
const START_TRIES = 100;

/**
 * A plain kafkajs consumer of whole topics, from their beginning, each record once. When Kafka goes away under it, it begins anew and passes over what
 * it has had: in a group of its own, as the old one would wait half a minute for the member that is gone.
 */
export class PlainConsumer {
  readonly #client: Kafka;
  readonly #topics: string[];
  readonly #onDelivery: (delivery: Delivery) => void;
  /** Next offset by topic and partition. */
  readonly #next = new Map<string, bigint>();
  #consumer: Consumer | null = null;
  #groups = 0;
  #stopped = false;

  constructor(client: Kafka, topics: string[], onDelivery: (delivery: Delivery) => void) {
    this.#client = client;
    this.#topics = topics;
    this.#onDelivery = onDelivery;
  }

  /** Resolves when it reads; a broker that has just come up refuses a few times. */
  async start(): Promise<void> {
    for (let tries = 1; !this.#stopped; tries++) {
      const consumer = this.#newConsumer();
      try {
        await this.#read(consumer);
        return;
      } catch (error) {
        await consumer.disconnect().catch(() => undefined);
        if (tries === START_TRIES) throw error;
        await sleep(AGAIN_AFTER_MS);
      }
    }
  }

  nextOffset(topic: string, partition: number): bigint {
    return this.#next.get(place(topic, partition)) ?? 0n;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#consumer?.disconnect();
  }

  #newConsumer(): Consumer {
    this.#consumer = this.#client.consumer({
      groupId: `plain-${++this.#groups}`,
      maxWaitTimeInMs: 50,
      minBytes: 1,
      retry: { initialRetryTime: 100, maxRetryTime: 500, restartOnFailure: () => Promise.resolve(false) },
    });
    return this.#consumer;
  }

  async #read(consumer: Consumer): Promise<void> {
    const { GROUP_JOIN, CRASH } = consumer.events;
    const joined = Promise.withResolvers<undefined>();
    let isIn = false;
    consumer.on(GROUP_JOIN, () => {
      isIn = true;
      joined.resolve(undefined);
    });
    consumer.on(CRASH, ({ payload }) => {
      if (!isIn) joined.reject(payload.error);
      else if (this.#consumer === consumer) void this.start();
    });
    joined.promise.catch(() => undefined); // it may fail while one of the calls below does
    await consumer.connect();
    await consumer.subscribe({ topics: this.#topics, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      partitionsConsumedConcurrently: 12,
      eachBatch: (payload) => {
        this.#take(payload);
        return Promise.resolve();
      },
    });
    await joined.promise;
  }

  #take({ batch: { topic, partition, messages } }: EachBatchPayload): void {
    const receivedMs = performance.now();
    for (const { key, value, headers, offset, timestamp } of messages) {
      if (BigInt(offset) < this.nextOffset(topic, partition)) continue;
      this.#next.set(place(topic, partition), BigInt(offset) + 1n);
      const timestampMs = Number(timestamp);
      this.#onDelivery({ topic, partition, key, value, headers: headers ?? {}, timestampMs, receivedMs });
    }
  }
}

function place(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}
