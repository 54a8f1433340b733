import type { Position } from '../model/position.ts';
import type { OutboxProgress } from '../model/progress.ts';
import type { RelayStats, RowTally, TermProbe } from '../model/stats.ts';
import type { Observer, Sight } from './observer.ts';

/** What the source leaves out, as it counts it. */
export interface SourceCounts {
  readonly notPending: number;
  readonly delayed: number;
  readonly replaced: number;
}

export interface StateSources {
  readonly observer: Observer;
  readonly source: SourceCounts;
  readonly relay: string;
  readonly version: string;
  /** By outbox: `schema.table`. */
  readonly outboxes: readonly string[];
}

type Labels = Readonly<Record<string, string>>;
export type Value = readonly [labels: Labels, value: number];

export interface Moment {
  readonly sight: Sight;
  readonly stats: RelayStats;
  readonly term: TermProbe | null;
  readonly sources: StateSources;
}

export interface Reading {
  readonly name: string;
  readonly kind: 'gauge' | 'counter';
  readonly help: string;
  readonly labels?: readonly string[];
  /** What there is to say now; null and undefined: nothing. */
  readonly read: (now: Moment) => number | null | undefined | Iterable<Value>;
}

export function* byOutbox(
  rows: readonly (number | undefined)[],
  { outboxes }: StateSources,
  more: Labels = {},
): Iterable<Value> {
  for (const [index, outbox] of outboxes.entries()) yield [{ outbox, ...more }, rows[index] ?? 0];
}

export function* tallied(tally: RowTally, word: string, sources: StateSources): Iterable<Value> {
  for (const [value, rows] of tally) {
    for (const [index, count] of rows.entries()) {
      if (count !== undefined) yield [{ outbox: sources.outboxes[index], [word]: value }, count];
    }
  }
}

export function* coded(counts: ReadonlyMap<string, number>): Iterable<Value> {
  for (const [code, count] of counts) yield [{ code }, count];
}

export function* waiting({ sight, sources }: Moment, read: (outbox: OutboxProgress) => number): Iterable<Value> {
  for (const [index, outbox] of sight.database?.outboxes.entries() ?? []) {
    if (outbox !== null) yield [{ outbox: sources.outboxes[index] }, read(outbox)];
  }
}

export function* positions({ sight, term }: Moment, read: (position: Position) => number): Iterable<Value> {
  const head = sight.database?.head ?? null;
  if (head !== null) yield [{ at: 'head' }, read(head)];
  if (term === null) return;
  for (const at of ['routed', 'checkpoint', 'high'] as const) yield [{ at }, read(term[at])];
}

export function summed(tally: RowTally): number[] {
  const sums: number[] = [];
  for (const rows of tally.values())
    for (const [index, count] of rows.entries()) sums[index] = (sums[index] ?? 0) + (count ?? 0);
  return sums;
}

export const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000);
