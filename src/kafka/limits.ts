import type { Log } from '../model/log.ts';
import type { BrokerNode, Brokers } from './brokers.ts';
import { clientFault } from './client-faults.ts';
import { requestFault, UNKNOWN_TOPIC_OR_PARTITION } from './fault-table.ts';
import type { Link } from './link.ts';

/** As decoded by kafkajs, error codes left in. https://kafka.apache.org/protocol#The_Messages_DescribeConfigs */
interface DescribeConfigsAnswer {
  readonly resources: readonly {
    readonly errorCode: number;
    readonly resourceName: string;
    readonly configEntries: readonly { readonly configName: string; readonly configValue: string | null }[];
  }[];
}

const TOPIC = 2;
const BROKER = 4;
/** A batch must be no larger than the first, and fit into one segment. Effective values: broker defaults included. */
const TOPIC_LIMITS = ['max.message.bytes', 'segment.bytes'];
const REQUEST_LIMIT = ['socket.request.max.bytes'];

/** An answer so young need not be asked for again before somebody is refused by it. */
const FRESH_MS = 5_000;

interface TopicLimit {
  readonly bytes: number;
  readonly askedMs: number;
}

/**
 * How large a batch may be, as far as the brokers tell us: asking needs rights (DescribeConfigs) that a relay may not
 * have. Nothing depends on the answer but that what is too large is found before it is sent.
 */
export class Limits {
  readonly #brokers: Brokers;
  readonly #timeoutMs: number;
  readonly #log: Log;
  readonly #topics = new Map<string, TopicLimit>();
  /** By connection: the broker's setting changes with its restart only. */
  readonly #requests = new WeakMap<Link, Promise<number | null>>();
  #wanted = new Set<string>();
  #next: Promise<void> | null = null;
  #last: Promise<void> = Promise.resolve();
  readonly #told = new Set<string>();

  constructor(brokers: Brokers, timeoutMs: number, log: Log) {
    this.#brokers = brokers;
    this.#timeoutMs = timeoutMs;
    this.#log = log;
  }

  /** The largest batch of a topic; null: not known. */
  batchBytes(topic: string): number | null {
    return this.#topics.get(topic)?.bytes ?? null;
  }

  isFresh(topic: string): boolean {
    const limit = this.#topics.get(topic);
    return limit !== undefined && performance.now() - limit.askedMs < FRESH_MS;
  }

  /** Asks again, in one request with all others that are wanted meanwhile. What is known stays where no answer comes. */
  async ask(topic: string): Promise<number | null> {
    this.#wanted.add(topic);
    this.#next ??= this.#run();
    await this.#next;
    return this.batchBytes(topic);
  }

  /** The largest request that a broker reads; null: not known. */
  async requestBytes(node: BrokerNode, nodeId: number): Promise<number | null> {
    let link: Link;
    try {
      link = await node.config.get();
    } catch (error) {
      this.#tell(node.name, clientFault(error, node.name).code);
      return null;
    }
    let limit = this.#requests.get(link);
    if (limit === undefined) this.#requests.set(link, (limit = this.#askRequestBytes(link, nodeId)));
    return limit;
  }

  #run(): Promise<void> {
    const run = (async () => {
      await this.#last;
      const topics = [...this.#wanted];
      this.#wanted = new Set();
      this.#next = null;
      const askedMs = performance.now();
      try {
        const ask = (link: Link) => this.#describe(link, TOPIC, topics, TOPIC_LIMITS);
        const { resources } = await this.#brokers.any(ask, 'config');
        for (const resource of resources) this.#learn(resource, askedMs);
      } catch (error) {
        this.#tell(topics[0], clientFault(error, 'DescribeConfigs').code);
      }
    })();
    this.#last = run;
    return run;
  }

  #learn(resource: DescribeConfigsAnswer['resources'][number], askedMs: number): void {
    const { errorCode, resourceName: topic } = resource;
    const bytes = lowest(resource, TOPIC_LIMITS);
    if (errorCode === UNKNOWN_TOPIC_OR_PARTITION) this.#topics.delete(topic);
    else if (errorCode !== 0) this.#tell(topic, requestFault(errorCode, topic).code);
    else if (bytes !== null) this.#topics.set(topic, { bytes, askedMs });
  }

  async #askRequestBytes(link: Link, nodeId: number): Promise<number | null> {
    try {
      const { resources } = await this.#describe(link, BROKER, [String(nodeId)], REQUEST_LIMIT);
      for (const resource of resources) {
        if (resource.errorCode === 0) return lowest(resource, REQUEST_LIMIT);
        this.#tell(link.name, requestFault(resource.errorCode, link.name).code);
      }
    } catch (error) {
      this.#tell(link.name, clientFault(error, link.name).code);
    }
    return null;
  }

  async #describe(
    link: Link,
    type: number,
    names: readonly string[],
    configNames: readonly string[],
  ): Promise<DescribeConfigsAnswer> {
    const resources = names.map((name) => ({ type, name, configNames }));
    return (await link.call('DescribeConfigs', { resources }, this.#timeoutMs)) as DescribeConfigsAnswer;
  }

  /** Once for each reason: nothing is wrong with a relay that may not ask. */
  #tell(of: string, code: string): void {
    if (this.#told.has(code)) return;
    this.#told.add(code);
    this.#log.debug('kafka-limits-unknown', { of, code });
  }
}

function lowest(resource: DescribeConfigsAnswer['resources'][number], names: readonly string[]): number | null {
  const values = resource.configEntries
    .filter(({ configName }) => names.includes(configName))
    .map(({ configValue }) => Number(configValue ?? NaN))
    .filter((value) => value > 0);
  return values.length === 0 ? null : Math.min(...values);
}
