import type { Admin, ITopicConfig, SeekEntry } from 'kafkajs';
import { eventually } from './until.ts';

const PATIENCE_MS = 60_000;

/*
 * kafkajs's admin gives up on what passes by itself: a list of all topics while any test deletes one, offsets of a
 * topic whose leader has just been named. It is asked again.
 */

/** All topics of the cluster. */
export function topicNames(admin: Admin): Promise<string[]> {
  return eventually(() => admin.listTopics(), { withinMs: PATIENCE_MS, what: 'the names of all topics' });
}

/** First and end offset of each partition of a topic. */
export function topicOffsets(admin: Admin, topic: string): Promise<(SeekEntry & { high: string; low: string })[]> {
  return eventually(() => admin.fetchTopicOffsets(topic), { withinMs: PATIENCE_MS, what: `offsets of ${topic}` });
}

/** Returns when every partition has its leader. (The library's own wait fails where a broker hears of a topic late.) */
export async function createTopics(admin: Admin, wanted: ITopicConfig[]): Promise<void> {
  const names = wanted.map(({ topic }) => topic);
  const create = () => admin.createTopics({ topics: wanted, waitForLeaders: false });
  await eventually(create, { withinMs: PATIENCE_MS, what: `to make ${names.join(', ')}` });
  const led = async () => {
    const { topics } = await admin.fetchTopicMetadata({ topics: names });
    for (const { name, partitions } of topics) {
      if (partitions.some(({ leader }) => leader < 0)) throw new Error(`${name} has a partition without a leader`);
    }
  };
  await eventually(led, { withinMs: PATIENCE_MS, what: `leaders of ${names.join(', ')}` });
}
