import { z } from 'zod';
import { STATE_WORDS } from '../observability/verdict.ts';

/** What GET /history answers: the last 15 minutes, oldest first. A time in which the relay could not look has no point. */
export const historySchema = z.object({
  version: z.literal(1),
  stepMs: z.number(),
  points: z.array(
    z.object({
      /** When the step ended, milliseconds since the epoch. */
      atMs: z.number(),
      /** Acknowledged in the step. */
      rows: z.number(),
      /** The greatest in the step. */
      lagMs: z.number().nullable(),
      state: z.enum(STATE_WORDS),
    }),
  ),
});
export type HistoryView = z.infer<typeof historySchema>;
