import { SWEPT } from '../delivery/batch.ts';
import type { BufferPool } from '../delivery/buffer-pool.ts';
import { scopeKeyText } from '../delivery/row-key.ts';
import type { ScopeId, Scopes } from '../delivery/scopes.ts';
import { TopicLanes } from '../delivery/topic-lanes.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import type { Jobs, ReplayKey } from '../model/job.ts';
import type { Scope } from '../model/parked.ts';
import { Form, type OutboxRow } from '../model/row.ts';
import type { RowId } from '../model/row-ids.ts';
import type { RelayStats } from '../model/stats.ts';
import type { RowFailure, Store } from '../model/store.ts';
import type { LaneSender } from './lane-sender.ts';
import { type Parking, REPLAY, type Serving } from './parking.ts';
import { ReplayedRows, type SweptRows } from './replayed-rows.ts';
import { NO_TOPIC, type Router } from './router.ts';
import { idOf } from './row-completion.ts';
import { failureOf } from './row-verdicts.ts';
import { roomOrAbort } from './sweep-round.ts';
import type { Topics } from './topics.ts';

/** The tail is waited for so long, where rows do not say whether they have been sent. */
const FENCE_MS = 5_000;
/** Whole rows read together; so many may still be on their way when the next are read. */
const READ_BYTES = 4 * 1024 * 1024;
const READ_ROWS = 1_000;

export interface ReplayChunkDeps {
  readonly jobs: Jobs;
  readonly store: Store;
  readonly scopes: Scopes;
  readonly parking: Parking;
  readonly topics: Topics;
  readonly sender: LaneSender;
  readonly router: Router;
  readonly swept: SweptRows;
  readonly pool: BufferPool;
  readonly stats: RelayStats;
  /** By outbox: true where rows are kept as they are. */
  readonly keeps: readonly boolean[];
  readonly isTailing: () => boolean;
  /** Nothing that is on its way is waited for any more. */
  readonly abandon: AbortSignal;
}

export interface ChunkResult {
  /** Or may have been, where the chunk is to be begun again. */
  readonly sent: number;
  /** Not there, or not published any more. */
  readonly gone: number;
  readonly failures: readonly RowFailure[];
  /** Not null: rows are left, and why; the chunk is to be begun again. */
  readonly again: string | null;
}

/** Scopes that are parked for the chunk, and those that cover its rows already. */
interface Plan {
  readonly park: readonly Scope[];
  readonly covered: ReadonlySet<ScopeId>;
}

/**
 * Sends published rows again: whole aggregates, each in the order of the ids. What the tail meets of them meanwhile is
 * held, and follows: nobody sees old and new rows of an aggregate mixed. It needs the sweep's turn. Rows that are only
 * kept cannot be held: the tail's come in between.
 */
export class ReplayChunk {
  readonly #deps: ReplayChunkDeps;

  constructor(deps: ReplayChunkDeps) {
    this.#deps = deps;
  }

  /** `job`: what the header says. Throws a `RelayError`; nothing of the chunk is in a lane then. */
  async send(outbox: number, ids: readonly RowId[], job: Buffer, signal: AbortSignal): Promise<ChunkResult> {
    const { jobs, parking, swept, stats, keeps, abandon } = this.#deps;
    const keys = await jobs.replayKeys(outbox, ids);
    const faults = await this.#topicFaults(keys, signal);
    if (typeof faults === 'string') return left(faults);
    if (keeps[outbox] && !(await this.#isPassed(signal))) return left('the tail is behind');
    const sendable = keys.filter((key) => !faults.has(topicOf(key)));
    // From here to where the scopes are parked nothing else may happen: no row of the tail comes in between.
    const plan = keeps[outbox] ? NOTHING_PARKED : this.#plan(sendable);
    if (typeof plan === 'string') return left(plan);
    const serving = plan.park.length === 0 ? null : parking.beginReplay(plan.park);
    const allowed = keeps[outbox] ? null : new Set([...plan.covered, ...(serving?.scopes ?? [])]);
    const rows = new ReplayedRows();
    for (const key of keys) {
      const fault = faults.get(topicOf(key));
      if (fault !== undefined) rows.failures.push(failureOf(outbox, key.id, 'failed', fault));
    }
    swept.belongTo(rows);
    stats.sweepCause = REPLAY;
    let gone = ids.length - keys.length;
    try {
      for (const some of slices(sendable)) {
        if (signal.aborted || serving?.isOver === true) {
          rows.unsent += some.length;
          continue;
        }
        const cursor = await jobs.replayRows(outbox, some);
        let read = 0;
        for (; cursor.next(); read++) {
          setJob(cursor.row, job);
          await this.#append(cursor.row, rows, allowed, signal);
        }
        gone += some.length - read;
        this.#kick();
        await rows.atMost(READ_ROWS, abandon);
      }
    } finally {
      this.#kick();
      await rows.atMost(0, abandon);
      swept.belongTo(null);
      if (serving !== null) this.#release(serving);
    }
    const { sent, failures, unsent, open, returned } = rows;
    const why = signal.aborted
      ? 'the relay stops'
      : serving?.isOver === true
        ? 'its live rows could not be held'
        : 'a lane could not deliver';
    // What was given up on its way may have been sent, and is to be sent again.
    return { sent: sent + open + returned, gone, failures, again: unsent + open === 0 ? null : why };
  }

  /** Topics that nobody like us can write to; a text: some topic cannot be asked for now. */
  async #topicFaults(keys: readonly ReplayKey[], signal: AbortSignal): Promise<ReadonlyMap<string, Fault> | string> {
    const { topics } = this.#deps;
    const faults = new Map<string, Fault>();
    for (const topic of new Set(keys.map(topicOf))) {
      if (topic === '') faults.set(topic, NO_TOPIC);
      if (topic === '' || topics.known(topic) !== undefined) continue;
      const opened = await topics.open(topic, signal, false);
      if (opened instanceof TopicLanes) continue;
      if (opened === null || opened.disposition === 'retry' || opened.disposition === 'renew')
        return `topic ${topic} cannot be asked for`;
      faults.set(topic, opened);
    }
    return faults;
  }

  /** Everything that can be read now has been routed: what follows in a lane is behind it. */
  async #isPassed(signal: AbortSignal): Promise<boolean> {
    const { store, router } = this.#deps;
    const head = await store.logEnd();
    return head === null || router.hasRouted(head, FENCE_MS, signal);
  }

