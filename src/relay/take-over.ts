import { scopeId, type Scopes } from '../delivery/scopes.ts';
import { TopicLanes } from '../delivery/topic-lanes.ts';
import type { Clock } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import type { ParkedEntry } from '../model/parked.ts';
import type { Store } from '../model/store.ts';
import { REPLAY } from './parking.ts';
import type { Topics } from './topics.ts';

/**
 * Loads what is parked. A topic-partition whose topic has another partition count now is no scope any more: its rows may
 * lie in others; the topic is (M10). The count is the one that the term uses: the topic comes into use here.
 */
export async function takeOverScopes({
  store,
  topics,
  clock,
  log,
  scopes,
  signal,
}: {
  readonly store: Store;
  readonly topics: Topics;
  readonly clock: Clock;
  readonly log: Log;
  readonly scopes: Scopes;
  readonly signal: AbortSignal;
}): Promise<void> {
  const found = await store.parked();
  // The leader that held rows of theirs is gone: they are handed over like others.
  const entries = found.map((entry) => (entry.reason === REPLAY ? { ...entry, dueInMs: 0 } : entry));
  scopes.load(entries, clock.nowMs());
  if (entries.length > 0) log.info('scopes-taken-over', { scopes: entries.length });
  for (const entry of entries) {
    const { scope } = entry;
    if (scope.kind !== 'topic-partition' || (await isAsBefore(topics, scope.topic, entry, signal))) continue;
    if (signal.aborted) return;
    const { reason, dueInMs } = entry;
    scopes.park({ kind: 'topic', topic: scope.topic }, { reason, dueInMs }, clock.nowMs(), Math.random());
    scopes.remove(scopeId(scope));
  }
}

async function isAsBefore(
  topics: Topics,
  topic: string,
  { partitions }: ParkedEntry,
  signal: AbortSignal,
): Promise<boolean> {
  const opened = await topics.open(topic, signal, false);
  return opened instanceof TopicLanes && opened.partitions === partitions;
}
