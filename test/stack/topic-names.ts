import type { Admin } from 'kafkajs';
import { eventually } from './until.ts';

/**
 * All topics of the cluster. kafkajs's own list throws when a topic of any other test file is being deleted at that
 * moment: it is asked again.
 */
export function topicNames(admin: Admin): Promise<string[]> {
  return eventually(() => admin.listTopics(), { withinMs: 20_000, what: 'the names of all topics' });
}
