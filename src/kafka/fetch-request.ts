import type { AbortedTransaction } from '../encoding/record-set.ts';
import { apiKeys, createEncoder, type Exchange } from './kafkajs-internals.ts';

/**
 * Fetch in version 4, which every broker from Kafka 0.11 to 4.x knows: the record set comes back as it is in the log.
 * kafkajs's own answer would make objects of every record, and cannot read zstd.
 * https://kafka.apache.org/protocol#The_Messages_Fetch
 */
const VERSION = 4;
const ANY_REPLICA = -1;
const MIN_BYTES = 1;

export interface FetchArguments {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** A batch that is larger comes all the same, whole. */
  readonly maxBytes: number;
  readonly maxWaitMs: number;
  readonly isolation: Isolation;
}

/** Whether records of transactions that are open, or were aborted, are among those that are read. */
export const Isolation = { Uncommitted: 0, Committed: 1 } as const;
export type Isolation = (typeof Isolation)[keyof typeof Isolation];

export interface FetchAnswer {
  readonly errorCode: number;
  /** Points into the answer. */
  readonly records: Buffer;
  /** Transactions that are no good, of which records may be in the answer; none where all records are asked for. */
  readonly aborted: readonly AbortedTransaction[];
}

export function fetchExchange(args: FetchArguments): Exchange {
  return {
    request: {
      apiKey: apiKeys.Fetch,
      apiVersion: VERSION,
      apiName: 'Fetch',
      encode: () => Promise.resolve(createEncoder().writeBuffer(requestOf(args))),
    },
    response: {
      decode: (payload) => Promise.resolve(answerOf(payload)),
      parse: (decoded) => Promise.resolve(decoded),
    },
  };
}

function requestOf({ topic, partition, offset, maxBytes, maxWaitMs, isolation }: FetchArguments): Buffer {
  const name = Buffer.from(topic);
  const out = Buffer.alloc(17 + 4 + 2 + name.length + 4 + 16);
  out.writeInt32BE(ANY_REPLICA, 0);
  out.writeInt32BE(maxWaitMs, 4);
  out.writeInt32BE(MIN_BYTES, 8);
  out.writeInt32BE(maxBytes, 12);
  out.writeInt8(isolation, 16);
  out.writeInt32BE(1, 17); // topics
  out.writeInt16BE(name.length, 21);
  name.copy(out, 23);
  const at = 23 + name.length;
  out.writeInt32BE(1, at); // partitions
  out.writeInt32BE(partition, at + 4);
  out.writeBigInt64BE(BigInt(offset), at + 8);
  out.writeInt32BE(maxBytes, at + 16);
  return out;
}

/** One topic and one partition were asked for. Throws a RangeError for what is no such answer. */
export function answerOf(payload: Buffer): FetchAnswer & { readonly clientSideThrottleTime: number } {
  const clientSideThrottleTime = payload.readInt32BE(0);
  let at = 8 + 2 + payload.readInt16BE(8); // the number of topics, the topic
  at += 4 + 4; // the number of partitions, the partition
  const errorCode = payload.readInt16BE(at);
  at += 2 + 8 + 8; // and two offsets
  const transactions = Math.max(0, payload.readInt32BE(at));
  at += 4;
  const aborted = Array.from({ length: transactions }, (_, n) => ({
    producerId: payload.readBigInt64BE(at + n * 16),
    firstOffset: Number(payload.readBigInt64BE(at + n * 16 + 8)),
  }));
  at += transactions * 16;
  const length = payload.readInt32BE(at);
  const records = payload.subarray(at + 4, at + 4 + Math.max(0, length));
  return { clientSideThrottleTime, errorCode, records, aborted };
}
