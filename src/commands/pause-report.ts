import { z } from 'zod';
import type { Settings } from '../model/settings.ts';
import { expiryColumns } from '../store/log-headroom.ts';
import { readRelayFacts } from '../store/relay-facts.ts';
import { readServerFacts, readLogEnd } from '../store/server.ts';
import type { Session } from '../store/session.ts';
import { headroom } from '../store/status.ts';
import { whereAllowed } from '../store/where-allowed.ts';
import { ageText } from './text.ts';

/** What `pause --json` and `resume --json` print. Fields may be added; a changed meaning raises `version`. */
export const pauseSchema = z.object({
  version: z.literal(1),
  name: z.string(),
  /** What holds now: nobody moves rows while it is true. */
  paused: z.boolean(),
  /** False: that held before. */
  changed: z.boolean(),
  /** For how long it has been paused, or had been, and by whom; null: it was not. */
  pause: z.object({ sinceMs: z.number(), by: z.string() }).nullable(),
  /** Whether the leader has followed; null: nobody leads. */
  followed: z.boolean().nullable(),
  /** Until the checkpoint's binlog may be purged, at the earliest; `expireMs` null: never by its age. Null: nobody knows. */
  purge: z.object({ inMs: z.number().nullable(), expireMs: z.number().nullable() }).nullable(),
});
export type PauseReport = z.infer<typeof pauseSchema>;

export async function readPurge(session: Session, settings: Settings): Promise<PauseReport['purge']> {
  const relay = await readRelayFacts(session, settings, await expiryColumns(session));
  const head = await whereAllowed(readLogEnd(session, await readServerFacts(session)));
  const purge = await headroom(session, relay, head);
  return purge === null ? null : { inMs: purge.inMs, expireMs: purge.expireMs };
}

export function pausedText({ name, changed, pause, followed, purge }: PauseReport, by: string): string {
  const asked = changed || pause === null ? '' : ` (${ageText(pause.sinceMs)} ago, by ${by})`;
  const lines = [
    followed === null
      ? `PAUSED    ${name}${asked}: no relay leads; one that is started rests`
      : followed
        ? `PAUSED    ${name}${asked}: nothing is read, sent or marked; what the application commits waits in its tables`
        : `ASKED     ${name}${asked}: its leader has not come to rest yet; what is on its way is settled first`,
  ];
  const kept = purge?.inMs == null ? null : `${ageText(purge.inMs)} at least; without it rows come from the tables`;
  if (kept !== null) lines.push(`purge     the binlog of the checkpoint is kept for ${kept}`);
  else if (purge?.expireMs === null) lines.push('purge     binlogs are not purged by their age here');
  lines.push('next      cdc-relay resume');
  return lines.join('\n');
}

export function resumedText({ name, pause, followed }: PauseReport, by: string): string {
  const before = pause === null ? 'was not paused' : `was paused for ${ageText(pause.sinceMs)} by ${by}`;
  if (followed === null) return `STOPPED   ${name} ${before}; no relay leads\nnext      cdc-relay run`;
  if (pause === null) return `RUNNING   ${name} ${before}: nothing to do`;
  return followed
    ? `RESUMED   ${name} ${before}; it goes on at its checkpoint`
    : `ASKED     ${name} ${before}; no relay has begun to lead yet\nnext      cdc-relay status`;
}
