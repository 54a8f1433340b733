import type { RecordView } from '../delivery/batch-records.ts';
import type { Lane } from '../delivery/lane.ts';
import { recordKeyText, scopeKeyText } from '../delivery/row-key.ts';
import { type Parked, scopeId, type ScopeId, type Scopes, type Why } from '../delivery/scopes.ts';
import type { Clock } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import type { Scope } from '../model/parked.ts';
import type { OutboxRow } from '../model/row.ts';
import type { RowId } from '../model/row-ids.ts';
import type { RelayStats } from '../model/stats.ts';
import type { Settlement } from './settlement.ts';
import type { Topics } from './topics.ts';

export interface ParkingDeps {
  readonly scopes: Scopes;
  readonly topics: Topics;
  readonly settlement: Settlement;
  readonly clock: Clock;
  readonly log: Log;
  /** Rows held for a hand-over may take so much of the pool. */
  readonly maxHeldBytes: number;
  /** By outbox: true where rows are kept as they are. Those are never parked. */
  readonly keeps: readonly boolean[];
  readonly onParked: () => void;
  readonly stats: RelayStats;
}

/** Why pairs wait whose published rows are sent again. Never due by itself. */
export const REPLAY = 'REPLAY';

/** Scopes that the sweep is serving: one pass at a time. One that is parked again meanwhile is no longer among them. */
export interface Serving {
  readonly scopes: Set<ScopeId>;
  /** A hand-over: the rows that the tail meets of these scopes are held. */
  readonly holds: boolean;
  /** Released, or given up: nothing more is claimed for it. */
  isOver: boolean;
}

/**
 * Who must wait: parks scopes, takes what they cover out of the lanes, and decides for each row of the tail whether it
 * is sent, held for a hand-over, or left in the table.
 *
 * Invariant: a row is in a lane only if no parked scope covers it, or if it is of a pass over the scope that does.
 */
export class Parking {
  readonly #deps: ParkingDeps;
  readonly #keepsAll: boolean;
  readonly #keepsSome: boolean;
  /** They have, or had, rows of outboxes that are only kept. */
  readonly #keptLanes = new Set<Lane>();
  #serving: Serving | null = null;

  constructor(deps: ParkingDeps) {
    this.#deps = deps;
    this.#keepsAll = deps.keeps.every((keep) => keep);
    this.#keepsSome = deps.keeps.some((keep) => keep);
  }

  /** A hand-over is under way. */
  get isHolding(): boolean {
    return this.#serving?.holds === true;
  }

