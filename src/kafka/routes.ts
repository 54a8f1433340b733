import type { Fault } from '../model/fault.ts';
import { brokerFault, requestFault, LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION } from './fault-table.ts';
import type { TopicMetadata } from './metadata.ts';

/** A topic that was known and is not any more is looked for this long before it is called unusable. */
export const UNKNOWN_TOPIC_GRACE_MS = 5000;

interface Route {
  /** Node id by partition; -1: none at present. */
  leaders: Int32Array;
  /** By partition: something has gone wrong since the leaders were read. */
  stale: Uint8Array;
  /** Null: the cluster knows the topic. */
  missingSinceMs: number | null;
}

/** Who leads which partition, as far as we know, and where that is in doubt. Pure. */
export class Routes {
  readonly #routes = new Map<string, Route>();

  /** Node id; null: not known or in doubt, ask the cluster. */
  leader(topic: string, partition: number): number | null {
    const route = this.#routes.get(topic);
    if (route === undefined || route.missingSinceMs !== null || route.stale[partition] !== 0) return null;
    return route.leaders[partition];
  }

  /** Null: not known. */
  partitions(topic: string): number | null {
    const route = this.#routes.get(topic);
    return route === undefined || route.missingSinceMs !== null ? null : route.leaders.length;
  }

  /** The leader may have moved: the next send asks the cluster first. */
  doubt(topic: string, partition: number): void {
    const stale = this.#routes.get(topic)?.stale;
    if (stale !== undefined && partition < stale.length) stale[partition] = 1;
  }

  apply(entry: TopicMetadata, nowMs: number): void {
    const known = this.#routes.get(entry.topic);
    if (entry.topicErrorCode === 0) {
      const partitions = entry.partitionMetadata.length;
      const leaders = new Int32Array(partitions).fill(-1);
      for (const { partitionId, leader } of entry.partitionMetadata) {
        if (partitionId < partitions) leaders[partitionId] = leader;
      }
      const stale = new Uint8Array(partitions);
      for (let i = 0; i < partitions; i++) if (leaders[i] < 0) stale[i] = 1;
      this.#routes.set(entry.topic, { leaders, stale, missingSinceMs: null });
    } else if (known !== undefined && entry.topicErrorCode === UNKNOWN_TOPIC_OR_PARTITION) {
      known.missingSinceMs ??= nowMs;
    }
  }

  /** It was known, and has been missing for less than `UNKNOWN_TOPIC_GRACE_MS`: that may be its broker's ignorance. */
  mayComeBack(topic: string, nowMs: number): boolean {
    const missingSinceMs = this.#routes.get(topic)?.missingSinceMs ?? null;
    return missingSinceMs !== null && nowMs - missingSinceMs < UNKNOWN_TOPIC_GRACE_MS;
  }

  /**
   * Why a batch cannot go out although the cluster has just been asked (`entry` is its answer); null: it can. A topic
   * that is being deleted and made again, or has not reached every broker, is given `UNKNOWN_TOPIC_GRACE_MS`.
   */
  obstacle(entry: TopicMetadata, partition: number, nowMs: number): Fault | null {
    const { topic, topicErrorCode, partitionMetadata } = entry;
    const where = `${topic}-${partition}`;
    if (topicErrorCode === 0) {
      const found = partitionMetadata.find(({ partitionId }) => partitionId === partition);
      // The topic has been made anew with fewer partitions.
      if (found === undefined) return unusable(where, `the topic has ${partitionMetadata.length} partitions`);
      return found.leader < 0 ? brokerFault(LEADER_NOT_AVAILABLE, `${where} has no leader`) : null;
    }
    if (topicErrorCode !== UNKNOWN_TOPIC_OR_PARTITION) return requestFault(topicErrorCode, where);
    return this.mayComeBack(topic, nowMs) ? brokerFault(topicErrorCode, where) : unusable(where, 'no such topic');
  }
}

export function unusable(where: string, why: string): Fault {
  return { ...brokerFault(UNKNOWN_TOPIC_OR_PARTITION, `${where}: ${why}`), disposition: 'park' };
}
