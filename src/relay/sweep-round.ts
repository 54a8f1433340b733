import { SWEPT } from '../delivery/batch.ts';
import type { BufferPool } from '../delivery/buffer-pool.ts';
import { inHand } from '../delivery/in-hand.ts';
import { scopeKeyText } from '../delivery/row-key.ts';
import type { ScopeId } from '../delivery/scopes.ts';
import { TopicLanes } from '../delivery/topic-lanes.ts';
import { type Clock, pause } from '../model/clock.ts';
import { type Fault, type FaultCode, RelayError } from '../model/fault.ts';
import type { Position } from '../model/position.ts';
import type { OutboxRow } from '../model/row.ts';
import type { RowId } from '../model/row-ids.ts';
import type { Candidate, Leader, Outcome, Store } from '../model/store.ts';
import type { Claims } from './claimed-rows.ts';
import type { Flusher } from './flusher.ts';
import { type HeldClaims, pairOf } from './held-claims.ts';
import type { LaneSender } from './lane-sender.ts';
import type { Parking, Serving } from './parking.ts';
import type { PayloadCheck } from './payload-check.ts';
import { NO_TOPIC, type Router, topicName } from './router.ts';
import { idOf } from './row-completion.ts';
import type { RowVerdicts } from './row-verdicts.ts';
import type { Topics } from './topics.ts';

/** The tail is waited for so long; then the round is dropped. */
const FENCE_MS = 5_000;
/** Whole rows read together. */
const READ_BYTES = 4 * 1024 * 1024;
const WRITE_RETRY_MS = 100;

export interface SweepRoundDeps {
  readonly store: Store;
  readonly leader: Leader;
  readonly claims: Claims;
  readonly heldClaims: HeldClaims;
  readonly topics: Topics;
  readonly parking: Parking;
  readonly sender: LaneSender;
  readonly flusher: Flusher;
  readonly router: Router;
  readonly verdicts: RowVerdicts;
  readonly payloads: PayloadCheck;
  readonly pool: BufferPool;
  readonly clock: Clock;
  /** True while the binlog is read: the tail has rows in hand. */
  readonly isTailing: () => boolean;
  /** What lies before may have been sent. */
  readonly noteHigh: (head: Position) => void;
  /** Nothing that is on its way is waited for any more. */
  readonly abandon: AbortSignal;
}

/** Short: candidates are left that might have been served; they are before whatever comes behind them. */
export interface RoundResult {
  /** Rows that are done with: none means that to do the same again at once would change nothing. */
  readonly settled: number;
  readonly isShort: boolean;
}

const NOTHING_DONE: RoundResult = { settled: 0, isShort: true };

/**
 * Candidates of one outbox to their topics: fence, drop what is in hand, claim, publish, write back. The steps are in
 * this order for the sake of each other (design of the sweep): a candidate is looked at before the head, the head
 * before what is in hand, and that before the claim.
 */
export class SweepRound {
  readonly #deps: SweepRoundDeps;

  constructor(deps: SweepRoundDeps) {
    this.#deps = deps;
  }

  /** `serving`: the pass that it belongs to; null: rows under no scope. Throws a `RelayError`. */
  async run(candidates: readonly Candidate[], serving: Serving | null, signal: AbortSignal): Promise<RoundResult> {
    const { store, leader, claims, heldClaims, isTailing, router, noteHigh, abandon } = this.#deps;
    const { outbox } = candidates[0];
    const ahead = candidates.filter((row) => !heldClaims.isBehind(row));
    const sendable = await this.#withTopics(ahead, signal);
    const head = await store.logEnd();
    if (isTailing() && head !== null && !(await router.hasRouted(head, FENCE_MS, signal))) return NOTHING_DONE;
    if (head !== null) noteHigh(head);
    const notInHand = this.#notInHand(outbox, sendable);
    const free = notBehind(notInHand, this.#deps.flusher.unaccounted(outbox));
    const isShort = sendable.length < candidates.length || free.length < notInHand.length;
    if (free.length === 0) return { settled: 0, isShort };
    if (signal.aborted || serving?.isOver === true) return NOTHING_DONE;
    const { claimed, locked } = await this.#claim(outbox, free);
    const isClaimed = new Set(claimed);
    claims.add(free.filter(({ id }) => isClaimed.has(id)));
    this.#leaveBehindLocked(free, new Set(locked), isClaimed);
    try {
      // The tail may come back one day, and must know that these are no news.
      if (!isTailing() && head !== null && claimed.length > 0) await store.barrier(leader, head);
      await this.#publish(outbox, free, isClaimed, serving, signal);
    } catch (error) {
      this.#backUnsent(outbox);
      await claims.settled(abandon);
      await this.writeBack();
      throw error;
    }
    await claims.settled(abandon);
    return { settled: await this.writeBack(), isShort: locked.length > 0 || isShort };
  }

  /** Nobody would know of rows that were claimed when the answer was lost: the next term sets them free. */
  async #claim(outbox: number, free: readonly Candidate[]): ReturnType<Store['claim']> {
    const ids = free.map(({ id }) => id);
    try {
      return await this.#deps.store.claim(this.#deps.leader, outbox, ids);
    } catch (error) {
      if (!(error instanceof RelayError) || NOTHING_CLAIMED.has(error.fault.code)) throw error;
      throw new RelayError({ ...error.fault, disposition: error.fault.disposition === 'halt' ? 'halt' : 'renew' });
    }
  }

