import type { Socket } from 'node:net';
import { fault, RelayError, type Fault, type FaultCode } from '../model/fault.ts';
import type { SealedBatch } from '../model/publisher.ts';
import type { KafkaCounts } from '../model/server-counts.ts';
import { clientFault, isPeerClosed, timeout, unreachable, unsupported } from './client-faults.ts';
import { formatAddress, type Address, type Dial } from './dial.ts';
import {
  apiKeys,
  createBroker,
  exchange,
  type Broker,
  type Connection,
  type Exchange,
  type KafkaJsLogger,
  type Sasl,
} from './kafkajs-internals.ts';
import {
  CORRELATION_ID_OFFSET,
  PRODUCE_MAX_VERSION,
  PRODUCE_MIN_VERSION,
  produceBytes,
  produceHeader,
} from './produce-request.ts';

export interface LinkOptions {
  readonly clientId: string;
  readonly sasl: Sasl | null;
  readonly dial: Dial;
  /** Bounds the opening as a whole: name look-up, TCP, TLS, versions, SASL. */
  readonly connectTimeoutMs: number;
  readonly logger: KafkaJsLogger;
  readonly counts: KafkaCounts;
}

/**
 * One connection to one broker, from its opening to its end. It ends once and for good (the peer closes it, an error,
 * `drop`); what was in flight on it is then rejected, and whoever needs the broker opens another.
 */
export class Link {
  readonly address: Address;
  readonly name: string;
  whenEnded: ((why: Fault) => void) | null = null;
  readonly #options: LinkOptions;
  readonly #broker: Broker;
  readonly #connection: Connection;
  #socket: Socket | null = null;
  #end: Fault | null = null;
  /** Who is waiting for something of this link and must hear of its end. */
  readonly #waiting = new Set<(error: RelayError) => void>();
  #produceVersion = 0;
  #throttledUntilMs = 0;
  #freshUntilMs = Infinity;
  #retired = false;

