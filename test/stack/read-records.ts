import { randomUUID } from 'node:crypto';
import type { EachBatchPayload, IHeaders, Kafka } from 'kafkajs';
import { topicOffsets } from './patient-admin.ts';

/** A record as a plain consumer sees it. */
export interface ReadRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly timestampMs: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: IHeaders;
  /** Whose batch it came in. */
  readonly producerId: string;
}

const STALL_MS = 20_000;

/**
 * All records of the topics up to the ends of this moment, each partition's in offset order. Throws when nothing
 * comes for 20 s.
 */
export async function readRecords(kafka: Kafka, topics: readonly string[]): Promise<ReadRecord[]> {
  const open = await openPartitions(kafka, topics);
  const records: ReadRecord[] = [];
  if (open.size === 0) return records;
  const consumer = kafka.consumer({
    groupId: `read-${randomUUID()}`,
    maxWaitTimeInMs: 50,
    maxBytesPerPartition: 8 * 1024 * 1024,
    retry: { retries: 10 },
  });
  const done = Promise.withResolvers<undefined>();
  let stall = setTimeout(give, STALL_MS);
  function give(): void {
    done.reject(
      new Error(
        `read ${records.length} records, then nothing for ${STALL_MS} ms; open: ${[...open.keys()].join(', ')}`,
      ),
    );
  }
  done.promise.catch(() => undefined); // may fail before it is awaited
  // With `restart` it begins again by itself: a coordinator that is still loading, a broker that is going.
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (!payload.restart) done.reject(payload.error);
  });
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [...topics], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      partitionsConsumedConcurrently: 4,
      eachBatch: ({ batch }) => {
        clearTimeout(stall);
        stall = setTimeout(give, STALL_MS);
        collect(batch, open, records);
        if (open.size === 0) done.resolve(undefined);
        return Promise.resolve();
      },
    });
    await done.promise;
  } finally {
    clearTimeout(stall);
    await consumer.disconnect();
  }
  return records;
}

function collect(batch: EachBatchPayload['batch'], open: Map<string, bigint>, records: ReadRecord[]): void {
  const name = `${batch.topic}/${batch.partition}`;
  const end = open.get(name);
  if (end === undefined) return;
  for (const message of batch.messages) {
    const { offset, timestamp, key, value, headers } = message;
    const at = BigInt(offset);
    if (at >= end) break;
    const { topic, partition } = batch;
    // kafkajs has it, and its types do not.
    const { producerId } = (message as unknown as { readonly batchContext: { readonly producerId: string } })
      .batchContext;
    records.push({
      ...{ topic, partition, offset: at, timestampMs: Number(timestamp), key, value, headers: headers ?? {} },
      producerId,
    });
  }
  if (BigInt(batch.lastOffset()) + 1n >= end) open.delete(name);
}

/** `topic/partition` → end offset, of those that hold anything. */
async function openPartitions(kafka: Kafka, topics: readonly string[]): Promise<Map<string, bigint>> {
  const open = new Map<string, bigint>();
  const admin = kafka.admin();
  await admin.connect();
  try {
    for (const topic of topics) {
      for (const { partition, low, high } of await topicOffsets(admin, topic)) {
        if (BigInt(high) > BigInt(low)) open.set(`${topic}/${partition}`, BigInt(high));
      }
    }
  } finally {
    await admin.disconnect();
  }
  return open;
}
