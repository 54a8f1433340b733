import type { RowId } from './row-ids.ts';

/**
 * What waits together: rows of one aggregate in one topic, of one topic-partition, of one topic, or all. Scopes are
 * about what is sent, so they hold for every outbox table of the relay but those that are only kept.
 */
export type Scope =
  | { readonly kind: 'pair'; readonly topic: string; readonly partition: number; readonly key: Buffer }
  | { readonly kind: 'topic-partition'; readonly topic: string; readonly partition: number }
  | { readonly kind: 'topic'; readonly topic: string }
  | { readonly kind: 'everything' };

/** Why a scope waits and for how long: one row of `cdc_relay_parked`. */
export interface ParkedEntry {
  readonly scope: Scope;
  /** Partitions that the topic had when the scope was parked; 0 where that does not matter. */
  readonly partitions: number;
  /** From now; null: until somebody acts on `row`. */
  readonly dueInMs: number | null;
  readonly attempts: number;
  /** Milliseconds since the epoch; not given: from now on. */
  readonly sinceMs?: number;
  /** The code of a fault, or what else was the reason. */
  readonly reason: string;
  /** The row that it began with, where it is one row's fault. */
  readonly row: { readonly outbox: number; readonly id: RowId } | null;
}