  /** A text: why it cannot be now. */
  #plan(keys: readonly ReplayKey[]): Plan | string {
    const { scopes, topics, isTailing } = this.#deps;
    if (scopes.hasEverything && isTailing()) return 'everything waits';
    const park = new Map<string, Scope>();
    const covered = new Set<ScopeId>();
    for (const row of keys) {
      const topic = topicOf(row);
      const { key } = row;
      const partition = topics.known(topic)!.partitionOf(key);
      const text = key.toString('latin1');
      const covering = scopes.covering(topic, partition, () => text);
      if (covering.length === 0) park.set(`${topic}\0${text}`, { kind: 'pair', topic, partition, key });
      for (const { id, scope } of covering) {
        if (scope.kind === 'topic' || scope.kind === 'topic-partition') return `topic ${topic} waits`;
        // Of a pair that waits already the tail sends nothing, and the sweep has no turn.
        covered.add(id);
      }
    }
    return { park: [...park.values()], covered };
  }

  /** `allowed` null: scopes do not matter. */
  async #append(
    row: OutboxRow,
    rows: ReplayedRows,
    allowed: ReadonlySet<ScopeId> | null,
    signal: AbortSignal,
  ): Promise<void> {
    const { topics, parking, pool } = this.#deps;
    const topic = topics.find(row.topic)!;
    const timestampMs = row.createdAtMs >= 0 ? row.createdAtMs : Date.now();
    try {
      for (;;) {
        const lane = topic.laneOf(row);
        const key = (): string => scopeKeyText(row);
        const isOut = allowed !== null && parking.isOutside(allowed, topic.topic, lane.partition, key);
        if (signal.aborted || isOut) {
          rows.unsent++;
          return;
        }
        if (lane.append(row, SWEPT, timestampMs)) {
          rows.open++;
          return;
        }
        this.#kick();
        await roomOrAbort(pool, signal);
      }
    } catch (error) {
      if (!(error instanceof RelayError) || error.fault.disposition !== 'reject') throw error;
      rows.failures.push(failureOf(row.outbox, idOf(row), 'failed', error.fault));
    }
  }

  /** What was held follows; where not all could be held, the sweep hands the aggregates over. */
  #release(serving: Serving): void {
    const { parking, sender } = this.#deps;
    if (serving.isOver) parking.releaseLater(serving);
    else for (const lane of parking.complete(serving)) sender.kick(lane);
  }

  #kick(): void {
    for (const lane of this.#deps.topics.lanes()) this.#deps.sender.kick(lane);
  }
}

const NOTHING_PARKED: Plan = { park: [], covered: new Set() };

function left(why: string): ChunkResult {
  return { sent: 0, gone: 0, failures: [], again: why };
}

function topicOf({ topic }: ReplayKey): string {
  return topic?.toString() ?? '';
}

function setJob({ replay }: OutboxRow, job: Buffer): void {
  replay.form = Form.Text;
  replay.buffer = job;
  replay.start = 0;
  replay.end = job.length;
}

/** By what the rows take in memory. */
function* slices(keys: readonly ReplayKey[]): Iterable<RowId[]> {
  let ids: RowId[] = [];
  let bytes = 0;
  for (const key of keys) {
    if (ids.length > 0 && (ids.length === READ_ROWS || bytes + key.bytes > READ_BYTES)) {
      yield ids;
      ids = [];
      bytes = 0;
    }
    ids.push(key.id);
    bytes += key.bytes;
  }
  if (ids.length > 0) yield ids;
}
