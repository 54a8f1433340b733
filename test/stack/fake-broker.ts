/**
 * A broker that speaks the real protocol over TCP and does what a test tells it: error codes that a real Kafka gives
 * only when it is broken (or not at all), answers that are late, cut, silent or about another partition. Everything
 * that a real Kafka can be made to do is tested on a real Kafka.
 */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { WireReader, WireWriter } from './wire.ts';

const APIS = {
  Produce: 0,
  Metadata: 3,
  SaslHandshake: 17,
  ApiVersions: 18,
  InitProducerId: 22,
  DescribeConfigs: 32,
  SaslAuthenticate: 36,
};
export type Api = keyof typeof APIS;

/** What becomes of one request. Without any of these: the right answer, error code 0. */
export interface Reply {
  readonly errorCode?: number;
  readonly delayMs?: number;
  /** `silent`: no answer ever; `closed`: the connection is closed instead; `half`: after half of the answer. */
  readonly cut?: 'silent' | 'closed' | 'half';
  /** Answers with these bytes in place of what belongs there. */
  readonly raw?: Buffer;
  /** Produce: names another topic or partition than the one asked about. */
  readonly topic?: string;
  readonly partition?: number;
  readonly throttleMs?: number;
  /** Produce: appends the batch although the answer says otherwise. */
  readonly appends?: boolean;
  /** SaslAuthenticate: what the mechanism says. */
  readonly authBytes?: Buffer;
}

export interface FakeTopic {
  readonly errorCode?: number;
  /** Leader's node id by partition. */
  readonly leaders: readonly number[];
  readonly config?: Readonly<Record<string, string>>;
}

const BROKER_RESOURCE = 4;
const UNKNOWN_TOPIC = 3;
const CLUSTER_DENIED = 31;

export interface ReceivedBatch {
  readonly topic: string;
  readonly partition: number;
  readonly bytes: Buffer;
  readonly acks: number;
  readonly version: number;
  /** Counts the connections that this broker has accepted. */
  readonly connection: number;
}

export class FakeBroker implements AsyncDisposable {
  readonly nodeId: number;
  readonly topics = new Map<string, FakeTopic>();
  /** Versions on offer; absent: the API is not offered. */
  readonly versions: Partial<Record<Api, readonly [min: number, max: number]>> = {
    Produce: [0, 11],
    Metadata: [0, 12],
    ApiVersions: [0, 2],
    InitProducerId: [0, 4],
    DescribeConfigs: [1, 4],
    SaslHandshake: [0, 1],
    SaslAuthenticate: [0, 1],
  };
  /** Who is in the metadata; this broker alone by default. */
  members: readonly FakeBroker[] = [this];
  readonly received: ReceivedBatch[] = [];
  readonly appended: ReceivedBatch[] = [];
  readonly asked: Api[] = [];
  /** How many of these it is done with, answered or not. */
  settled = 0;
  connections = 0;
  port = 0;
  /** Closes a connection as soon as it announces a request larger than this, as a real broker does. */
  maxRequestBytes = 100 << 20;
  /** Whether it may be asked for that. */
  tellsItsConfig = false;
  #nextProducerId = 1000n;
  readonly #scripts = new Map<Api, Reply[]>();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(nodeId: number) {
    this.nodeId = nodeId;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async start(nodeId = 1): Promise<FakeBroker> {
    const broker = new FakeBroker(nodeId);
    await new Promise<void>((resolve) => broker.#server.listen(0, '127.0.0.1', resolve));
    broker.port = (broker.#server.address() as AddressInfo).port;
    return broker;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  /** The next requests of this kind get these replies, in order; what comes after them is answered rightly. */
  script(api: Api, ...replies: Reply[]): void {
    this.#scripts.set(api, [...(this.#scripts.get(api) ?? []), ...replies]);
  }

  /** Unasked, to every connection. */
  sendRaw(bytes: Buffer): void {
    for (const socket of this.#sockets) socket.write(bytes);
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    const connection = ++this.connections;
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => undefined);
    // One request after the other, as a real broker reads a connection.
    let turn = Promise.resolve();
    let chunks: Buffer[] = [];
    let bufferedBytes = 0;
    let neededBytes = 4;
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bufferedBytes += chunk.length;
      while (bufferedBytes >= neededBytes) {
        const buffered = Buffer.concat(chunks);
        const requestBytes = buffered.readInt32BE(0);
        if (requestBytes > this.maxRequestBytes) {
          socket.destroy();
          return;
        }
        const end = 4 + requestBytes;
        const isWhole = bufferedBytes >= end;
        if (isWhole) turn = turn.then(() => this.#answer(socket, buffered.subarray(4, end), connection));
        chunks = [isWhole ? buffered.subarray(end) : buffered];
        bufferedBytes = chunks[0].length;
        neededBytes = isWhole ? 4 : end;
      }
    });
  }

  async #answer(socket: Socket, request: Buffer, connection: number): Promise<void> {
    const reader = new WireReader(request);
    const key = reader.int16();
    const version = reader.int16();
    const correlationId = reader.int32();
    reader.string();
    const api = (Object.keys(APIS) as Api[]).find((name) => APIS[name] === key);
    if (api === undefined) {
      socket.destroy();
      return;
    }
    this.asked.push(api);
    const reply = this.#scripts.get(api)?.shift() ?? {};
    const right = this.#body(api, version, reader, reply, connection);
    const body = reply.raw ?? right;
    if (reply.delayMs !== undefined) await sleep(reply.delayMs);
    const answer = new WireWriter()
      .int32(body.length + 4)
      .int32(correlationId)
      .end();
    const whole = Buffer.concat([answer, body]);
    if (reply.cut === 'closed') socket.destroy();
    else if (reply.cut === 'half') socket.end(whole.subarray(0, whole.length / 2));
    else if (reply.cut === undefined && !socket.destroyed) socket.write(whole);
    this.settled++;
  }

  #body(api: Api, version: number, reader: WireReader, reply: Reply, connection: number): Buffer {
    switch (api) {
      case 'ApiVersions':
        return this.#apiVersions(version, reply);
      case 'Metadata':
        return this.#metadata(version, reader);
      case 'InitProducerId':
        return new WireWriter()
          .int32(0)
          .int16(reply.errorCode ?? 0)
          .int64(this.#nextProducerId++)
          .int16(0)
          .end();
      case 'DescribeConfigs':
        return this.#describeConfigs(reader, reply);
      case 'Produce':
        return this.#produce(version, reader, reply, connection);
      case 'SaslHandshake':
        return this.#handshake(reply);
      case 'SaslAuthenticate':
        return new WireWriter()
          .int16(reply.errorCode ?? 0)
          .string(null)
          .bytes(reply.authBytes ?? Buffer.alloc(0))
          .int64(0n)
          .end();
    }
  }

  #apiVersions(version: number, reply: Reply): Buffer {
    const out = new WireWriter().int16(reply.errorCode ?? 0);
    out.array(Object.entries(this.versions), ([api, [min, max]]) =>
      out
        .int16(APIS[api as Api])
        .int16(min)
        .int16(max),
    );
    return (version > 0 ? out.int32(0) : out).end();
  }

