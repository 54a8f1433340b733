import { z } from 'zod';

/** One failed row, without payload and headers. Times are UTC. */
export const failedRowSchema = z.object({
  /** `schema.table` */
  outbox: z.string(),
  id: z.string(),
  status: z.string(),
  topic: z.string().nullable(),
  /** The aggregate id as text; what is no UTF-8 is replaced. `keyHex` has its bytes. */
  key: z.string().nullable(),
  keyHex: z.string().nullable(),
  eventType: z.string().nullable(),
  attempts: z.number(),
  error: z.string().nullable(),
  createdAt: z.string().nullable(),
  availableAt: z.string().nullable(),
  ageMs: z.number().nullable(),
});
export type ReportedRow = z.infer<typeof failedRowSchema>;

/** What `failed list --json` prints, and GET /failed answers. Fields may be added; a changed meaning raises `version`. */
export const failedListSchema = z.object({
  version: z.literal(1),
  rows: z.array(failedRowSchema),
  /** There are more than were asked for. */
  more: z.boolean(),
});
export type FailedList = z.infer<typeof failedListSchema>;

/** What `failed retry --json` and `failed discard --json` print, and POST /failed/retry and /failed/discard answer. */
export const failedActionSchema = z.object({
  version: z.literal(1),
  action: z.enum(['retry', 'discard']),
  dryRun: z.boolean(),
  /**
   * Later events of the same aggregates that are published already, in a bounded look behind the first rows; null where
   * that cannot be told.
   */
  laterPublished: z.number().nullable(),
  rows: z.array(
    z.object({
      outbox: z.string(),
      id: z.string(),
      topic: z.string().nullable(),
      keyHex: z.string().nullable(),
      error: z.string().nullable(),
      /** `would`: a dry run. `held`: another transaction holds the row. `not-failed`: nothing to do. */
      outcome: z.enum(['done', 'would', 'held', 'not-failed']),
    }),
  ),
  /** More rows match than are acted on at once. */
  more: z.boolean(),
});
export type FailedActionReport = z.infer<typeof failedActionSchema>;
