import type { Admin, SeekEntry } from 'kafkajs';
import { eventually } from './until.ts';

const PATIENCE_MS = 20_000;

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
