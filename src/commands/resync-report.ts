import { z } from 'zod';
import type { ReplayFilter, RepublishProgress, ResyncFrom } from '../model/job.ts';
import type { JobRecord } from '../store/jobs-table.ts';
import { ageText, bytesText, countText, escapedText, rowsText } from './text.ts';

/** A job. Times are UTC. */
const job = z.object({
  id: z.number(),
  kind: z.enum(['reconcile', 'republish']),
  state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']),
  /** What it does, as people read it. */
  what: z.string(),
  /** Of a reconciliation: rows due and pending when it began (0 before), and now. */
  reconcile: z.object({ hasBegun: z.boolean(), pendingAtFirst: z.number(), pending: z.number() }).nullable(),
  /** Of rows that are sent again. `total` null: they are looked for, and `looked` says how far that is. */
  republish: z
    .object({
      total: z.number().nullable(),
      looked: z.number(),
      sent: z.number(),
      /** Not published any more when it was their turn. */
      gone: z.number(),
      failed: z.number(),
      /** The first of them. */
      failedRows: z.array(z.object({ outbox: z.string(), id: z.string(), error: z.string() })),
      repeats: z.number(),
      sendingMs: z.number(),
    })
    .nullable(),
  createdAt: z.string(),
  createdBy: z.string(),
  startedAt: z.string().nullable(),
  updatedAt: z.string(),
  finishedAt: z.string().nullable(),
  error: z.string().nullable(),
});
export type ReportedJob = z.infer<typeof job>;

/** A line of `resync --json` and `resync attach --json`, and what `resync show --json` prints. Fields may be added. */
export const resyncJobSchema = z.object({ version: z.literal(1), job });

/** What `resync list --json` prints. */
export const resyncListSchema = z.object({ version: z.literal(1), jobs: z.array(job) });

/** What `resync cancel --json` prints. False: it had ended already, or cannot be cancelled any more. */
export const resyncCancelSchema = z.object({ version: z.literal(1), cancelled: z.boolean(), job });

/** What `resync --dry-run --json` prints. */
export const resyncPlanSchema = z.object({
  version: z.literal(1),
  kind: z.enum(['reconcile', 'republish']),
  what: z.string(),
  /** To be sent again; or due and pending, counted up to 100,000 in each outbox. */
  rows: z.number(),
  topics: z.array(z.object({ topic: z.string(), rows: z.number() })),
  /** Pairs of topic and aggregate; an estimate beyond a million. */
  aggregates: z.number(),
  /** UTC; of the lowest and the highest id. Null where nothing says so. */
  oldest: z.string().nullable(),
  newest: z.string().nullable(),
  /** Of payloads and headers, from a sample. */
  estimatedBytes: z.number(),
  estimatedMs: z.number(),
  rowsPerSecond: z.number(),
  /** False: nobody has measured it here yet. */
  isMeasured: z.boolean(),
});
export type ResyncPlan = z.infer<typeof resyncPlanSchema>;

export function reportedJob(record: JobRecord): ReportedJob {
  const { id, spec, state, progress, createdBy, error } = record;
  return {
    id: Number(id),
    kind: spec.kind,
    state,
    what: spec.kind === 'reconcile' ? reconcileText(spec.from) : filterText(spec.filter),
    reconcile: progress !== null && 'hasBegun' in progress ? progress : null,
    republish: progress !== null && 'sent' in progress ? republished(progress) : null,
    createdAt: utc(record.createdAt),
    createdBy,
    startedAt: record.startedAt === null ? null : utc(record.startedAt),
    updatedAt: utc(record.updatedAt),
    finishedAt: record.finishedAt === null ? null : utc(record.finishedAt),
    error,
  };
}

function republished(progress: RepublishProgress): NonNullable<ReportedJob['republish']> {
  const { total, looked, sent, gone, failed, failedRows, repeats, sendingMs } = progress;
  return { total, looked, sent, gone, failed, failedRows: [...failedRows], repeats, sendingMs };
}

export function reconcileText(from: ResyncFrom): string {
  if (from.at === 'head') return 'deliver what is pending from the tables, then go on from the end of the binlog';
  const by = from.gtidSet === null ? '' : ' (by its GTID set)';
  return `deliver what is pending from the tables, then go on from ${from.file}:${from.offset}${by}`;
}

export function filterText({ outbox, ids, aggregate, topic, sinceMs, untilMs }: ReplayFilter): string {
  const time = (ms: number): string => new Date(ms).toISOString();
  const parts = [
    ...(outbox === null ? [] : [`of ${escapedText(outbox)}`]),
    ...(ids === null ? [] : [`ids ${escapedText(ids.from)}..${escapedText(ids.to)}`]),
    ...(topic === null ? [] : [`topic ${escapedText(topic)}`]),
    ...(aggregate === null ? [] : [`aggregate ${escapedText(aggregate)}`]),
    ...(sinceMs === null ? [] : [`since ${time(sinceMs)}`]),
    ...(untilMs === null ? [] : [`until ${time(untilMs)}`]),
  ];
  return `send published rows again: ${parts.length === 0 ? 'all' : parts.join(', ')}`;
}

