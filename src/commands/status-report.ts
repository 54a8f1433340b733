import { z } from 'zod';
import type { Settings } from '../model/settings.ts';
import type { StatusFacts } from '../store/status.ts';
import { ageText, bytesText, countText } from './text.ts';

/** Rows that have waited longer than this are a backlog. */
const CATCHING_UP_MS = 10_000;
/** A relay with a backlog whose checkpoint has not moved for so long does not move it. */
const STUCK_MS = 30_000;

const position = z.object({ file: z.string(), offset: z.number() });

/** What `status --json` prints. Fields may be added; a changed meaning raises `version`. */
export const statusSchema = z.object({
  version: z.literal(1),
  name: z.string(),
  state: z.enum(['FLOWING', 'CATCHING UP', 'STUCK', 'STOPPED']),
  /** Age of the oldest row that is due and pending; null where no outbox has a status column. */
  lagMs: z.number().nullable(),
  /** Bytes of binlog between checkpoint and head, other tables' included; null when the checkpoint's file is gone. */
  behindBytes: z.number().nullable(),
  server: z.object({ address: z.string(), uuid: z.string(), version: z.string() }),
  leader: z.object({ owner: z.string(), epoch: z.number() }).nullable(),
  checkpoint: position.extend({ savedMsAgo: z.number() }).nullable(),
  head: position,
  outboxes: z.array(
    z.object({
      table: z.string(),
      waiting: z
        .object({
          pending: z.number(),
          oldestPendingMs: z.number().nullable(),
          delayed: z.number(),
          failed: z.number(),
        })
        .nullable(),
    }),
  ),
});
export type StatusReport = z.infer<typeof statusSchema>;

export function statusReport(facts: StatusFacts, settings: Settings): StatusReport {
  const known = facts.outboxes.flatMap(({ waiting }) => (waiting === null ? [] : [waiting]));
  const lagMs = known.length === 0 ? null : Math.max(0, ...known.map(({ oldestPendingMs }) => oldestPendingMs ?? 0));
  return {
    version: 1,
    name: settings.relay.name,
    state: stateOf(facts, lagMs),
    lagMs,
    behindBytes: facts.behindBytes,
    server: { address: `${settings.mysql.host}:${settings.mysql.port}`, ...facts.server },
    leader: facts.leader,
    checkpoint: facts.checkpoint,
    head: facts.head,
    outboxes: facts.outboxes.map(({ table, waiting }) => ({ table, waiting })),
  };
}

function stateOf({ leader, checkpoint }: StatusFacts, lagMs: number | null): StatusReport['state'] {
  if (leader === null) return 'STOPPED';
  if (lagMs === null || lagMs < CATCHING_UP_MS) return 'FLOWING';
  return checkpoint !== null && checkpoint.savedMsAgo < STUCK_MS ? 'CATCHING UP' : 'STUCK';
}

/** The verdict first, then the facts. */
export function statusText(report: StatusReport): string {
  const { checkpoint, head, leader } = report;
  const pending = report.outboxes.reduce((sum, { waiting }) => sum + (waiting?.pending ?? 0), 0);
  const lag = report.lagMs === null ? 'unknown (no status column)' : ageText(report.lagMs);
  const behind = report.behindBytes === null ? 'unknown' : bytesText(report.behindBytes);
  const saved =
    checkpoint === null
      ? 'none yet'
      : `${checkpoint.file}:${countText(checkpoint.offset)} (saved ${ageText(checkpoint.savedMsAgo)} ago)`;
  const lines = [
    `${report.state.padEnd(9)} ${report.name} on ${report.server.address} (${report.server.version}), ` +
      (leader === null ? 'no leader' : `leader ${leader.owner}, epoch ${countText(leader.epoch)}`),
    `lag       ${lag}, ${countText(pending)} rows, ${behind} of binlog`,
    `position  checkpoint ${saved}, head ${head.file}:${countText(head.offset)}`,
    ...report.outboxes.map(({ table, waiting }) => `outbox    ${table}   ${waitingText(waiting)}`),
  ];
  if (report.state === 'STOPPED') lines.push('next      cdc-relay run');
  return lines.join('\n');
}

function waitingText(waiting: StatusReport['outboxes'][number]['waiting']): string {
  if (waiting === null) return 'no status column';
  const oldest = waiting.oldestPendingMs === null ? '' : ` (oldest ${ageText(waiting.oldestPendingMs)})`;
  return (
    `pending ${countText(waiting.pending)}${oldest}   delayed ${countText(waiting.delayed)}   ` +
    `failed ${countText(waiting.failed)}`
  );
}
