import type { ParkedEntry, Scope } from '../model/parked.ts';
import type { ParkedChanges } from '../model/store.ts';
import { type BackOff, backOffMs } from './back-off.ts';

/** A scope that waits. Replaced, never changed. */
export interface Parked extends Omit<ParkedEntry, 'dueInMs'> {
  readonly id: string;
  readonly sinceMs: number;
  /** By the engine's clock; null: until somebody acts on `row`. */
  readonly dueAtMs: number | null;
}

export type ScopeId = string;

const EVERYTHING: ScopeId = '*';

/** While everything waits nothing is delivered but by the sweep: it is tried often. */
const EVERYTHING_BACK_OFF = { baseMs: 50, capMs: 1_000 };

/** Longest key that the table of parked scopes takes. A longer one is not parked alone. */
const LONGEST_KEY_BYTES = 1024;

/** Why something is parked. */
export interface Why {
  readonly reason: string;
  /** Of the topic; 0 where it is not known. */
  readonly partitions?: number;
  readonly row?: ParkedEntry['row'];
  /** Milliseconds to wait; null: until somebody acts. Without it: the next back-off of the scope. */
  readonly dueInMs?: number | null;
}

/**
 * The parked set: what the tail leaves in the table. It knows what of it the table of parked scopes does not have yet:
 * every flush writes all of that (M9).
 */
export class Scopes {
  readonly #backOff: BackOff;
  readonly #parked = new Map<ScopeId, Parked>();
  /** How many of each kind: what is not there need not be looked for. */
  readonly #count = { pair: 0, 'topic-partition': 0, topic: 0, everything: 0 };
  /** Not in the table as they are here; null: gone here. */
  readonly #unwritten = new Map<ScopeId, { readonly parked: Parked | null; readonly scope: Scope }>();

  constructor(backOff: BackOff) {
    this.#backOff = backOff;
  }

  get isEmpty(): boolean {
    return this.#parked.size === 0;
  }

  get hasEverything(): boolean {
    return this.#count.everything > 0;
  }

  get hasChanges(): boolean {
    return this.#unwritten.size > 0;
  }

  get all(): Iterable<Parked> {
    return this.#parked.values();
  }

  get(id: ScopeId): Parked | undefined {
    return this.#parked.get(id);
  }

  /** Takes over what an earlier leader wrote. */
  load(entries: readonly ParkedEntry[], nowMs: number): void {
    for (const { dueInMs, ...entry } of entries) {
      const id = scopeId(entry.scope);
      this.#put({ sinceMs: Date.now(), ...entry, id, dueAtMs: dueInMs === null ? null : nowMs + dueInMs });
    }
  }

