import { murmur2 } from '../encoding/murmur2.ts';
import { backOffMs } from '../delivery/back-off.ts';
import { type Clock, pause } from '../model/clock.ts';
import { RelayError } from '../model/fault.ts';
import type { Job, Jobs, JobSpec, RepublishProgress } from '../model/job.ts';
import type { Log } from '../model/log.ts';
import { type RowId, shownId } from '../model/row-ids.ts';
import type { Leader, RowFailure } from '../model/store.ts';
import type { ChunkResult, ReplayChunk } from './replay-chunk.ts';
import { ReplayList } from './replay-list.ts';
import type { Turns } from './turns.ts';

/** Rows of a list: some 100 MiB. */
const LIST_ROWS = 4_000_000;
const CHUNK_ROWS = 2_000;
const BACK_OFF = { baseMs: 100, capMs: 5_000 };
/** How far it is, is written so often before the job is begun again. */
const SAVE_TRIES = 6;
/** Rows that could not be sent are named, up to so many. */
const NAMED_ROWS = 20;
const SAVE_LOOK_MS = 2_000;

export interface ReplayDeps {
  readonly jobs: Jobs;
  readonly leader: Leader;
  readonly chunk: ReplayChunk;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly log: Log;
  /** By outbox, `schema.table`. */
  readonly tables: readonly string[];
  /** Told of each step. */
  readonly onProgress: (progress: RepublishProgress) => void;
  readonly listRows?: number;
  readonly chunkRows?: number;
}

const NOTHING: RepublishProgress = {
  ...{ outbox: 0, doneHash: -1, cut: null, lastIds: [], looked: 0, total: null, counted: 0 },
  ...{ sent: 0, gone: 0, failed: 0, failedRows: [], isUnderWay: false, repeats: 0, sendingMs: 0 },
};

/**
 * One job that sends published rows again. Its rows are found by one walk along the primary key, listed by the hash of
 * their pair (topic, aggregate), and sent pair by pair in chunks; how far that is is saved with each. A crash goes on
 * behind the last chunk saved: the rows of the one under way are sent once more. That one is under way stands in the
 * table before any of its rows is sent: whoever takes the job up again counts it, and nothing is sent again and again
 * while nothing can be saved.
 */
export class Replay {
  readonly #deps: ReplayDeps;
  readonly #id: bigint;
  readonly #spec: JobSpec & { readonly kind: 'republish' };
  readonly #header: Buffer;
  #progress: RepublishProgress;
  #chunkRows: number;

  constructor(deps: ReplayDeps, job: Job, spec: JobSpec & { readonly kind: 'republish' }) {
    this.#deps = deps;
    this.#id = job.id;
    this.#spec = spec;
    this.#header = Buffer.from(String(job.id));
    const saved = job.progress !== null && 'doneHash' in job.progress ? job.progress : NOTHING;
    this.#progress = saved.isUnderWay ? { ...saved, isUnderWay: false, repeats: saved.repeats + 1 } : saved;
    this.#chunkRows = deps.chunkRows ?? CHUNK_ROWS;
  }

  get progress(): RepublishProgress {
    return this.#progress;
  }

