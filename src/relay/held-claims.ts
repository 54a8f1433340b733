import type { Scopes } from '../delivery/scopes.ts';
import type { Clock } from '../model/clock.ts';
import type { Log } from '../model/log.ts';
import type { Scope } from '../model/parked.ts';
import type { Candidate, Leader, Store } from '../model/store.ts';
import type { Parking } from './parking.ts';
import type { Topics } from './topics.ts';

/** Why a pair waits of which a row is still claimed by a leader before. */
export const CLAIM_HELD = 'CLAIM_HELD';
const TRY_MS = 500;

export interface HeldClaimsDeps {
  readonly store: Pick<Store, 'releaseClaims'>;
  readonly leader: Leader;
  readonly scopes: Scopes;
  readonly topics: Topics;
  readonly parking: Parking;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Claims of leaders before this one. Such a row is neither pending nor published, so nobody would look for it, and what
 * lies behind it would overtake it: all are released before the term begins to work. Those on rows that the
 * application holds just then are tried again, and their pairs wait.
 *
 * Invariant: a row in here is under a parked scope, and no scope above it is released.
 */
export class HeldClaims {
  readonly #deps: HeldClaimsDeps;
  #rows: readonly Candidate[] = [];
  #pairs: ReadonlySet<string> = new Set();
  #nextTryMs = Infinity;

  constructor(deps: HeldClaimsDeps) {
    this.#deps = deps;
  }

  get rows(): readonly Candidate[] {
    return this.#rows;
  }

  /** By the engine's clock; infinite when there is nothing to try. */
  get nextTryMs(): number {
    return this.#nextTryMs;
  }

  /** Behind this one's pair nothing may be sent. */
  isBehind(row: Candidate): boolean {
    return this.#pairs.size > 0 && this.#pairs.has(pairOf(row));
  }

  /** Before anything else is done in the term. */
  async release(): Promise<void> {
    await this.#try(null);
  }

  /** The pairs of what is held wait, where nothing that they are under does. The scopes of leaders before are known. */
  async park(signal: AbortSignal): Promise<void> {
    const { scopes, topics, parking, log } = this.#deps;
    if (this.#rows.length === 0) return;
    log.warn('claims-held', { rows: this.#rows.length });
    for (const { topic, key } of this.#rows) {
      if (topic !== null && topics.known(topic) === undefined) await topics.open(topic, signal, false);
      if (signal.aborted) return;
      const scope = this.#scopeOf(topic, key);
      if (scopes.covering(scope.topic, scope.partition, () => key.toString('latin1')).length === 0)
        parking.park(scope, { reason: CLAIM_HELD });
    }
  }

  async retry(): Promise<void> {
    const { scopes, parking, clock } = this.#deps;
    if (clock.nowMs() < this.#nextTryMs) return;
    const before = this.#rows;
    await this.#try(before);
    for (const row of before) {
      if (this.isBehind(row)) continue;
      const { topic, partition, key } = this.#scopeOf(row.topic, row.key);
      // A key that is too long for a scope of its own is under a wider one.
      for (const { scope, reason, partitions } of scopes.covering(topic, partition, () => key.toString('latin1')))
        if (reason === CLAIM_HELD) parking.park(scope, { reason, partitions, dueInMs: 0 });
    }
  }

  async #try(only: readonly Candidate[] | null): Promise<void> {
    const { store, leader, clock, log } = this.#deps;
    const { released, held } = await store.releaseClaims(leader, only);
    if (released > 0) log.info('claims-released', { rows: released });
    this.#rows = held;
    this.#pairs = new Set(held.map(pairOf));
    this.#nextTryMs = held.length === 0 ? Infinity : clock.nowMs() + TRY_MS;
  }

  #scopeOf(topic: string | null, key: Buffer): Scope & { readonly kind: 'pair' } {
    const partition = topic === null ? -1 : (this.#deps.topics.known(topic)?.partitionOf(key) ?? -1);
    return { kind: 'pair', topic: topic ?? '', partition, key };
  }
}

export function pairOf({ topic, key }: Candidate): string {
  return `${topic ?? ''}\0${key.toString('latin1')}`;
}