  #handshake(reply: Reply): Buffer {
    const out = new WireWriter().int16(reply.errorCode ?? 0);
    return out.array(['PLAIN', 'OAUTHBEARER'], (mechanism) => out.string(mechanism)).end();
  }

  #metadata(version: number, reader: WireReader): Buffer {
    const topics = reader.array(() => reader.string()!);
    const out = new WireWriter().int32(0);
    out.array(this.members, ({ nodeId, port }) => out.int32(nodeId).string('127.0.0.1').int32(port).string(null));
    out.string('fake').int32(this.members[0].nodeId);
    out.array(topics, (name) => {
      const { errorCode = 0, leaders } = this.topics.get(name) ?? { errorCode: 3, leaders: [] };
      out.int16(errorCode).string(name).int8(0);
      out.array([...leaders.entries()], ([partition, leader]) => {
        out
          .int16(leader < 0 ? 5 : 0)
          .int32(partition)
          .int32(leader);
        out.array([leader], (id) => out.int32(id)).array([leader], (id) => out.int32(id));
        if (version >= 5) out.int32(0);
      });
    });
    return out.end();
  }

  #describeConfigs(reader: WireReader, reply: Reply): Buffer {
    const resources = reader.array(() => {
      const [type, name] = [reader.int8(), reader.string()!];
      return { type, name, wanted: reader.array(() => reader.string()!) };
    });
    const out = new WireWriter().int32(0);
    out.array(resources, ({ type, name, wanted }) => {
      const isBroker = type === BROKER_RESOURCE;
      const topic = this.topics.get(name);
      const config = isBroker ? { 'socket.request.max.bytes': String(this.maxRequestBytes) } : (topic?.config ?? {});
      const found = isBroker ? this.tellsItsConfig : topic !== undefined;
      const errorCode = reply.errorCode ?? (found ? 0 : isBroker ? CLUSTER_DENIED : UNKNOWN_TOPIC);
      out.int16(errorCode).string(null).int8(type).string(name);
      const entries = errorCode === 0 ? Object.entries(config).filter(([key]) => wanted.includes(key)) : [];
      out.array(entries, ([key, value]) => {
        out
          .string(key)
          .string(value)
          .int8(0)
          .int8(5)
          .int8(0)
          .array([], () => undefined);
      });
    });
    return out.end();
  }

  #produce(version: number, reader: WireReader, reply: Reply, connection: number): Buffer {
    reader.string();
    const acks = reader.int16();
    reader.int32();
    const topics = reader.array(() => ({
      topic: reader.string()!,
      partitions: reader.array(() => ({ partition: reader.int32(), bytes: reader.bytes() })),
    }));
    const out = new WireWriter();
    out.array(topics, ({ topic, partitions }) => {
      out.string(reply.topic ?? topic).array(partitions, ({ partition, bytes }) => {
        const batch = { topic, partition, bytes: Buffer.from(bytes), acks, version, connection };
        this.received.push(batch);
        if (reply.appends ?? (reply.errorCode ?? 0) === 0) this.appended.push(batch);
        out
          .int32(reply.partition ?? partition)
          .int16(reply.errorCode ?? 0)
          .int64(0n)
          .int64(-1n);
        if (version >= 5) out.int64(0n);
      });
    });
    return out.int32(reply.throttleMs ?? 0).end();
  }
}
