import { fault, type RelayError } from '../../../src/model/fault.ts';
import type {
  ProducerIdentity,
  Publisher,
  SealedBatch,
  SendOutcome,
  TopicState,
} from '../../../src/model/publisher.ts';
import type { Broker, Sending } from './broker.ts';
import { decodeBatch } from './decode-batch.ts';
import type { Life } from './life.ts';
import type { Watch } from './watch.ts';

const REQUEST_TIMEOUT_MS = 40;
/** Request and answer of a healthy broker take less than the time there is. */
const HALF_MS = REQUEST_TIMEOUT_MS / 2;
/** A request that was given up reaches its broker so much later. */
const LATE_MS = 150;

/** Kafka as one process of the relay sees it. */
export class SimulatedPublisher implements Publisher {
  readonly #broker: Broker;
  readonly #life: Life;
  readonly #watch: Watch;
  readonly #known = new Map<string, TopicState>();

  constructor(broker: Broker, life: Life, watch: Watch) {
    this.#broker = broker;
    this.#life = life;
    this.#watch = watch;
  }

  connect(): Promise<void> {
    return this.#life.ask('other', () => this.#reach());
  }

  async topic(name: string, refresh = false): Promise<TopicState> {
    const known = this.#known.get(name);
    if (known !== undefined && !refresh) return known;
    const state = await this.#life.ask('topic', (): TopicState => {
      if (!this.#broker.isReachable) return { as: 'unusable', fault: unreachable().fault };
      const topic = this.#broker.topics.get(name)!;
      if (!topic.isKnown)
        return { as: 'unusable', fault: fault('KAFKA_UNKNOWN_TOPIC_OR_PARTITION', 'park', name).fault };
      return { as: 'known', partitions: topic.partitions.length, maxBatchBytes: null };
    });
    if (state.as === 'known') this.#known.set(name, state);
    return state;
  }

  newProducer(): Promise<ProducerIdentity> {
    return this.#life.ask('other', () => {
      this.#reach();
      return { id: this.#broker.newProducer(), epoch: 0 };
    });
  }

  send({ topic, partition, bytes }: SealedBatch): Promise<SendOutcome> {
    const { loop } = this.#life;
    // The relay may use its buffer again when it has given a batch up: what is on the wire stays as it is.
    if (this.#life.isPaused) this.#watch.pausedWork(`${this.#life.name} sends to ${topic}/${partition}`);
    const sending = this.#watch.sent({ topic, partition, batch: decodeBatch(Buffer.from(bytes)) });
    return new Promise((resolve) => {
      const answer = (outcome: SendOutcome): void => this.#life.inside(() => resolve(outcome));
      const isDone = loop.in(REQUEST_TIMEOUT_MS, () => answer(uncertain()));
      loop.in(loop.delayMs() % HALF_MS, () => {
        const outcome = this.#arrives(sending);
        if (outcome === null) return;
        loop.in(loop.delayMs() % HALF_MS, () => {
          isDone();
          answer(outcome);
        });
      });
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #reach(): void {
    if (!this.#broker.isReachable) throw unreachable();
  }

  /** Null: no answer. */
  #arrives(sending: Sending): SendOutcome | null {
    if (!this.#life.hasSent()) return null;
    if (!this.#broker.isReachable) return { as: 'refused', fault: unreachable().fault };
    const how = this.#broker.partition(sending.topic, sending.partition).fault;
    switch (how) {
      case 'refused':
        return { as: 'refused', fault: fault('KAFKA_NOT_ENOUGH_REPLICAS', 'retry', 'a replica is away').fault };
      case 'producer':
        return { as: 'refused', fault: fault('KAFKA_INVALID_PRODUCER_EPOCH', 'renew', 'another one is newer').fault };
      case 'forbidden':
        return { as: 'refused', fault: fault('KAFKA_TOPIC_AUTHORIZATION_FAILED', 'park', 'no right to write').fault };
      case 'lost':
        return null;
      case 'late':
        this.#life.loop.in(LATE_MS, () => {
          this.#watch.mayMix();
          this.#broker.append(sending);
        });
        return null;
      case 'unanswered':
        this.#watch.faulted();
        this.#broker.append(sending);
        return null;
      case null:
        return outcomeOf(this.#broker.append(sending));
    }
  }
}

function outcomeOf(appended: ReturnType<Broker['append']>): SendOutcome {
  if (appended === 'appended' || appended === 'duplicate') return { as: 'acked', duplicate: appended === 'duplicate' };
  return { as: 'refused', fault: fault(`KAFKA_${appended.refused}`, appended.disposition, 'the broker says so').fault };
}

function unreachable(): RelayError {
  return fault('KAFKA_UNREACHABLE', 'retry', 'no broker can be reached');
}

function uncertain(): SendOutcome {
  return { as: 'uncertain', fault: fault('KAFKA_TIMEOUT', 'retry', 'no answer').fault };
}
