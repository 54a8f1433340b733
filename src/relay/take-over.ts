import { scopeId, type Scopes } from '../delivery/scopes.ts';
import type { Clock } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import type { ParkedEntry } from '../model/parked.ts';
import type { Publisher } from '../model/publisher.ts';
import type { Store } from '../model/store.ts';
import { REPLAY } from './parking.ts';

/**
 * Loads what is parked. A topic-partition whose topic has another partition count now is no scope any more: its rows may
 * lie in others; the topic is (M10).
 */
export async function takeOverScopes({
  store,
  publisher,
  clock,
  log,
  scopes,
}: {
  readonly store: Store;
  readonly publisher: Publisher;
  readonly clock: Clock;
  readonly log: Log;
  readonly scopes: Scopes;
}): Promise<void> {
  const found = await store.parked();
  // The leader that held rows of theirs is gone: they are handed over like others.
  const entries = found.map((entry) => (entry.reason === REPLAY ? { ...entry, dueInMs: 0 } : entry));
  scopes.load(entries, clock.nowMs());
  if (entries.length > 0) log.info('scopes-taken-over', { scopes: entries.length });
  for (const entry of entries) {
    const { scope } = entry;
    if (scope.kind !== 'topic-partition' || (await isAsBefore(publisher, scope.topic, entry))) continue;
    const { reason, dueInMs } = entry;
    scopes.park({ kind: 'topic', topic: scope.topic }, { reason, dueInMs }, clock.nowMs(), Math.random());
    scopes.remove(scopeId(scope));
  }
}

async function isAsBefore(publisher: Publisher, topic: string, { partitions }: ParkedEntry): Promise<boolean> {
  const state = await publisher.topic(topic);
  return state.as === 'known' && state.partitions === partitions;
}