  constructor(address: Address, options: LinkOptions) {
    this.address = address;
    this.name = formatAddress(address);
    this.#options = options;
    this.#broker = createBroker({
      ...address,
      ...options,
      socketFactory: ({ onConnect }) => (this.#socket = this.#dial(onConnect)),
    });
    [this.#connection] = this.#broker.connectionPool.pool;
    // Runs in the socket's data event: a throw there would end the process.
    const processData = this.#connection.processData.bind(this.#connection);
    this.#connection.processData = (chunk) => {
      try {
        processData(chunk);
      } catch (error) {
        this.drop(clientFault(error, `${this.name}: the broker's answer`));
      }
    };
  }

  /** Rejects with a `RelayError`; the link is at its end then. */
  async open(): Promise<void> {
    try {
      await this.#within(this.#options.connectTimeoutMs, 'no connection in time', this.#broker.connect());
      const { minVersion, maxVersion } = this.#broker.versions?.[apiKeys.Produce] ?? { minVersion: 0, maxVersion: -1 };
      this.#produceVersion = Math.min(PRODUCE_MAX_VERSION, maxVersion);
      if (this.#produceVersion < Math.max(PRODUCE_MIN_VERSION, minVersion)) {
        throw new RelayError(unsupported(this.name, `Produce v${minVersion} to v${maxVersion} is not for this client`));
      }
      const sessionMs = this.#connection.sessionLifetime.toNumber();
      if (sessionMs > 0) this.#freshUntilMs = performance.now() + sessionMs * SESSION_SHARE;
    } catch (error) {
      const why = this.#end ?? clientFault(error, this.name);
      this.drop(why);
      if (isPeerClosed(error)) throw new RelayError(unreachable(error, this.name, CLOSED_BEFORE_READY));
      throw new RelayError(why);
    }
  }

  get ended(): boolean {
    return this.#end !== null;
  }

  /** Null: it lives. */
  get endedBy(): FaultCode | null {
    return this.#end?.code ?? null;
  }

  /** The broker's session time is running out (KIP-368): the next request should go over another link. */
  get expiring(): boolean {
    return performance.now() > this.#freshUntilMs;
  }

  /** Ends the link as soon as nothing is in flight on it. */
  retire(): void {
    this.#retired = true;
    if (this.#connection.requestQueue.inflight.size === 0) this.drop(RETIRED);
  }

  get produceVersion(): number {
    return this.#produceVersion;
  }

  /** Quota: when the next Produce may be sent (`performance.now()`). The broker would not read it sooner. */
  get throttledUntilMs(): number {
    return this.#throttledUntilMs;
  }

  throttle(ms: number): void {
    if (ms > 0) this.#throttledUntilMs = Math.max(this.#throttledUntilMs, performance.now() + ms);
  }

  /** Size of the request that would carry the batch. */
  requestBytes(batch: SealedBatch): number {
    return produceBytes(this.#options.clientId, batch);
  }

  /**
   * Writes the request before it returns, and resolves with the answer's bytes. The batch is not copied: it must not
   * change until the promise has settled. Rejected when the link ends: then nobody knows what became of the batch.
   */
  produce(batch: SealedBatch, ackTimeoutMs: number): Promise<Buffer> {
    if (this.#end !== null || this.#socket === null) return Promise.reject(new RelayError(this.#end ?? NOT_OPEN));
    const socket = this.#socket;
    const header = produceHeader(this.#produceVersion, this.#options.clientId, batch, ackTimeoutMs);
    const correlationId = this.#connection.nextCorrelationId();
    header.writeInt32BE(correlationId, CORRELATION_ID_OFFSET);
    const writtenMs = performance.now();
    return new Promise((resolve, reject) => {
      this.#connection.requestQueue.push({
        entry: {
          apiKey: apiKeys.Produce,
          apiName: 'Produce',
          apiVersion: this.#produceVersion,
          correlationId,
          resolve: ({ payload }) => {
            this.#options.counts.onAnswer('Produce', performance.now() - writtenMs);
            resolve(payload);
            if (this.#retired) this.retire();
          },
          reject,
        },
        expectResponse: true,
        requestTimeout: null,
        sendRequest: () => {
          socket.cork();
          socket.write(header);
          socket.write(batch.bytes);
          socket.uncork();
        },
      });
    });
  }

  /** Any other request, in the newest version both sides know; resolves with the decoded answer, error codes in it. */
  call(api: keyof typeof apiKeys, args: object, timeoutMs: number): Promise<unknown> {
    return this.exchange((versions) => exchange(versions, api, args), timeoutMs);
  }

  /** The same for a request that kafkajs cannot make by itself. */
  async exchange(make: (versions: NonNullable<Broker['versions']>) => Exchange, timeoutMs: number): Promise<unknown> {
    const { versions } = this.#broker;
    if (this.#end !== null || versions === null) throw new RelayError(this.#end ?? NOT_OPEN);
    try {
      const made = make(versions);
      const writtenMs = performance.now();
      const answer = await this.#within(timeoutMs, 'no answer in time', this.#connection.send(made));
      this.#options.counts.onAnswer(made.request.apiName, performance.now() - writtenMs);
      return answer;
    } catch (error) {
      throw new RelayError(clientFault(error, this.name));
    }
  }

  /** Ends the link at once: the socket is destroyed, what is in flight is rejected with `why`. */
  drop(why: Fault): void {
    if (this.#end !== null) return;
    this.#end = why;
    const error = new RelayError(why);
    this.#connection.rejectRequests(error);
    for (const reject of this.#waiting) reject(error);
    this.#socket?.destroy(error);
    this.whenEnded?.(why);
  }

  /** `work`, or the end of the link: no request may stay for ever on a connection that does not answer. */
  #within<T>(timeoutMs: number, why: string, work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.drop(timeout(this.name, why)), timeoutMs);
      this.#waiting.add(reject);
      const settled = () => {
        clearTimeout(timer);
        this.#waiting.delete(reject);
      };
      work.finally(settled).then(resolve, reject);
    });
  }

  /** kafkajs would call whatever goes wrong here a connection that failed. */
  #dial(onConnect: () => void): Socket {
    try {
      return this.#watch(this.#options.dial(this.address, onConnect));
    } catch (error) {
      this.drop(clientFault(error, this.name));
      throw error;
    }
  }

  #watch(socket: Socket): Socket {
    if (this.#end !== null) socket.destroy();
    const lost = (error: unknown) => this.drop(clientFault(error, this.name));
    socket.on('error', lost);
    // kafkajs would answer the peer's FIN with its own and wait for the rest; a frozen peer never sends that.
    socket.on('end', () => lost(PEER_ENDED));
    socket.on('close', () => lost(PEER_ENDED));
    return socket;
  }
}

/** A link is replaced when this part of its session is over, as Java's client does. */
const SESSION_SHARE = 0.85;

const PEER_ENDED = Object.assign(new Error('the broker closed the connection'), { code: 'ECONNRESET' });
const CLOSED_BEFORE_READY =
  'the broker closed the connection before it answered: a broker that is starting, or a listener that wants TLS or SASL';
const RETIRED = fault('STOPPED', 'retry', 'the connection is no longer needed').fault;
const NOT_OPEN = fault('KAFKA_UNREACHABLE', 'retry', 'the connection is not open').fault;