  /** `stopped`: it goes on one day; `cancelled`: it does not. Throws a `RelayError`. */
  async run(signal: AbortSignal): Promise<'done' | 'stopped' | 'cancelled'> {
    if (!(await this.#begin())) return 'cancelled';
    while (this.#progress.outbox < this.#deps.tables.length) {
      const list = await this.#list(signal);
      if (list === null) return signal.aborted ? 'stopped' : 'cancelled';
      const ended = await this.#send(list, signal);
      if (ended !== 'done') return ended;
      const { outbox } = this.#progress;
      const next = list.isLast ? { outbox: outbox + 1, doneHash: -1 } : { doneHash: list.endHash - 1 };
      if (!(await this.#save({ ...next, cut: null }))) return 'cancelled';
    }
    return 'done';
  }

  /** What belongs to the job is what is there when it begins. */
  async #begin(): Promise<boolean> {
    const { jobs, tables } = this.#deps;
    if (this.#progress.lastIds.length === tables.length) return true;
    const lastIds: (string | null)[] = [];
    for (const outbox of tables.keys()) lastIds.push((await jobs.lastId(outbox))?.toString() ?? null);
    return this.#save({ lastIds });
  }

  /** Rows of the outbox that are to be sent, as many as a list takes. Null: stopped or cancelled. */
  async #list(signal: AbortSignal): Promise<ReplayList | null> {
    const { jobs, clock, listRows = LIST_ROWS } = this.#deps;
    const { outbox, doneHash, cut } = this.#progress;
    const list = new ReplayList(doneHash + 1, listRows);
    const lastId = this.#progress.lastIds[outbox];
    const last = lastId === null ? null : BigInt(lastId);
    const counts = this.#progress.counted <= outbox;
    let found = 0;
    let savedMs = clock.nowMs();
    for (let after: RowId | null = null; ;) {
      const beganMs = clock.nowMs();
      const page = await jobs.replayPage(outbox, this.#spec.filter, after, last);
      for (const { id, topic, key } of page.rows) {
        const hash = pairHash(topic, key);
        if (cut?.hash !== hash || !isUpTo(id, cut.id)) list.add(hash, id);
      }
      found += page.rows.length;
      if (counts) this.#progress = { ...this.#progress, looked: this.#progress.looked + page.looked };
      if (page.next === null) break;
      after = page.next;
      if (clock.nowMs() - savedMs >= SAVE_LOOK_MS) {
        if (!(await this.#save({}))) return null;
        savedMs = clock.nowMs();
      }
      // Half of what one connection can do, at the most.
      await pause(clock, clock.nowMs() - beganMs, signal);
      if (signal.aborted) return null;
    }
    list.sort();
    const total = (this.#progress.total ?? 0) + found;
    if (counts && !(await this.#save({ total, counted: outbox + 1 }))) return null;
    return list;
  }

  async #send(list: ReplayList, signal: AbortSignal): Promise<'done' | 'stopped' | 'cancelled'> {
    const { clock, turns, chunk, log, chunkRows = CHUNK_ROWS } = this.#deps;
    let tries = 0;
    for (let at = 0; !signal.aborted;) {
      const next = list.chunk(at, this.#chunkRows);
      if (next === null) return 'done';
      if (!this.#progress.isUnderWay && !(await this.#save({ isUnderWay: true }))) return 'cancelled';
      const beganMs = clock.nowMs();
      const { outbox } = this.#progress;
      const result = await turns.take(() => chunk.send(outbox, next.ids, this.#header, signal));
      const sendingMs = this.#progress.sendingMs + Math.round(clock.nowMs() - beganMs);
      if (result.again !== null) {
        const repeats = this.#progress.repeats + (result.sent > 0 ? 1 : 0);
        if (++tries === 1) log.info('job-waits', { job: String(this.#id), why: result.again });
        this.#chunkRows = Math.max(1, Math.floor(this.#chunkRows / 2));
        if (!(await this.#save({ repeats, sendingMs, isUnderWay: false }))) return 'cancelled';
        await pause(clock, backOffMs(BACK_OFF, tries, Math.random()), signal);
        continue;
      }
      tries = 0;
      this.#chunkRows = Math.min(chunkRows, this.#chunkRows * 2);
      const cut = next.cut === null ? null : { hash: next.cut.hash, id: String(next.cut.id) };
      at = next.end;
      // The next one begins at once.
      const isUnderWay = at < list.length;
      if (!(await this.#save({ ...this.#counted(result), sendingMs, doneHash: next.doneHash, cut, isUnderWay })))
        return 'cancelled';
    }
    if (this.#progress.isUnderWay && !(await this.#save({ isUnderWay: false }))) return 'cancelled';
    return 'stopped';
  }

  #counted({ sent, gone, failures }: ChunkResult): Partial<RepublishProgress> {
    const { progress } = this;
    const named = failures.map(({ outbox, id, error }: RowFailure) => ({
      outbox: this.#deps.tables[outbox],
      id: shownId(id),
      error,
    }));
    return {
      sent: progress.sent + sent,
      gone: progress.gone + gone,
      failed: progress.failed + failures.length,
      failedRows: [...progress.failedRows, ...named].slice(0, NAMED_ROWS),
    };
  }

  /** False: it has been cancelled. */
  async #save(changes: Partial<RepublishProgress>): Promise<boolean> {
    this.#progress = { ...this.#progress, ...changes };
    const { jobs, leader, clock, onProgress } = this.#deps;
    for (let tries = 1; ; tries++) {
      try {
        const goesOn = await jobs.save(leader, this.#id, this.#progress);
        onProgress(this.#progress);
        return goesOn;
      } catch (error) {
        const mayPass = error instanceof RelayError && error.fault.disposition === 'retry';
        if (!mayPass || tries === SAVE_TRIES || leader.lost.aborted) throw error;
        await pause(clock, backOffMs(BACK_OFF, tries, Math.random()), leader.lost);
      }
    }
  }
}

/** Of a pair: 32 bits. */
export function pairHash(topic: Buffer | null, key: Buffer): number {
  const bytes = Buffer.concat([topic ?? Buffer.alloc(0), Buffer.of(0), key]);
  return murmur2(bytes, 0, bytes.length) >>> 0;
}

/** Ids that are no integers come in an order that only their server knows: an aggregate of theirs is begun again. */
function isUpTo(id: RowId, last: string): boolean {
  return typeof id === 'bigint' && id <= BigInt(last);
}
