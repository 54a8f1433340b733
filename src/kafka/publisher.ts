import { setTimeout as sleep } from 'node:timers/promises';
import { fault, RelayError, type Fault } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { ProducerIdentity, Publisher, SealedBatch, SendOutcome, TopicState } from '../model/publisher.ts';
import { type KafkaCounts, newKafkaCounts } from '../model/server-counts.ts';
import type { KafkaSettings } from '../model/settings.ts';
import { Brokers } from './brokers.ts';
import { clientFault } from './client-faults.ts';
import { createDial } from './dial.ts';
import { requestFault } from './fault-table.ts';
import { createKafkaJsLogger } from './kafkajs-internals.ts';
import { Limits } from './limits.ts';
import { askMetadata, MetadataRefresher } from './metadata.ts';
import { Routes } from './routes.ts';
import { createSasl } from './sasl.ts';
import { Sender } from './sender.ts';
import { Topics } from './topics.ts';

interface InitProducerIdAnswer {
  readonly errorCode: number;
  readonly producerId: string;
  readonly producerEpoch: number;
}

/** Kafka by our own Produce requests over kafkajs's connections. Throws `KAFKA_TLS` when the PEM text cannot be read. */
export function createPublisher(settings: KafkaSettings, log: Log, counts: KafkaCounts = newKafkaCounts()): Publisher {
  return new KafkaPublisher(settings, log, counts);
}

class KafkaPublisher implements Publisher {
  readonly #settings: KafkaSettings;
  readonly #log: Log;
  readonly #brokers: Brokers;
  readonly #routes = new Routes();
  readonly #topics: Topics;
  readonly #sender: Sender;
  /** Once in, a refusal of credentials or certificate is thought to pass: a broker that is starting, a rotation. */
  #wasIn = false;
  /** Once given an identity, a refusal of the right to write at all is thought to pass: rights that are being changed. */
  #wasProducer = false;
  #closed = false;
  #inFlight = 0;
  #whenIdle: (() => void) | null = null;

  constructor(settings: KafkaSettings, log: Log, counts: KafkaCounts) {
    this.#settings = settings;
    this.#log = log;
    const { clientId, connectTimeoutMs, requestTimeoutMs } = settings;
    const logger = createKafkaJsLogger(({ namespace, log: { message, broker } }) =>
      log.debug('kafka-client', { namespace, message, broker }),
    );
    const sasl = settings.sasl === null ? null : createSasl(settings.sasl, connectTimeoutMs);
    const dial = createDial(settings.tls);
    this.#brokers = new Brokers(settings.brokers, { clientId, sasl, dial, connectTimeoutMs, logger, counts }, log);
    const metadata = new MetadataRefresher(this.#brokers, connectTimeoutMs, ({ brokers, topicMetadata }) => {
      this.#brokers.adopt(brokers);
      for (const entry of topicMetadata) this.#routes.apply(entry, performance.now());
    });
    const limits = new Limits(this.#brokers, connectTimeoutMs, log);
    this.#topics = new Topics(settings, this.#brokers, metadata, this.#routes, limits);
    this.#sender = new Sender(requestTimeoutMs, this.#brokers, metadata, this.#routes, limits, counts);
  }

  async connect(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw STOPPED;
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(STOPPED);
    signal.addEventListener('abort', abort, { once: true });
    try {
      const { brokers } = await Promise.race([
        this.#guarded(this.#brokers.any((link) => askMetadata(link, [], this.#settings.connectTimeoutMs))),
        aborted.promise,
      ]);
      this.#brokers.adopt(brokers);
      this.#wasIn = true;
      this.#log.info('kafka-connected', { brokers: brokers.length });
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async topic(name: string, refresh = false): Promise<TopicState> {
    try {
      return await this.#guarded(this.#topics.state(name, refresh));
    } catch (error) {
      return { as: 'unusable', fault: clientFault(error, name) };
    }
  }

  async newProducer(): Promise<ProducerIdentity> {
    const answer = await this.#guarded(
      this.#brokers.any(async (link) => {
        const args = { transactionalId: null, transactionTimeout: 0 };
        const decoded = await link.call('InitProducerId', args, this.#settings.requestTimeoutMs);
        const { errorCode, ...identity } = decoded as InitProducerIdAnswer;
        if (errorCode !== 0) throw new RelayError(requestFault(errorCode, 'InitProducerId'));
        return identity;
      }),
    );
    this.#wasProducer = true;
    return { id: BigInt(answer.producerId), epoch: answer.producerEpoch };
  }

  async send(batch: SealedBatch): Promise<SendOutcome> {
    if (this.#closed) return { as: 'refused', fault: STOPPED.fault };
    this.#inFlight++;
    try {
      const outcome = await this.#sender.send(batch);
      return outcome.as === 'acked' ? outcome : { ...outcome, fault: this.#tempered(outcome.fault) };
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) this.#whenIdle?.();
    }
  }

  async close(withinMs: number): Promise<void> {
    this.#closed = true;
    if (this.#inFlight > 0) {
      const idle = new Promise<void>((resolve) => (this.#whenIdle = resolve));
      const giveUp = new AbortController();
      await Promise.race([idle, sleep(withinMs, undefined, { signal: giveUp.signal }).catch(() => undefined)]);
      giveUp.abort();
    }
    this.#brokers.close(STOPPED.fault);
  }

  async #guarded<T>(work: Promise<T>): Promise<T> {
    if (this.#closed) throw STOPPED;
    try {
      return await work;
    } catch (error) {
      throw new RelayError(this.#tempered(clientFault(error, 'Kafka')));
    }
  }

  #tempered(found: Fault): Fault {
    const passes =
      (this.#wasIn && AT_THE_DOOR.has(found.code)) ||
      (this.#wasProducer && found.code === 'KAFKA_CLUSTER_AUTHORIZATION_FAILED');
    return passes && found.disposition === 'halt' ? { ...found, disposition: 'retry' } : found;
  }
}

const STOPPED = fault('STOPPED', 'halt', 'the Kafka connection has been closed');

const AT_THE_DOOR: ReadonlySet<string> = new Set([
  'KAFKA_AUTHENTICATION',
  'KAFKA_TLS',
  'KAFKA_SASL_AUTHENTICATION_FAILED',
  'KAFKA_UNSUPPORTED_SASL_MECHANISM',
  'KAFKA_ILLEGAL_SASL_STATE',
]);
