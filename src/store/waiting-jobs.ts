import { z } from 'zod';
import { RelayError } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { JobProgress } from '../model/job.ts';
import type { WaitingJob } from '../model/progress.ts';
import type { Settings } from '../model/settings.ts';
import { jobProgressSchema } from './jobs-schema.ts';
import type { Row, Session } from './session.ts';

const MOST = 100;

const waitingJob = z.object({
  id: z.coerce.string(),
  kind: z.enum(['reconcile', 'republish']),
  state: z.enum(['queued', 'running']),
  progress: z.string().nullable(),
  started_ms_ago: z.coerce.number().nullable(),
});

/** Jobs that are queued or run, the first 100 of them, by the index (relay, state, id). Those of a newer version are left out. */
export async function readWaitingJobs(session: Session, settings: Settings): Promise<WaitingJob[]> {
  const table = quoteTable(settings.mysql.database, 'cdc_relay_jobs');
  try {
    const rows = await session.rows(
      'looking for jobs',
      `SELECT id, kind, state, CAST(progress AS CHAR) AS progress,
         TIMESTAMPDIFF(MICROSECOND, started_at, UTC_TIMESTAMP(6)) DIV 1000 AS started_ms_ago
       FROM ${table} FORCE INDEX (waiting) WHERE relay = ? AND state IN ('queued', 'running') LIMIT ${MOST}`,
      [settings.relay.name],
    );
    return rows.flatMap(jobOf).sort((a, b) => Number(a.id) - Number(b.id));
  } catch (error) {
    // Before `migrate` there is no such table.
    if (error instanceof RelayError && error.fault.code === 'MYSQL_SCHEMA') return [];
    throw error;
  }
}

function jobOf(row: Row): WaitingJob[] {
  const parsed = waitingJob.safeParse(row);
  if (!parsed.success) return [];
  const { id, kind, state, progress, started_ms_ago: startedMsAgo } = parsed.data;
  const known = progress === null ? undefined : jobProgressSchema.safeParse(JSON.parse(progress)).data;
  return [{ id, kind, state, ...rowsOf(known), startedMsAgo }];
}

function rowsOf(progress: JobProgress | undefined): Pick<WaitingJob, 'done' | 'total'> {
  if (progress === undefined) return { done: null, total: null };
  if ('sent' in progress) return { done: progress.sent + progress.gone + progress.failed, total: progress.total };
  if (!progress.hasBegun) return { done: null, total: null };
  // What has been committed meanwhile is pending too.
  const { pendingAtFirst, pending } = progress;
  return { done: Math.max(0, pendingAtFirst - pending), total: pendingAtFirst };
}
