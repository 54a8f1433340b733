import { type Fault, RelayError } from '../model/fault.ts';
import type { Job, Jobs } from '../model/job.ts';
import type { Log } from '../model/log.ts';
import { type Checkpoint, comparePositions, formatPosition } from '../model/position.ts';
import type { Settings } from '../model/settings.ts';
import type { Leader, SavedOffsets, ServerFacts, Store } from '../model/store.ts';
import type { Start } from './start-position.ts';

export interface ResyncDeps {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly leader: Leader;
  readonly facts: ServerFacts;
  readonly settings: Settings;
  readonly log: Log;
  /** A checkpoint that knows of nothing. */
  readonly nowhere: Checkpoint;
  /** Where the log ends, or before everything where there is none. */
  readonly head: () => Promise<Checkpoint>;
}

/** Why a term ends that a job asks to begin anew. */
export function resyncFault(job: bigint): Fault {
  return { code: 'RESYNC', disposition: 'renew', detail: `job ${job} reconciles tables and position` };
}

/**
 * Where a job asks this term to begin: everything is parked, so that what is pending comes first, and the position is
 * the one that it names. Null: there is no such job, or it has begun already.
 */
export async function resyncStart(deps: ResyncDeps, saved: SavedOffsets): Promise<Start | null> {
  const { jobs, leader, store, settings, facts, log } = deps;
  const job = await nextJob(deps);
  if (job?.spec.kind !== 'reconcile') return null;
  if (job.progress !== null && 'hasBegun' in job.progress && job.progress.hasBegun) return null;
  if (job.state === 'queued' && !(await jobs.start(leader, job.id))) return null;
  const { from } = job.spec;
  const pending = await jobs.pendingRows();
  const end = await deps.head();
  const checkpoint: Checkpoint =
    from.at === 'head'
      ? end
      : { ...deps.nowhere, position: { file: from.file, offset: from.offset }, gtidSet: from.gtidSet };
  const high = comparePositions(end.position, checkpoint.position) > 0 ? end.position : checkpoint.position;
  const canPark = settings.outboxes.some(({ retire }) => retire !== 'keep');
  const parkEverything = canPark ? 'RESYNC' : null;
  await store.begin(leader, { checkpoint, high, serverUuid: facts.serverUuid, parkEverything });
  await jobs.save(leader, job.id, { hasBegun: true, pendingAtFirst: pending, pending });
  log.warn('resync-begun', {
    job: String(job.id),
    saved: formatPosition(saved.checkpoint.position),
    now: formatPosition(checkpoint.position),
    pending,
    effect: canPark
      ? 'what is pending is delivered from the tables, then the tail goes on from here'
      : 'the tail goes on from here',
  });
  return { from: checkpoint, high, abandoned: saved };
}

/** Without the table of jobs there are none: it comes with the next `migrate`. */
async function nextJob({ jobs }: ResyncDeps): Promise<Job | null> {
  try {
    return await jobs.next();
  } catch (error) {
    if (error instanceof RelayError && error.fault.code === 'MYSQL_SCHEMA') return null;
    throw error;
  }
}
