import type { RepublishProgress } from '../../../src/model/job.ts';
import type { Server } from './server.ts';
import { type AskedJob, isNamed } from './simulated-jobs.ts';
import { scopeKeyOf, type TableRow } from './table.ts';

/** The last row of an aggregate that was sent again, and whether one of its own came behind it. */
interface Run {
  readonly job: string;
  readonly last: TableRow;
  /** As the job's table said then. */
  readonly repeats: number;
  isOver: boolean;
}

/**
 * Judges what jobs send again: only what was delivered before and is theirs, each aggregate in the order of its ids with
 * nothing of the tail in between, and all of it when the job is done. An aggregate is begun again only when the job has
 * been, and its table says so.
 */
export class Replays {
  readonly #server: Server;
  /** By job and row: how often. */
  readonly #sent = new Map<string, Map<TableRow, number>>();
  readonly #runs = new Map<string, Run>();
  /** By job: what was published when it had begun. */
  readonly #wanted = new Map<string, readonly TableRow[]>();
  readonly #done = new Set<string>();

  constructor(server: Server) {
    this.#server = server;
  }

  times(job: bigint, row: TableRow): number {
    return this.#sent.get(String(job))?.get(row) ?? 0;
  }

  /** Returns what is broken. */
  appended(row: TableRow, job: string, wasDelivered: boolean, mayMix: boolean): string | null {
    const name = `r${row.number} sent again by job ${job}`;
    if (!wasDelivered) return `I4 ${name}: it was not delivered before`;
    if (!this.#isOf(row, job)) return `I4 ${name}: it is none of its rows`;
    const times = this.#sent.get(job) ?? new Map<TableRow, number>();
    this.#sent.set(job, times);
    const pair = pairOf(row);
    const others = [...times.keys()].filter((other) => pairOf(other) === pair);
    const isFirst = !others.some((other) => other.id < row.id);
    times.set(row, (times.get(row) ?? 0) + 1);
    const run = this.#runs.get(pair);
    const repeats = this.#repeatsOf(job);
    this.#runs.set(pair, { job, last: row, repeats, isOver: false });
    if (mayMix || others.length === 0) return null;
    if (isFirst && (run?.job !== job || run.repeats < repeats)) return null;
    const goesOn = run?.job === job && !run.isOver && run.last.id < row.id;
    return goesOn ? null : `I2 ${name}: not behind the row before it`;
  }

  /** A row of the application's goes into its topic. */
  live(row: TableRow): void {
    const run = this.#runs.get(pairOf(row));
    if (run !== undefined) run.isOver = true;
  }

  /** Returns what is broken. */
  afterCommit(mayRepeat: boolean): string | null {
    for (const job of this.#server.jobs) {
      const { id, spec, state, progress } = job;
      const name = String(id);
      if (spec.kind !== 'republish') continue;
      if (state === 'failed') return `job ${name} failed`;
      if (!this.#wanted.has(name) && isSaved(progress)) this.#wanted.set(name, this.#namedBy(job));
      if (state !== 'done' || this.#done.has(name)) continue;
      this.#done.add(name);
      const broken = this.#judgeDone(job, progress as RepublishProgress, mayRepeat);
      if (broken !== null) return broken;
    }
    return null;
  }

  #judgeDone({ id }: AskedJob, { failed, gone, repeats, sent }: RepublishProgress, mayRepeat: boolean): string | null {
    const wanted = this.#wanted.get(String(id))!;
    const missing = wanted.filter((row) => this.times(id, row) === 0);
    if (missing.length > failed + gone) return `I1 job ${id} is done, and r${missing[0].number} was not sent again`;
    if (sent + failed + gone < wanted.length) return `job ${id} counts ${sent} of ${wanted.length} rows`;
    const twice = wanted.find((row) => this.times(id, row) > 1 + repeats);
    if (twice !== undefined && !mayRepeat) return `I3 r${twice.number} sent again more than once by job ${id}`;
    return null;
  }

  #repeatsOf(name: string): number {
    const progress = this.#server.jobs.find(({ id }) => String(id) === name)?.progress;
    return progress != null && 'repeats' in progress ? progress.repeats : 0;
  }

  #isOf(row: TableRow, name: string): boolean {
    const job = this.#server.jobs.find(({ id }) => String(id) === name);
    return job !== undefined && isNamedBy(job, row);
  }

  /** What is published now; more of it may be when it is looked for. */
  #namedBy(job: AskedJob): TableRow[] {
    const { rows } = this.#server;
    const published = rows.filter((row) => row.status === 'published' && this.#server.isThere(row));
    return published.filter((row) => row.entry.isVisible && isNamedBy(job, row));
  }
}

function isNamedBy({ spec, progress }: AskedJob, row: TableRow): boolean {
  if (spec.kind !== 'republish' || progress === null || !('lastIds' in progress)) return false;
  return isNamed(spec.filter, row) && row.id <= BigInt(progress.lastIds[0] ?? 0);
}

function isSaved(progress: AskedJob['progress']): boolean {
  return progress !== null && 'lastIds' in progress && progress.lastIds.length > 0;
}

function pairOf(row: TableRow): string {
  return `${row.topic}\0${scopeKeyOf(row).toString('latin1')}`;
}