  /** Those whose topic can be written to, or that have none. A topic that cannot is parked. */
  async #withTopics(candidates: readonly Candidate[], signal: AbortSignal): Promise<readonly Candidate[]> {
    const { topics, parking } = this.#deps;
    const asked = new Set<string>();
    const unusable = new Set<string>();
    for (const { topic } of candidates) {
      if (topic === null || topics.known(topic) !== undefined || asked.has(topic)) continue;
      asked.add(topic);
      const opened = await topics.open(topic, signal, false);
      if (opened instanceof TopicLanes) continue;
      if (opened?.code === 'KAFKA_INVALID_TOPIC_EXCEPTION') continue;
      unusable.add(topic);
      if (opened?.disposition === 'park') parking.park({ kind: 'topic', topic }, { reason: opened.code });
    }
    return unusable.size === 0 ? candidates : candidates.filter(({ topic }) => topic === null || !unusable.has(topic));
  }

  #notInHand(outbox: number, candidates: readonly Candidate[]): readonly Candidate[] {
    const { topics, flusher } = this.#deps;
    const wanted = new Map([[outbox, new Set<RowId>(candidates.map(({ id }) => id))]]);
    for (const lane of topics.lanes()) inHand(lane.batches(), wanted);
    flusher.dropInHand(wanted);
    const free = wanted.get(outbox)!;
    return free.size === candidates.length ? candidates : candidates.filter(({ id }) => free.has(id));
  }

  /** A row that somebody holds keeps the later ones of its pair out of the round (M5). */
  #leaveBehindLocked(free: readonly Candidate[], locked: ReadonlySet<RowId>, claimed: ReadonlySet<RowId>): void {
    if (locked.size === 0) return;
    const blocked = new Set<string>();
    for (const candidate of free) {
      const { outbox, id } = candidate;
      const pair = pairOf(candidate);
      if (locked.has(id)) blocked.add(pair);
      else if (claimed.has(id) && blocked.has(pair)) this.#deps.claims.backRow(outbox, id);
    }
  }

  async #publish(
    outbox: number,
    candidates: readonly Candidate[],
    isClaimed: ReadonlySet<RowId>,
    serving: Serving | null,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, leader, claims } = this.#deps;
    const open = new Set(claims.unsettled(outbox));
    for (const ids of chunks(candidates.filter(({ id }) => isClaimed.has(id) && open.has(id)))) {
      if (signal.aborted) break;
      const rows = await store.claimedRows(leader, outbox, ids);
      const unread = new Set(ids);
      while (rows.next()) {
        unread.delete(idOf(rows.row));
        await this.#append(rows.row, serving?.scopes ?? null, signal);
      }
      for (const id of unread) claims.gone(outbox, id);
      this.#kick();
    }
    if (signal.aborted) this.#backUnsent(outbox);
  }

  /** What is claimed and in no lane waits again. */
  #backUnsent(outbox: number): void {
    const { claims, topics } = this.#deps;
    const open = new Set(claims.unsettled(outbox));
    const wanted = new Map([[outbox, open]]);
    for (const lane of topics.lanes()) inHand(lane.batches(), wanted);
    for (const id of open) claims.backRow(outbox, id);
  }

  async #append(row: OutboxRow, scopes: ReadonlySet<ScopeId> | null, signal: AbortSignal): Promise<void> {
    const { topics, parking, claims, pool, payloads } = this.#deps;
    const id = idOf(row);
    const topic = topics.find(row.topic);
    if (topic === undefined) {
      const name = topicName(row);
      await (name === null ? this.#fails(row, id, '', -1, NO_TOPIC) : this.#fails(row, id, name, -1, INVALID_TOPIC));
      return;
    }
    const timestampMs = row.createdAtMs >= 0 ? row.createdAtMs : Date.now();
    try {
      for (;;) {
        const lane = topic.laneOf(row);
        const isOut = parking.isOutside(scopes, topic.topic, lane.partition, () => scopeKeyText(row));
        // Looked at again after the claim, and after each wait (M4).
        if (signal.aborted || isOut) {
          claims.backRow(row.outbox, id);
          return;
        }
        payloads.check(row);
        if (lane.append(row, SWEPT, timestampMs)) return;
        this.#kick();
        await roomOrAbort(pool, signal);
      }
    } catch (error) {
      if (!(error instanceof RelayError) || error.fault.disposition !== 'reject') throw error;
      await this.#fails(row, id, topic.topic, topic.laneOf(row).partition, error.fault);
    }
  }

  async #fails(row: OutboxRow, id: RowId, topic: string, partition: number, fault: Fault): Promise<void> {
    const { claims, verdicts, parking } = this.#deps;
    const { failure, park, reason } = await verdicts.ofRow(row, topic, id, claims.attemptsOf(row.outbox, id), fault);
    if (park !== null) {
      const scope = { kind: 'pair', topic, partition, key: Buffer.from(scopeKeyText(row), 'latin1') } as const;
      const untilSomebodyActs = park === 'until somebody acts' ? { dueInMs: null } : {};
      parking.park(scope, { reason, row: { outbox: row.outbox, id }, ...untilSomebodyActs });
    }
    claims.failed(failure);
  }

  /**
   * Until all of it stands in the table but what is published and held: that hurts nobody. Returns how many rows are done
   * with: published or failed.
   */
  async writeBack(): Promise<number> {
    const { store, leader, claims, clock, abandon } = this.#deps;
    let settled = 0;
    for (const [outbox, outcome] of claims.take()) {
      // Of a row that blocks its pair nobody must find only that it has failed.
      if (outcome.failures.some(({ as }) => as === 'failed')) await this.#deps.flusher.scopesWritten();
      let rest: Outcome = outcome;
      while (!abandon.aborted) {
        try {
          rest = await store.writeBack(leader, outbox, rest);
          // A row that is to be pending again must be so before the next one of its pair is looked for.
          if (rest.back.length === 0 && rest.failures.length === 0) break;
        } catch (error) {
          if (!(error instanceof RelayError) || error.fault.disposition !== 'retry') throw error;
        }
        await pause(clock, WRITE_RETRY_MS, abandon);
      }
      claims.keep(outbox, rest.published);
      settled += outcome.published.length - rest.published.length + outcome.failures.length;
    }
    return settled;
  }

  /** Published and held rows too, for as long as `waits` says so; else the next term sends them again. */
  async finish(waits: () => boolean): Promise<void> {
    const { claims, clock, abandon } = this.#deps;
    while (claims.hasUnwritten && waits()) {
      await pause(clock, WRITE_RETRY_MS, abandon);
      await this.writeBack();
    }
  }

  #kick(): void {
    for (const lane of this.#deps.topics.lanes()) this.#deps.sender.kick(lane);
  }
}

