import type { SealedBatch } from '../model/publisher.ts';

/**
 * Produce v3 to v7: one layout of the request; v5 adds a field to the response. v3 is the first with magic-2 batches,
 * v7 (Kafka 2.1) the first that takes zstd. From v9 on the encoding is another one and brings us nothing.
 * https://kafka.apache.org/protocol#The_Messages_Produce
 */
export const PRODUCE_MIN_VERSION = 3;
export const PRODUCE_MAX_VERSION = 7;

/** Where the correlation id goes: the link that writes the request stamps it. */
export const CORRELATION_ID_OFFSET = 8;

const PRODUCE = 0;
const ACKS_ALL = -1;
const NO_STRING = -1;

/**
 * Everything of the request before the record batch, the size that frames it included: the batch follows on the wire
 * as it is, uncopied. `ackTimeoutMs` is how long the leader waits for its replicas.
 */
export function produceHeader(version: number, clientId: string, batch: SealedBatch, ackTimeoutMs: number): Buffer {
  const clientIdBytes = Buffer.byteLength(clientId);
  const topicBytes = Buffer.byteLength(batch.topic);
  const requestBytes = produceBytes(clientId, batch);
  const header = Buffer.allocUnsafe(4 + requestBytes - batch.bytes.length);
  let at = header.writeInt32BE(requestBytes, 0);
  at = header.writeInt16BE(PRODUCE, at);
  at = header.writeInt16BE(version, at);
  at = header.writeInt32BE(0, at);
  at = header.writeInt16BE(clientIdBytes, at);
  at += header.write(clientId, at);
  at = header.writeInt16BE(NO_STRING, at); // transactional id
  at = header.writeInt16BE(ACKS_ALL, at);
  at = header.writeInt32BE(ackTimeoutMs, at);
  at = header.writeInt32BE(1, at); // topics
  at = header.writeInt16BE(topicBytes, at);
  at += header.write(batch.topic, at);
  at = header.writeInt32BE(1, at); // partitions
  at = header.writeInt32BE(batch.partition, at);
  header.writeInt32BE(batch.bytes.length, at);
  return header;
}

/** Size of the request as it is announced to the broker: what `socket.request.max.bytes` is about. */
export function produceBytes(clientId: string, batch: SealedBatch): number {
  return 36 + Buffer.byteLength(clientId) + Buffer.byteLength(batch.topic) + batch.bytes.length;
}

export interface ProduceAnswer {
  readonly errorCode: number;
  /** How long the broker wants to be left alone (quota); 0 is the rule. */
  readonly throttleMs: number;
}

/**
 * Reads the answer to a request for one topic-partition. Null when it does not name exactly that topic and partition,
 * once, or is cut short: such an answer says nothing about the batch.
 */
export function readProduceAnswer(version: number, payload: Buffer, batch: SealedBatch): ProduceAnswer | null {
  const topicBytes = Buffer.byteLength(batch.topic);
  const afterTopic = 4 + 2 + topicBytes;
  const partitionBytes = 4 + 2 + 8 + 8 + (version >= 5 ? 8 : 0);
  const throttleAt = afterTopic + 4 + partitionBytes;
  if (payload.length !== throttleAt + 4) return null;
  const names =
    payload.readInt32BE(0) === 1 &&
    payload.readInt16BE(4) === topicBytes &&
    payload.toString('utf8', 6, afterTopic) === batch.topic &&
    payload.readInt32BE(afterTopic) === 1 &&
    payload.readInt32BE(afterTopic + 4) === batch.partition;
  if (!names) return null;
  return { errorCode: payload.readInt16BE(afterTopic + 8), throttleMs: payload.readInt32BE(throttleAt) };
}
