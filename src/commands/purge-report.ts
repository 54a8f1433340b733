import { z } from 'zod';
import { escapedText, rowsText } from './text.ts';

/** What `purge --json` prints. Fields may be added; a changed meaning raises `version`. */
export const purgeSchema = z.object({
  version: z.literal(1),
  dryRun: z.boolean(),
  /** Ctrl-C: what is told was done, the rest was not. */
  interrupted: z.boolean(),
  outboxes: z.array(
    z.object({
      /** `schema.table` */
      outbox: z.string(),
      /** Rows published before this time (UTC); null: no commit is known that the checkpoint has passed. */
      before: z.string().nullable(),
      /** Deleted, or with `archive` moved there; with `dryRun` only counted. */
      rows: z.number(),
      /** Left, because other transactions hold them. */
      held: z.number(),
      archive: z.string().nullable(),
    }),
  ),
});
export type PurgeReport = z.infer<typeof purgeSchema>;

/** A line for each outbox. */
export function purgeText({ outboxes, dryRun, interrupted }: PurgeReport): string {
  const lines = outboxes.map(({ outbox, before, rows, held, archive }) => {
    const name = escapedText(outbox);
    if (before === null) return `${name}  nothing: no checkpoint with a commit time is saved yet`;
    const did =
      archive === null
        ? dryRun
          ? 'would delete'
          : 'deleted'
        : dryRun
          ? `would move to ${escapedText(archive)}`
          : `moved to ${escapedText(archive)}`;
    const left = held === 0 ? '' : `, left ${rowsText(held)} that other transactions hold`;
    return `${name}  ${did} ${rowsText(rows)} published before ${before}${left}`;
  });
  if (interrupted) lines.push('interrupted: what is told above is done; run it again for the rest');
  return lines.join('\n');
}
