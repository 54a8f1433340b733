import { RelayError, type Fault } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { ConnectCause } from '../model/server-counts.ts';
import { count } from '../model/stats.ts';
import { clientFault } from './client-faults.ts';
import { formatAddress, parseAddress, type Address } from './dial.ts';
import { Link, type LinkOptions } from './link.ts';

/** When the broker that was asked has not answered within this, the next one is asked too. */
const HEDGE_MS = 500;

/** A connection that is opened when it is needed and again when it has ended; opened once for all who wait. */
export class LinkSlot {
  readonly #open: (cause: ConnectCause) => Promise<Link>;
  #link: Link | null = null;
  #opening: Promise<Link> | null = null;

  constructor(open: (cause: ConnectCause) => Promise<Link>) {
    this.#open = open;
  }

  /** The link, if it can be used this moment. */
  get ready(): Link | null {
    const link = this.#link;
    return link === null || link.ended || link.expiring ? null : link;
  }

  /** Rejects with a `RelayError`. */
  async get(): Promise<Link> {
    const { ready } = this;
    if (ready !== null) return ready;
    this.#opening ??= this.#replace().finally(() => (this.#opening = null));
    return this.#opening;
  }

  async #replace(): Promise<Link> {
    const link = await this.#open(this.#link === null ? 'FIRST' : (this.#link.endedBy ?? 'SESSION_EXPIRES'));
    this.#link?.retire();
    this.#link = link;
    return link;
  }
}

/**
 * One broker by its address. A broker answers the requests of one connection in order: metadata must not wait behind
 * batches that wait for replicas, and nothing behind questions about configuration, which the relay can do without.
 */
export class BrokerNode {
  readonly name: string;
  readonly data: LinkSlot;
  readonly control: LinkSlot;
  readonly config: LinkSlot;
  /** Null: the last attempt to open a connection went well, or there was none. */
  failedAtMs: number | null = null;
  readonly #open: (cause: ConnectCause) => Promise<Link>;

  constructor(name: string, open: (cause: ConnectCause) => Promise<Link>) {
    this.name = name;
    this.#open = open;
    this.data = new LinkSlot(open);
    this.control = new LinkSlot(open);
    this.config = new LinkSlot(open);
  }

  /** A connection that nobody else uses; the caller drops it. */
  ownLink(): Promise<Link> {
    return this.#open('APART');
  }
}

/** The brokers that are known: those of the configuration, then those of the cluster's metadata. */
export class Brokers {
  readonly #options: LinkOptions;
  readonly #log: Log;
  readonly #byName = new Map<string, BrokerNode>();
  readonly #seeds: readonly BrokerNode[];
  #byId = new Map<number, BrokerNode>();
  readonly #links = new Set<Link>();
  #closed: Fault | null = null;

  constructor(seeds: readonly string[], options: LinkOptions, log: Log) {
    this.#options = options;
    this.#log = log;
    this.#seeds = seeds.map((seed) => this.at(parseAddress(seed)));
  }

  /** What the metadata says; ids keep their connections as long as their address stays. */
  adopt(brokers: readonly { readonly nodeId: number; readonly host: string; readonly port: number }[]): void {
    if (brokers.length === 0) return;
    this.#byId = new Map(brokers.map(({ nodeId, host, port }) => [nodeId, this.at({ host, port })]));
    const known = new Set([...this.#seeds, ...this.#byId.values()]);
    for (const [name, node] of this.#byName) if (!known.has(node)) this.#byName.delete(name);
  }

  node(id: number): BrokerNode | undefined {
    return this.#byId.get(id);
  }

  /**
   * Asks one broker after the other until one answers; a slow one does not hold up the next. Rejects with the
   * `RelayError` that tells most: one that nobody can retry away, else the last.
   */
  any<T>(ask: (link: Link) => Promise<T>, over: 'control' | 'config' = 'control'): Promise<T> {
    const candidates = this.#candidates();
    return new Promise((resolve, reject) => {
      let next = 0;
      let asking = 0;
      let timer: NodeJS.Timeout | undefined;
      let worst: Fault | null = null;
      const launch = () => {
        clearTimeout(timer);
        const node = candidates[next++];
        if (next < candidates.length) timer = setTimeout(launch, HEDGE_MS);
        asking++;
        node[over]
          .get()
          .then(ask)
          .then(
            (answer) => {
              next = candidates.length;
              clearTimeout(timer);
              resolve(answer);
            },
            (error: unknown) => {
              asking--;
              const fault = clientFault(error, node.name);
              if (worst?.disposition !== 'halt') worst = fault;
              if (next < candidates.length) launch();
              else if (asking === 0) reject(new RelayError(worst));
            },
          );
      };
      launch();
    });
  }

  /** Ends every connection, and none is opened again. */
  close(why: Fault): void {
    this.#closed = why;
    for (const link of this.#links) link.drop(why);
  }

  /** Those with an open connection first, those that failed last come last. */
  #candidates(): BrokerNode[] {
    const nodes = [...new Set([...this.#byId.values(), ...this.#seeds])];
    const rank = (node: BrokerNode) => (node.control.ready !== null ? -1 : (node.failedAtMs ?? 0));
    return nodes.sort((a, b) => rank(a) - rank(b));
  }

  at(address: Address): BrokerNode {
    const name = formatAddress(address);
    let node = this.#byName.get(name);
    if (node === undefined) {
      const made: BrokerNode = new BrokerNode(name, (cause) => this.#open(made, address, cause));
      this.#byName.set(name, made);
      node = made;
    }
    return node;
  }

  async #open(node: BrokerNode, address: Address, cause: ConnectCause): Promise<Link> {
    if (this.#closed !== null) throw new RelayError(this.#closed);
    const link = new Link(address, this.#options);
    const { counts } = this.#options;
    let isOpen = false;
    this.#links.add(link);
    link.whenEnded = ({ code, detail }) => {
      this.#links.delete(link);
      if (isOpen) counts.open--;
      this.#log.debug('kafka-connection-ended', { broker: node.name, code, detail });
    };
    try {
      await link.open();
    } catch (error) {
      const { code, detail } = clientFault(error, node.name);
      if (node.failedAtMs === null) this.#log.warn('kafka-broker-lost', { broker: node.name, code, detail });
      node.failedAtMs = performance.now();
      throw error;
    }
    isOpen = true;
    counts.open++;
    count(counts.connects, cause);
    if (node.failedAtMs !== null) this.#log.info('kafka-broker-back', { broker: node.name });
    node.failedAtMs = null;
    return link;
  }
}
