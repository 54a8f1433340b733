import { apiKeys, createEncoder, type Exchange } from './kafkajs-internals.ts';

/**
 * Metadata in version 8 (Kafka 2.3 and later), which kafkajs does not know: it alone says what the user may do.
 * https://kafka.apache.org/protocol#The_Messages_Metadata
 */
export const AUTHORIZED_OPERATIONS_VERSION = 8;

const NOT_TOLD = -2_147_483_648;

export interface ClusterMetadata {
  readonly brokers: readonly { readonly nodeId: number; readonly host: string; readonly port: number }[];
  /** A bit for each operation (AclOperation); null: the broker does not tell. */
  readonly operations: number | null;
  readonly topics: readonly TopicDescription[];
}

export interface TopicDescription {
  readonly errorCode: number;
  readonly topic: string;
  readonly partitions: readonly PartitionDescription[];
  readonly operations: number | null;
}

export interface PartitionDescription {
  /** -1: none at present. */
  readonly leader: number;
  readonly replicas: number;
  readonly inSync: number;
}

/** For the topics named, and no others; none of them is created by asking. */
export function clusterMetadataExchange(topics: readonly string[]): Exchange {
  const flags = Buffer.of(0, 1, 1); // creation, operations on the cluster, operations on topics
  return {
    request: {
      apiKey: apiKeys.Metadata,
      apiVersion: AUTHORIZED_OPERATIONS_VERSION,
      apiName: 'Metadata',
      encode: () => Promise.resolve(createEncoder().writeArray(topics).writeBuffer(flags)),
    },
    response: {
      decode: (payload) => Promise.resolve(readClusterMetadata(payload)),
      parse: (decoded) => Promise.resolve(decoded),
    },
  };
}

/** Throws a RangeError for what is no such answer. */
export function readClusterMetadata(payload: Buffer): ClusterMetadata & { readonly clientSideThrottleTime: number } {
  const reader = new Reader(payload);
  const clientSideThrottleTime = reader.int32();
  const brokers = reader.list(() => {
    const broker = { nodeId: reader.int32(), host: reader.text(), port: reader.int32() };
    reader.text(); // its rack
    return broker;
  });
  reader.text(); // the cluster's id
  reader.int32(); // its controller
  const topics = reader.list(() => {
    const topic = { errorCode: reader.int16(), topic: reader.text() };
    reader.skip(1); // internal or not
    const partitions = reader.list(() => {
      reader.skip(2 + 4); // error code, index
      const leader = reader.int32();
      reader.skip(4); // epoch
      const [replicas, inSync] = [reader.ids(), reader.ids()];
      reader.ids(); // offline
      return { leader, replicas, inSync };
    });
    return { ...topic, partitions, operations: told(reader.int32()) };
  });
  return { clientSideThrottleTime, brokers, topics, operations: told(reader.int32()) };
}

function told(operations: number): number | null {
  return operations === NOT_TOLD ? null : operations;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  skip(bytes: number): number {
    const at = this.#at;
    this.#at += bytes;
    return at;
  }

  int16(): number {
    return this.#bytes.readInt16BE(this.skip(2));
  }

  int32(): number {
    return this.#bytes.readInt32BE(this.skip(4));
  }

  /** Null is the empty text. */
  text(): string {
    const length = Math.max(0, this.int16());
    const at = this.skip(length);
    if (this.#at > this.#bytes.length) throw new RangeError('a text reaches beyond the answer');
    return this.#bytes.toString('utf8', at, this.#at);
  }

  list<T>(each: () => T): T[] {
    const count = Math.max(0, this.int32());
    if (count > this.#bytes.length) throw new RangeError('a list reaches beyond the answer');
    return Array.from({ length: count }, each);
  }

  /** How many. */
  ids(): number {
    return this.list(() => this.int32()).length;
  }
}