/** How far it is, in one line. */
export function progressText({ state, reconcile, republish, kind }: ReportedJob): string {
  if (kind === 'reconcile') {
    if (reconcile === null) return 'waits for a relay that leads';
    return `${rowsText(reconcile.pending)} pending (${countText(reconcile.pendingAtFirst)} when it began)`;
  }
  if (republish === null) return state === 'queued' ? 'waits for a relay that leads' : 'nothing sent';
  const { total, looked, sent, gone, failed } = republish;
  if (total === null) return `looking for rows: ${countText(looked)} looked at`;
  const rest = [
    ...(gone === 0 ? [] : [`${countText(gone)} gone meanwhile`]),
    ...(failed === 0 ? [] : [`${countText(failed)} could not be sent`]),
  ];
  return [`${countText(sent)} of ${rowsText(total)} sent`, ...rest].join(', ');
}

export function jobText(record: JobRecord): string {
  const reported = reportedJob(record);
  const { republish } = reported;
  const facts: [string, string][] = [
    ['progress', progressText(reported)],
    ['asked', `${reported.createdAt} by ${escapedText(reported.createdBy)}`],
    ['started', reported.startedAt ?? '-'],
    [reported.finishedAt === null ? 'updated' : 'ended', reported.finishedAt ?? reported.updatedAt],
  ];
  if (republish !== null && republish.sendingMs > 0) {
    const rate = countText(Math.round((republish.sent * 1000) / republish.sendingMs));
    facts.push(['rate', `${rate} rows/s, ${ageText(republish.sendingMs)} of sending`]);
  }
  if (republish !== null && republish.repeats > 0) {
    facts.push([
      'repeats',
      `${countText(republish.repeats)} chunks were begun again: rows may have gone out more than once`,
    ]);
  }
  if (reported.error !== null) facts.push(['error', escapedText(reported.error)]);
  for (const row of republish?.failedRows ?? []) {
    facts.push(['not sent', `${escapedText(row.outbox)} ${escapedText(row.id)}  ${escapedText(row.error)}`]);
  }
  return [
    `${reported.state.toUpperCase()}  job ${reported.id}: ${reported.what}`,
    ...facts.map(([name, value]) => `${name.padEnd(9)} ${value}`),
  ].join('\n');
}

export function jobsText(records: readonly JobRecord[]): string {
  if (records.length === 0) return 'no jobs';
  return records
    .map((record) => {
      const reported = reportedJob(record);
      const age = `${ageText(record.ageMs)} ago`;
      return `${String(reported.id).padStart(5)}  ${reported.state.padEnd(9)}  ${age.padEnd(12)}  ${reported.what}; ${progressText(reported)}`;
    })
    .join('\n');
}

export function planText(plan: ResyncPlan): string {
  const { kind, rows, topics, aggregates, oldest, newest, estimatedBytes, estimatedMs, rowsPerSecond } = plan;
  if (kind === 'reconcile') return `would ${plan.what}\n${rowsText(rows)} pending now; each aggregate's order is kept`;
  if (rows === 0) return `would ${plan.what}\nno row matches`;
  const times = oldest === null || newest === null ? '' : ` (${oldest} ... ${newest})`;
  const about = aggregates > EXACT_AGGREGATES ? '~' : '';
  const named = topics.slice(0, SHOWN_TOPICS).map(({ topic, rows }) => `${escapedText(topic)} ${countText(rows)}`);
  const more = topics.length > SHOWN_TOPICS ? `, and ${countText(topics.length - SHOWN_TOPICS)} more` : '';
  const rate = `${countText(rowsPerSecond)} rows/s${plan.isMeasured ? '' : ' (assumed)'}`;
  return [
    `would send ${rowsText(rows)} again${times}, ${about}${countText(aggregates)} ${aggregates === 1 ? 'aggregate' : 'aggregates'}, ` +
      `~${bytesText(estimatedBytes)}, about ${ageText(estimatedMs)} at ${rate}`,
    `topics: ${named.join(', ')}${more}`,
    "live rows go on; each aggregate's order is kept; header cdc-relay-replay marks them",
  ].join('\n');
}

/** Beyond, pairs are estimated. */
export const EXACT_AGGREGATES = 1_000_000;
const SHOWN_TOPICS = 10;

/** A DATETIME in UTC as ISO 8601. */
export function utc(time: string): string {
  return `${time.replace(' ', 'T')}Z`;
}
