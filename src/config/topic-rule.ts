import { distance } from 'fastest-levenshtein';
import type { Config } from './schema.ts';

type Outbox = Config['outboxes'][number];

/** Kafka's rule for topic names (org.apache.kafka.common.internals.Topic). */
const TOPIC = /^[a-zA-Z0-9._-]{1,249}$/;
const PLACEHOLDER = /\{([^{}]*)\}/g;

export function isTopicName(name: string): boolean {
  return TOPIC.test(name) && name !== '.' && name !== '..';
}

/** What is wrong with a topic template; null when nothing is. */
export function templateProblem(template: string, outbox: Outbox): string | null {
  const names = [...template.matchAll(PLACEHOLDER)].map((match) => match[1]);
  const rest = template.replaceAll(PLACEHOLDER, '');
  if (/[{}]/.test(rest)) return 'a "{" or "}" without the other';
  if (names.length === 0) return 'no {column} in it; a topic that is always the same goes under fixed';
  if (names.includes('')) return '{} names no column';
  if (rest !== '' && !TOPIC.test(rest)) return 'expected letters, digits, ".", "_", "-" and {column}';
  for (const name of names) {
    const problem = columnProblem(name, outbox);
    if (problem !== null) return problem;
  }
  return null;
}

/**
 * A table may have more columns than the relay reads, so a name that is not among them stands; only the table can
 * refute it. What is nearly one of them, or is the key of one, is a slip.
 */
export function columnProblem(name: string, outbox: Outbox): string | null {
  const columns = Object.entries(outbox.columns);
  if (columns.some(([, column]) => column === name)) return null;
  const byKey = columns.find(([key]) => key === name);
  if (byKey !== undefined) {
    return byKey[1] === null ? `the table has no ${name} column` : `${name} is a key; its column is ${byKey[1]}`;
  }
  const meant = columns.find(
    ([, column]) => column !== null && distance(name.toLowerCase(), column.toLowerCase()) <= 1,
  );
  return meant === undefined ? null : `no column ${name}; did you mean ${meant[1]}?`;
}