/** A claim that failed so has changed nothing. */
const NOTHING_CLAIMED: ReadonlySet<FaultCode> = new Set<FaultCode>(['MYSQL_DEADLOCK', 'MYSQL_LOCK_WAIT']);

/** Rows of topics that are unusable otherwise are not claimed. */
const INVALID_TOPIC: Fault = {
  code: 'KAFKA_INVALID_TOPIC_EXCEPTION',
  disposition: 'park',
  detail: 'no topic can have that name',
};

/** Those that are not among these, and not of a pair that one before them is of. */
function notBehind(candidates: readonly Candidate[], waiting: ReadonlySet<RowId>): readonly Candidate[] {
  if (waiting.size === 0) return candidates;
  const blocked = new Set<string>();
  return candidates.filter((candidate) => {
    if (waiting.has(candidate.id)) blocked.add(pairOf(candidate));
    return !blocked.has(pairOf(candidate));
  });
}

/** By what the rows take in memory. */
function* chunks(candidates: readonly Candidate[]): Iterable<RowId[]> {
  let ids: RowId[] = [];
  let bytes = 0;
  for (const candidate of candidates) {
    if (ids.length > 0 && bytes + candidate.bytes > READ_BYTES) {
      yield ids;
      ids = [];
      bytes = 0;
    }
    ids.push(candidate.id);
    bytes += candidate.bytes;
  }
  if (ids.length > 0) yield ids;
}

/** Resolves when there may be a buffer. */
export async function roomOrAbort(pool: BufferPool, signal: AbortSignal): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>();
  const onAbort = (): void => resolve(undefined);
  signal.addEventListener('abort', onAbort, { once: true });
  await Promise.race([pool.returned(), aborted]);
  signal.removeEventListener('abort', onAbort);
}
