import type { Clock } from '../model/clock.ts';
import type { Candidate, Store, SweepCursor } from '../model/store.ts';
import type { HeldClaims } from './held-claims.ts';
import type { Parking, Serving } from './parking.ts';
import type { RoundResult, SweepRound } from './sweep-round.ts';
import type { Topics } from './topics.ts';

/** Ids looked up together: the index is walked through for each such look. */
const LOOK_IDS = 20_000;
/** A pass ends after so long; what is left is the next one's. The hand-over's last one must not, and is given up. */
const PASS_MS = 2_000;

export interface SweepPassDeps {
  readonly store: Store;
  readonly parking: Parking;
  readonly topics: Topics;
  readonly round: SweepRound;
  readonly heldClaims: HeldClaims;
  readonly clock: Clock;
  readonly batchRows: number;
  /** By outbox: true where rows are kept as they are. */
  readonly keeps: readonly boolean[];
}

/** What is pending under the scopes that are served, from its lowest row, by id, round after round. */
export class SweepPass {
  readonly #deps: SweepPassDeps;

  constructor(deps: SweepPassDeps) {
    this.#deps = deps;
  }

  /** What was done before comes first: what it claimed is settled in the table, and what leaders before had claimed. */
  async settleClaims(): Promise<void> {
    await this.#deps.round.writeBack();
    await this.#deps.heldClaims.retry();
  }

  /** Rows of one page, those under no scope. */
  async uncovered(rows: readonly Candidate[], signal: AbortSignal): Promise<RoundResult> {
    const free = rows.filter((row) => !this.#isOutside(null, row)).sort(byId);
    if (free.length === 0) return { settled: 0, isShort: false };
    return this.#deps.round.run(free, null, signal);
  }

  /** Short: a row of the scopes may be left. Throws a `RelayError`. */
  async run(serving: Serving, signal: AbortSignal): Promise<RoundResult> {
    const { store, clock, keeps } = this.#deps;
    const endMs = clock.nowMs() + PASS_MS;
    const key = onlyKey(serving, this.#deps.parking);
    let settled = 0;
    for (const [outbox, keep] of keeps.entries()) {
      if (keep) continue;
      let after: SweepCursor | null = null;
      do {
        const look = await store.dueIds(outbox, after, LOOK_IDS, key);
        for (let at = 0; at < look.ids.length; at += this.#deps.batchRows) {
          if (signal.aborted || serving.isOver || clock.nowMs() > endMs) return { settled, isShort: true };
          const rows = await store.candidates(outbox, look.ids.slice(at, at + this.#deps.batchRows));
          const mine = rows.filter((row) => !this.#isOutside(serving, row));
          if (mine.length === 0) continue;
          const result = await this.#deps.round.run(mine, serving, signal);
          settled += result.settled;
          if (result.isShort) return { settled, isShort: true };
        }
        after = look.next;
      } while (after !== null);
    }
    const isHeld = this.#deps.heldClaims.rows.some((row) => !this.#isOutside(serving, row));
    return { settled, isShort: serving.isOver || isHeld };
  }

  #isOutside(serving: Serving | null, { topic, key }: Candidate): boolean {
    const { parking, topics } = this.#deps;
    const partition = topic === null ? -1 : (topics.known(topic)?.partitionOf(key) ?? -1);
    return parking.isOutside(serving?.scopes ?? null, topic ?? '', partition, () => key.toString('latin1'));
  }
}

/** Of one aggregate alone its rows can be found by its key. */
function onlyKey(serving: Serving, parking: Parking): Buffer | null {
  if (serving.scopes.size !== 1) return null;
  const [id] = serving.scopes;
  const scope = parking.scopeOf(id);
  return scope?.kind === 'pair' ? scope.key : null;
}

function byId(a: Candidate, b: Candidate): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
