import { z } from 'zod';
import type { JobProgress, JobSpec } from '../model/job.ts';

/*
 * What stands in the JSON columns of cdc_relay_jobs. A newer version may have written more: what is not known is passed
 * over.
 */

const filter = z.object({
  outbox: z.string().nullable(),
  ids: z.object({ from: z.string(), to: z.string() }).nullable(),
  aggregate: z.string().nullable(),
  topic: z.string().nullable(),
  sinceMs: z.number().nullable(),
  untilMs: z.number().nullable(),
});

const from = z.discriminatedUnion('at', [
  z.object({ at: z.literal('head') }),
  z.object({
    at: z.literal('position'),
    file: z.string(),
    offset: z.number().int().nonnegative(),
    gtidSet: z.string().nullable(),
  }),
]);

export const jobSpecSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('reconcile'), from }),
  z.object({ kind: z.literal('republish'), filter }),
]) satisfies z.ZodType<JobSpec>;

const reconcileProgress = z.object({ hasBegun: z.boolean(), pendingAtFirst: z.number(), pending: z.number() });

const republishProgress = z.object({
  outbox: z.number(),
  doneHash: z.number(),
  cut: z.object({ hash: z.number(), id: z.string() }).nullable(),
  lastIds: z.array(z.string().nullable()),
  looked: z.number(),
  total: z.number().nullable(),
  counted: z.number(),
  sent: z.number(),
  gone: z.number(),
  failed: z.number(),
  failedRows: z.array(z.object({ outbox: z.string(), id: z.string(), error: z.string() })),
  // Of an older version, which does not say.
  isUnderWay: z.boolean().default(false),
  repeats: z.number(),
  sendingMs: z.number(),
});

export const jobProgressSchema = z.union([reconcileProgress, republishProgress]) satisfies z.ZodType<JobProgress>;
