/**
 * The only file that reaches into kafkajs. It is pinned to 2.2.4; test/unit/kafka/kafkajs-contract.test.ts holds the
 * version and every shape named here.
 *
 * What is used: `Broker` with its `ConnectionPool` (socket, framing, ApiVersions, SASL, request queue) and the request
 * and response codecs. Not used: `Cluster`, `Producer`. The cluster's metadata parser throws away the whole answer when
 * one topic or one partition in it has an error, so that one leaderless partition stops the sends to all the others.
 */
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';

const require = createRequire(import.meta.url);

export interface SocketRequestOptions {
  entry: {
    apiKey: number;
    apiName: string;
    apiVersion: number;
    correlationId: number;
    resolve: (answer: { payload: Buffer }) => void;
    reject: (error: unknown) => void;
  };
  expectResponse: boolean;
  requestTimeout: number | null;
  sendRequest: () => void;
}

export interface RequestQueue {
  readonly pending: readonly unknown[];
  readonly inflight: ReadonlyMap<number, unknown>;
  push(request: SocketRequestOptions): void;
  scheduleCheckPendingRequests(): void;
}

export interface Connection {
  readonly requestQueue: RequestQueue;
  /** How long the broker lets this authentication count (KIP-368), milliseconds; 0: for ever, or no SASL. */
  readonly sessionLifetime: { toNumber(): number };
  isConnected(): boolean;
  nextCorrelationId(): number;
  /** What the socket's `data` event calls. */
  processData(chunk: Buffer): void;
  /** Rejects everything in flight and everything queued. */
  rejectRequests(error: unknown): void;
  send(exchange: Exchange): Promise<unknown>;
}

export type ApiVersions = Readonly<Record<number, { readonly minVersion: number; readonly maxVersion: number }>>;

export interface Broker {
  readonly versions: ApiVersions | null;
  /** The second connection is for Fetch alone: never opened here. */
  readonly connectionPool: { readonly pool: readonly [Connection, Connection] };
  /** Opens the socket, asks for the API versions, authenticates. */
  connect(): Promise<void>;
}

export interface Encoder {
  readonly buffer: Buffer;
  writeArray(values: readonly string[]): Encoder;
  writeBoolean(value: boolean): Encoder;
  writeBuffer(value: Buffer): Encoder;
}

export interface Request {
  apiKey: number;
  apiVersion: number;
  apiName: string;
  encode: () => Promise<Encoder>;
}

export interface Exchange {
  request: Request;
  response: { decode: (payload: Buffer) => Promise<unknown>; parse: (decoded: unknown) => Promise<unknown> };
}

export interface SaslExchange<T> {
  request: { encode: () => Promise<Buffer> };
  response?: { decode: (authBytes: Buffer) => Promise<unknown>; parse: (decoded: unknown) => Promise<T> };
}

export interface AuthenticationArguments {
  host: string;
  port: number;
  logger: KafkaJsLogger;
  saslAuthenticate: <T>(exchange: SaslExchange<T>) => Promise<T>;
}

export type AuthenticationProvider = (args: AuthenticationArguments) => { authenticate(): Promise<void> };

/** kafkajs's public hook for SASL: used for every mechanism, so that the reason of a failure is not lost. */
export interface Sasl {
  mechanism: string;
  authenticationProvider: AuthenticationProvider;
}

export type SocketFactory = (options: { host: string; port: number; ssl: unknown; onConnect: () => void }) => Socket;

export interface KafkaJsLogger {
  namespace(name: string): KafkaJsLogger;
}

export interface LogEntry {
  namespace: string;
  level: number;
  log: { message: string; broker?: string };
}

export interface BrokerOptions {
  host: string;
  port: number;
  clientId: string;
  sasl: Sasl | null;
  socketFactory: SocketFactory;
  connectTimeoutMs: number;
  logger: KafkaJsLogger;
}

interface ProtocolDefinition {
  readonly versions: readonly string[];
}

