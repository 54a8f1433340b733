import { backOffMs } from '../delivery/back-off.ts';
import { type Clock, pause } from '../model/clock.ts';
import { type Fault, RelayError } from '../model/fault.ts';
import type { Job, JobProgress, Jobs, JobSpec, ReconcileProgress } from '../model/job.ts';
import type { Log } from '../model/log.ts';
import type { Leader } from '../model/store.ts';
import { Replay, type ReplayDeps } from './replay.ts';
import { resyncFault } from './resync-start.ts';

const POLL_MS = 1_000;
/** Where the table is not there yet: a newer version of the relay has started before `migrate`. */
const MISSING_POLL_MS = 60_000;
const LOG_MS = 10_000;
const BACK_OFF = { baseMs: 500, capMs: 10_000 };

export interface JobRunnerDeps extends Omit<ReplayDeps, 'jobs' | 'leader' | 'onProgress'> {
  readonly jobs: Jobs;
  readonly leader: Leader;
  readonly clock: Clock;
  readonly log: Log;
  /** Everything is parked no longer, and the tail has passed where it was. */
  readonly isReconciled: () => boolean;
  /** While false, everything stays parked. */
  readonly isTailing: () => boolean;
  /** The term is to end softly; the next one begins anew. */
  readonly onResync: (fault: Fault) => void;
}

/** Does what people have asked for, one job at a time, the oldest first. */
export class JobRunner {
  readonly #deps: JobRunnerDeps;
  #loggedMs = -Infinity;
  /** In a row. */
  #failures = 0;

  constructor(deps: JobRunnerDeps) {
    this.#deps = deps;
  }

  /** Until `signal` is aborted. Throws a `RelayError` only when this relay leads no longer. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!signal.aborted) {
      let waitMs = POLL_MS;
      try {
        if (await this.#once(signal)) waitMs = 0;
      } catch (error) {
        const fault = faultOf(error);
        if (++this.#failures === 1) log.warn('jobs-unavailable', { code: fault.code, detail: fault.detail });
        waitMs = fault.code === 'MYSQL_SCHEMA' ? MISSING_POLL_MS : backOffMs(BACK_OFF, this.#failures, Math.random());
      }
      await pause(clock, waitMs, signal);
    }
  }

  /** True: there may be another one. */
  #answered(): void {
    if (this.#failures > 0) this.#deps.log.info('jobs-available', { failures: this.#failures });
    this.#failures = 0;
  }

  async #once(signal: AbortSignal): Promise<boolean> {
    const { jobs, leader, log } = this.#deps;
    const job = await jobs.next();
    if (job === null) {
      this.#answered();
      return false;
    }
    const { spec } = job;
    if (spec.kind === 'reconcile' && !hasBegun(job)) {
      log.info('resync-asked-for', { job: String(job.id) });
      this.#deps.onResync(resyncFault(job.id));
      return false;
    }
    if (job.state === 'queued' && !(await jobs.start(leader, job.id))) return true;
    this.#answered();
    this.#log('job-started', job, job.progress, { again: job.state === 'running' });
    const started = { ...job, state: 'running' } as const;
    if (spec.kind === 'reconcile') await this.#reconcile(started, signal);
    else await this.#republish(started, spec, signal);
    return true;
  }

  async #reconcile(job: Job, signal: AbortSignal): Promise<void> {
    const { jobs, leader, clock, isTailing, isReconciled } = this.#deps;
    while (!signal.aborted) {
      const before = job.progress as ReconcileProgress;
      const isThrough = isReconciled();
      const pending = await jobs.pendingRows();
      const progress = { ...before, pending };
      if (!(await jobs.save(leader, job.id, progress))) return;
      this.#progressed(job, progress);
      if (isTailing() ? isThrough : pending === 0) {
        await this.#finish(job, progress);
        return;
      }
      await pause(clock, POLL_MS, signal);
    }
  }

  async #republish(job: Job, spec: JobSpec & { kind: 'republish' }, signal: AbortSignal): Promise<void> {
    const { jobs, leader, log } = this.#deps;
    const onProgress = (progress: JobProgress): void => this.#progressed(job, progress);
    const replay = new Replay({ ...this.#deps, onProgress }, job, spec);
    try {
      const ended = await replay.run(signal);
      if (ended === 'done') await this.#finish(job, replay.progress);
      else this.#log(ended === 'stopped' ? 'job-stopped' : 'job-cancelled', job, replay.progress);
    } catch (error) {
      const fault = error instanceof RelayError ? faultOf(error) : BUG;
      if (fault.disposition === 'retry' || fault.disposition === 'renew') throw error;
      await jobs.finish(leader, job.id, 'failed', `${fault.code}: ${fault.detail}`);
      log.error('job-failed', {
        job: String(job.id),
        code: fault.code,
        detail: fault.detail,
        ...(fault === BUG ? { err: error } : {}),
      });
    }
  }

  async #finish(job: Job, progress: JobProgress): Promise<void> {
    const { jobs, leader } = this.#deps;
    await jobs.finish(leader, job.id, 'done', null);
    this.#log('job-done', job, progress);
  }

  #progressed(job: Job, progress: JobProgress): void {
    const nowMs = this.#deps.clock.nowMs();
    if (nowMs - this.#loggedMs < LOG_MS) return;
    this.#loggedMs = nowMs;
    this.#log('job-progress', job, progress);
  }

  #log(event: string, job: Job, progress: JobProgress | null, more: Readonly<Record<string, unknown>> = {}): void {
    this.#deps.log.info(event, { job: String(job.id), kind: job.spec.kind, ...told(progress), ...more });
  }
}

/** The job ends, and not the relay: nothing of it is in the lanes. */
const BUG: Fault = { code: 'INTERNAL', disposition: 'halt', detail: 'sending rows again; the log has more' };

function hasBegun({ progress }: Job): boolean {
  return progress !== null && 'hasBegun' in progress && progress.hasBegun;
}

function told(progress: JobProgress | null): Readonly<Record<string, unknown>> {
  if (progress === null) return {};
  if ('hasBegun' in progress) return { pending: progress.pending, pendingAtFirst: progress.pendingAtFirst };
  const { looked, total, sent, gone, failed, repeats, sendingMs } = progress;
  return total === null ? { looked } : { total, sent, gone, failed, repeats, sendingMs };
}

/** Rethrows what ends the term. */
function faultOf(error: unknown): Fault {
  if (!(error instanceof RelayError)) throw error;
  const { code } = error.fault;
  if (code === 'LEADERSHIP_LOST' || code === 'MYSQL_FOREIGN_SERVER') throw error;
  return error.fault;
}