  /** The scopes that a row is under. `key` is only asked for where pairs are parked. Partition -1: not known. */
  covering(topic: string, partition: number, key: () => string): readonly Parked[] {
    if (this.#parked.size === 0) return NONE;
    const found: Parked[] = [];
    topic = parkableTopic(topic);
    const look = (id: ScopeId): void => {
      const parked = this.#parked.get(id);
      if (parked !== undefined) found.push(parked);
    };
    if (this.#count.everything > 0) look(EVERYTHING);
    if (this.#count.topic > 0) look(topicId(topic));
    if (this.#count['topic-partition'] > 0) look(partitionId(topic, partition));
    if (this.#count.pair > 0) look(pairId(topic, key()));
    return found;
  }

  /** A parked scope that holds all of this one: this one is only a back-off then. */
  wider({ scope }: Parked): Parked | undefined {
    if (scope.kind === 'everything') return undefined;
    const everything = this.#parked.get(EVERYTHING);
    if (everything !== undefined || scope.kind === 'topic') return everything;
    const topic = this.#parked.get(topicId(scope.topic));
    if (topic !== undefined || scope.kind === 'topic-partition') return topic;
    return this.#parked.get(partitionId(scope.topic, scope.partition));
  }

  /** True when a topic-partition of the topic is parked: its partition count must stay as it is (M10). */
  hasPartitionOf(topic: string): boolean {
    if (this.#count['topic-partition'] === 0) return false;
    for (const { scope } of this.#parked.values()) {
      if (scope.kind === 'topic-partition' && scope.topic === topic) return true;
    }
    return false;
  }

  /** Parks a scope, or puts it off again. */
  park(wanted: Scope, why: Why, nowMs: number, random: number): Parked {
    const scope = parkable(wanted);
    const id = scopeId(scope);
    const before = this.#parked.get(id);
    const attempts = (before?.attempts ?? 0) + 1;
    const dueInMs = why.dueInMs === undefined ? backOffMs(this.#backOff, attempts, random) : why.dueInMs;
    const parked: Parked = {
      ...{ id, scope, attempts, reason: why.reason },
      partitions: why.partitions ?? before?.partitions ?? 0,
      dueAtMs: dueInMs === null ? null : nowMs + dueInMs,
      sinceMs: before?.sinceMs ?? Date.now(),
      row: why.row ?? null,
    };
    this.#put(parked);
    this.#unwritten.set(id, { parked, scope });
    return parked;
  }

  /** It was served, and something of it is left: the next try is after the next back-off. */
  putOff(id: ScopeId, nowMs: number, random: number): void {
    const parked = this.#parked.get(id);
    if (parked === undefined) return;
    const { reason, partitions, row } = parked;
    const isAll = parked.scope.kind === 'everything';
    const soon = isAll ? { dueInMs: backOffMs(EVERYTHING_BACK_OFF, parked.attempts, random) } : {};
    this.park(parked.scope, { reason, partitions, row, ...soon }, nowMs, random);
  }

  /** What waits for nobody any more. */
  remove(id: ScopeId): void {
    const parked = this.#parked.get(id);
    if (parked === undefined) return;
    this.#parked.delete(id);
    this.#count[parked.scope.kind]--;
    this.#unwritten.set(id, { parked: null, scope: parked.scope });
  }

  /** What the table does not have yet; null when it has all. `written` is to be called when it is committed. */
  changes(nowMs: number): { readonly changes: ParkedChanges; readonly written: () => void } | null {
    if (this.#unwritten.size === 0) return null;
    const taken = [...this.#unwritten];
    const put = taken.flatMap(([, { parked }]) => (parked === null ? [] : [entryOf(parked, nowMs)]));
    const remove = taken.flatMap(([, { parked, scope }]) => (parked === null ? [scope] : []));
    const written = (): void => {
      for (const [id, change] of taken) if (this.#unwritten.get(id) === change) this.#unwritten.delete(id);
    };
    return { changes: { put, remove }, written };
  }

  #put(parked: Parked): void {
    if (!this.#parked.has(parked.id)) this.#count[parked.scope.kind]++;
    this.#parked.set(parked.id, parked);
  }
}

const NONE: readonly Parked[] = [];

export function scopeId(scope: Scope): ScopeId {
  switch (scope.kind) {
    case 'everything':
      return EVERYTHING;
    case 'topic':
      return topicId(scope.topic);
    case 'topic-partition':
      return partitionId(scope.topic, scope.partition);
    case 'pair':
      return pairId(scope.topic, scope.key.toString('latin1'));
  }
}

// The topic is as long as its length says: no key can pass for another topic's.
const topicId = (topic: string): ScopeId => `t${topic}`;
const partitionId = (topic: string, partition: number): ScopeId => `p${partition} ${topic}`;
const pairId = (topic: string, key: string): ScopeId => `k${topic.length} ${topic}${key}`;

/** Of the table of parked scopes, in characters. Kafka has no longer ones: such a row fails, and waits with its like. */
const LONGEST_TOPIC = 249;

function parkableTopic(topic: string): string {
  return topic.length > LONGEST_TOPIC ? '' : topic;
}

function parkable(wanted: Scope): Scope {
  const scope = wanted.kind === 'everything' ? wanted : { ...wanted, topic: parkableTopic(wanted.topic) };
  if (scope.kind !== 'pair' || scope.key.length <= LONGEST_KEY_BYTES) return scope;
  return scope.partition < 0
    ? { kind: 'topic', topic: scope.topic }
    : { kind: 'topic-partition', topic: scope.topic, partition: scope.partition };
}

function entryOf({ scope, partitions, dueAtMs, attempts, reason, row }: Parked, nowMs: number): ParkedEntry {
  return { scope, partitions, dueInMs: dueAtMs === null ? null : Math.max(0, dueAtMs - nowMs), attempts, reason, row };
}