interface Credentials {
  username: string;
  password: string;
}

type BrokerClass = new (options: object) => Broker;
type ConnectionPoolClass = new (options: object) => object;
type EncoderClass = new (initialSize?: number) => Encoder;
type ApiKeys = Readonly<
  Record<
    'Produce' | 'Fetch' | 'ListOffsets' | 'Metadata' | 'InitProducerId' | 'CreateTopics' | 'DescribeConfigs',
    number
  >
>;
type LogCreator = (level: number) => (entry: LogEntry) => void;

const BrokerClass = require('kafkajs/src/broker') as BrokerClass;
const ConnectionPoolClass = require('kafkajs/src/network/connectionPool') as ConnectionPoolClass;
const RequestQueueClass = require('kafkajs/src/network/requestQueue') as { prototype: RequestQueue };
const EncoderClass = require('kafkajs/src/protocol/encoder') as EncoderClass;
const { requests, lookup } = require('kafkajs/src/protocol/requests') as {
  requests: Readonly<Record<string, ProtocolDefinition>>;
  lookup: (versions: ApiVersions) => (apiKey: number, definition: ProtocolDefinition) => (args: object) => Exchange;
};
const loggers = require('kafkajs/src/loggers') as {
  LEVELS: { INFO: number };
  createLogger: (options: { level: number; logCreator: LogCreator }) => KafkaJsLogger;
};

export const kafkaJsVersion = (require('kafkajs/package.json') as { version: string }).version;

export const apiKeys = require('kafkajs/src/protocol/requests/apiKeys') as ApiKeys;

const provider = (name: string) =>
  require(`kafkajs/src/broker/saslAuthenticator/${name}`) as (credentials: Credentials) => AuthenticationProvider;

export const authenticators = {
  plain: provider('plain'),
  'scram-sha-256': provider('scram256'),
  'scram-sha-512': provider('scram512'),
};

// As shipped, an idle connection re-arms a 1 ms timer for ever: some 800 wake-ups a second. Without a pending request
// there is nothing to check later, and `push` schedules the check itself when it has to queue one.
// eslint-disable-next-line @typescript-eslint/unbound-method -- called on the queue itself below
const { scheduleCheckPendingRequests } = RequestQueueClass.prototype;
RequestQueueClass.prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
  if (this.pending.length > 0) scheduleCheckPendingRequests.call(this);
};

/** One kafkajs broker that has not connected yet. Made anew for each connection: kafkajs's own do not survive a cut. */
export function createBroker(options: BrokerOptions): Broker {
  const { host, port, clientId, sasl, socketFactory, connectTimeoutMs, logger } = options;
  const connectionPool = new ConnectionPoolClass({
    host,
    port,
    clientId,
    sasl,
    socketFactory,
    logger,
    // The link's own time-outs strike first and destroy the socket; kafkajs's would leave it open.
    connectionTimeout: connectTimeoutMs + 1000,
    requestTimeout: connectTimeoutMs,
    enforceRequestTimeout: false,
    maxInFlightRequests: null,
    // Not before it is too late: a link whose session ends is replaced by another.
    reauthenticationThreshold: 0,
  });
  return new BrokerClass({ connectionPool, logger, allowAutoTopicCreation: false });
}

export function createKafkaJsLogger(write: (entry: LogEntry) => void): KafkaJsLogger {
  return loggers.createLogger({ level: loggers.LEVELS.INFO, logCreator: () => write });
}

export function createEncoder(): Encoder {
  return new EncoderClass();
}

/**
 * The exchange in the newest version that both sides know. Its response only decodes: error codes are left in the
 * answer (kafkajs's `parse` would throw the first one, without saying whose it is).
 */
export function exchange(versions: ApiVersions, api: keyof typeof apiKeys, args: object): Exchange {
  const { request, response } = lookup(versions)(apiKeys[api], requests[api])(args);
  return { request, response: { decode: response.decode, parse: (decoded) => Promise.resolve(decoded) } };
}