  /** What is to be done with a row of the tail. `lane` null: nothing is known of its topic. */
  decide(row: OutboxRow, topic: string, lane: Lane | null): 'send' | 'hold' | 'leave' {
    const { scopes, keeps } = this.#deps;
    if (keeps[row.outbox]) {
      if (!this.#keepsAll && lane !== null) this.#keptLanes.add(lane);
      return 'send';
    }
    if (scopes.isEmpty) return 'send';
    const covering = scopes.covering(topic, lane?.partition ?? -1, () => scopeKeyText(row));
    if (covering.length === 0) return 'send';
    return lane !== null && this.#isHandedOver(covering) ? 'hold' : 'leave';
  }

  /** True while every row of the outbox is left in its table, whatever it is. */
  leavesAll(outbox: number): boolean {
    return !this.#deps.keeps[outbox] && !this.isHolding && this.#deps.scopes.hasEverything;
  }

  /** False while a topic-partition of the topic is parked, or rows of a hand-over are held. */
  mayGrow(topic: string): boolean {
    return !this.isHolding && !this.#deps.scopes.hasPartitionOf(topic);
  }

  /** Holds a row of the hand-over behind all others; false: it is left to the sweep, and the hand-over is given up. */
  hold(lane: Lane, row: OutboxRow, transaction: number, timestampMs: number): boolean {
    let heldBytes = 0;
    for (const each of this.#deps.topics.lanes()) heldBytes += each.heldBytes;
    if (heldBytes < this.#deps.maxHeldBytes && lane.hold(row, transaction, timestampMs)) return true;
    this.giveUp('too many rows came meanwhile');
    return false;
  }

  /** True for a lane that must not be parked: what is kept cannot be left to the sweep. */
  isKept(lane: Lane): boolean {
    return this.#keepsAll || (this.#keepsSome && this.#keptLanes.has(lane));
  }

  /** Since when the pair has been waiting because of this very row, milliseconds since the epoch. */
  waitingSinceMs(topic: string, key: string, id: RowId): number | undefined {
    const scope = { kind: 'pair', topic, partition: -1, key: Buffer.from(key, 'latin1') } as const;
    const pair = this.#deps.scopes.get(scopeId(scope));
    return pair?.row?.id === id ? pair.sinceMs : undefined;
  }

  scopeOf(id: ScopeId): Scope | undefined {
    return this.#deps.scopes.get(id)?.scope;
  }

  /** Partitions that the lane's topic has, as its lanes know them. */
  partitionsOf(lane: Lane): number {
    return this.#deps.topics.known(lane.topic)?.partitions ?? 0;
  }

  covers(parked: Parked, lane: Lane, record: RecordView): boolean {
    const { scopes, keeps } = this.#deps;
    if (keeps[record.outbox]) return false;
    return scopes.covering(lane.topic, lane.partition, () => recordKeyText(record)).includes(parked);
  }

  /** Parks a scope, or puts it off again: what it covers leaves the lanes. What is being sent is its sender's. */
  park(scope: Scope, why: Why): Parked {
    const { scopes, clock, log } = this.#deps;
    const parked = scopes.park(scope, why, clock.nowMs(), Math.random());
    log[parked.attempts === 1 ? 'warn' : 'debug']('scope-parked', described(parked));
    const serving = this.#serving;
    if (serving?.scopes.delete(parked.id) === true && serving.scopes.size === 0) this.giveUp(why.reason);
    this.#takeOut(parked);
    this.#deps.onParked();
    return parked;
  }

  release(id: ScopeId): void {
    const parked = this.#deps.scopes.get(id);
    if (parked === undefined) return;
    this.#deps.scopes.remove(id);
    this.#deps.log[parked.reason === REPLAY ? 'debug' : 'info']('scope-released', described(parked));
    this.#deps.onParked();
  }

  /** The sweep serves these scopes from now on. `holds`: to release them. */
  begin(ids: Iterable<ScopeId>, holds: boolean): Serving {
    return (this.#serving = { scopes: new Set(ids), holds, isOver: false });
  }

  /**
   * Parks pairs while published rows of them are sent again, and holds what the tail meets of them. What the lanes have
   * of them stays there: it was routed before, and is in order.
   */
  beginReplay(pairs: readonly Scope[]): Serving {
    const { scopes, clock } = this.#deps;
    const why = { reason: REPLAY, dueInMs: null };
    return this.begin(
      pairs.map((scope) => scopes.park(scope, why, clock.nowMs(), 0).id),
      true,
    );
  }

  /** Rows of them are left in their tables: the sweep hands them over. */
  releaseLater({ scopes: ids }: Serving): void {
    const { scopes, clock } = this.#deps;
    for (const id of ids) {
      const parked = scopes.get(id);
      if (parked?.reason === REPLAY) scopes.park(parked.scope, { reason: REPLAY, dueInMs: 0 }, clock.nowMs(), 0);
    }
    this.#deps.onParked();
  }

  /** Everything of the scopes is delivered: they are released, and the rows that were held follow. */
  complete(serving: Serving): Lane[] {
    this.end(serving);
    for (const id of serving.scopes) this.release(id);
    const lanes = [...this.#deps.topics.lanes()].filter((lane) => lane.heldBytes > 0);
    for (const lane of lanes) lane.releaseHeld();
    this.#deps.stats.handOvers.done++;
    return lanes;
  }

  /** The scopes stay as they are. */
  end(serving: Serving): void {
    serving.isOver = true;
    if (this.#serving === serving) this.#serving = null;
  }

  /** Nothing more is claimed for the scopes that are served, what was held is left to the sweep, the scopes stay. */
  giveUp(reason: string): void {
    const serving = this.#serving;
    if (serving === null) return;
    this.end(serving);
    if (!serving.holds) return;
    this.#deps.stats.handOvers.givenUp++;
    this.#deps.log.debug('hand-over-given-up', { reason, scopes: serving.scopes.size });
    for (const lane of this.#deps.topics.lanes()) {
      for (const batch of lane.takeHeld()) this.#deps.settlement.left(batch);
    }
  }

  /** True when a scope other than these covers the row, or none of them does any more. */
  isOutside(ids: ReadonlySet<ScopeId> | null, topic: string, partition: number, key: () => string): boolean {
    const covering = this.#deps.scopes.covering(topic, partition, key);
    if (ids === null) return covering.length > 0;
    return covering.length === 0 || covering.some(({ id }) => !ids.has(id));
  }

  #isHandedOver(covering: readonly Parked[]): boolean {
    const serving = this.#serving;
    return serving !== null && serving.holds && covering.every(({ id }) => serving.scopes.has(id));
  }

  #takeOut(parked: Parked): void {
    const { topics, settlement } = this.#deps;
    const { scope } = parked;
    for (const lane of topics.lanes()) {
      if (!mayCover(scope, lane)) continue;
      const isCovered = (record: RecordView): boolean => this.covers(parked, lane, record);
      // What lies before the cause of everything was routed before it, and is in order.
      if (scope.kind !== 'everything') for (const batch of lane.takeOut(isCovered)) settlement.left(batch);
      const serving = this.#serving;
      if (serving === null || lane.heldBytes === 0) continue;
      const isOut = (record: RecordView): boolean =>
        this.isOutside(serving.scopes, lane.topic, lane.partition, () => recordKeyText(record));
      for (const batch of lane.extractHeld(isOut)) settlement.left(batch);
    }
  }
}

/** False where no row of the lane can be under the scope. */
function mayCover(scope: Scope, lane: Lane): boolean {
  if (scope.kind === 'everything') return true;
  if (scope.topic !== lane.topic) return false;
  return scope.kind === 'topic' || scope.partition < 0 || scope.partition === lane.partition;
}

function described({ scope, reason, attempts }: Parked): Record<string, unknown> {
  const place = scope.kind === 'everything' ? {} : { topic: scope.topic };
  return {
    scope: scope.kind,
    ...place,
    // Of a topic that has not been looked up yet it is not known.
    ...('partition' in scope && scope.partition >= 0 ? { partition: scope.partition } : {}),
    reason,
    attempts,
  };
}
