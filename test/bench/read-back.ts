import type { Kafka } from 'kafkajs';
import { PlainConsumer } from '../stack/plain-consumer.ts';
import { until } from '../stack/until.ts';
import { TOPIC } from './stand.ts';

export interface ReadBack {
  readonly distinct: number;
  readonly duplicates: number;
  /** Records whose number is lower than one that came before under the same key, repeats aside. */
  readonly reordered: number;
}

const WITHIN_MS = 120_000;

/** Reads `records` records of the topic with a plain consumer. */
export async function readBack(client: Kafka, records: number): Promise<ReadBack> {
  const seen = new Set<string>();
  const highest = new Map<string, number>();
  let read = 0;
  let reordered = 0;
  const consumer = new PlainConsumer(client, [TOPIC], ({ key, value, headers }) => {
    read++;
    const id = String(headers['id']);
    if (seen.has(id)) return;
    seen.add(id);
    const number = Number(/"number": ?(\d+)/.exec(String(value))?.[1]);
    // NaN is not above anything: a record without its number counts here too.
    if (number > (highest.get(String(key)) ?? -1)) highest.set(String(key), number);
    else reordered++;
  });
  await consumer.start();
  await until(() => read >= records, { withinMs: WITHIN_MS, what: `${records} records are read back` });
  await consumer.stop();
  return { distinct: seen.size, duplicates: read - seen.size, reordered };
}
