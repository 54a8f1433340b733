import type { Kafka } from 'kafkajs';
import { TOPIC } from './stand.ts';

export interface ReadBack {
  readonly distinct: number;
  readonly duplicates: number;
  /** Records whose number is lower than one that came before under the same key, repeats aside. */
  readonly reordered: number;
}

const STALL_MS = 30_000;

/** Reads `records` records of the topic with a plain consumer. */
export async function readBack(client: Kafka, records: number): Promise<ReadBack> {
  const consumer = client.consumer({ groupId: 'read-back', maxBytesPerPartition: 4 * 1024 * 1024 });
  const seen = new Set<string>();
  const highest = new Map<string, number>();
  let read = 0;
  let reordered = 0;
  let readMs = performance.now();
  await consumer.connect();
  await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
  const done = new Promise<void>((resolve, reject) => {
    const timer = setInterval(() => {
      if (read < records && performance.now() - readMs < STALL_MS) return;
      clearInterval(timer);
      if (read < records) reject(new Error(`read back ${read} of ${records} records`));
      else resolve();
    }, 20);
  });
  await consumer.run({
    eachBatch: ({ batch }) => {
      for (const { key, value, headers } of batch.messages) {
        read++;
        const id = String(headers?.['id']);
        const repeated = seen.has(id);
        if (repeated) continue;
        seen.add(id);
        const number = Number(/"number": ?(\d+)/.exec(String(value))?.[1]);
        const before = highest.get(String(key)) ?? -1;
        // NaN is not above anything: a record without its number counts here too.
        if (number > before) highest.set(String(key), number);
        else reordered++;
      }
      readMs = performance.now();
      return Promise.resolve();
    },
  });
  await done;
  await consumer.disconnect();
  return { distinct: seen.size, duplicates: read - seen.size, reordered };
}
