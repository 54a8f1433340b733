import { z } from 'zod';

/** What GET /parked answers. Fields may be added; a changed meaning raises `version`. Ages and waits in milliseconds. */
export const parkedListSchema = z.object({
  version: z.literal(1),
  /** The wide ones first, then those that have waited longest. */
  parked: z.array(
    z.object({
      kind: z.enum(['pair', 'topic-partition', 'topic', 'everything']),
      /** Null: all topics. Empty: rows that name none. */
      topic: z.string().nullable(),
      partition: z.number().nullable(),
      /** Of a pair: the aggregate id as text; what is no UTF-8 is replaced. */
      key: z.string().nullable(),
      reason: z.string(),
      attempts: z.number(),
      sinceMs: z.number(),
      /** Null: until somebody acts. */
      dueInMs: z.number().nullable(),
      /** Null where it would be costly to say. */
      rowsWaiting: z.number().nullable(),
      /** The row that it began with, where it is one row's fault. */
      row: z.object({ outbox: z.string(), id: z.string() }).nullable(),
    }),
  ),
  more: z.boolean(),
});
export type ParkedList = z.infer<typeof parkedListSchema>;
