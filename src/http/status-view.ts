import { z } from 'zod';
import type { RelayStats } from '../model/stats.ts';
import type { Sight } from '../observability/observer.ts';
import { STATE_WORDS } from '../observability/verdict.ts';

const position = z.object({ file: z.string(), offset: z.number() }).nullable();
const ms = z.number();

/** What GET /status answers. Fields may be added; a changed meaning raises `version`. Ages and lags in milliseconds. */
export const relayStatusSchema = z.object({
  version: z.literal(1),
  relay: z.string(),
  pid: z.number(),
  state: z.enum(STATE_WORDS),
  stateForMs: ms,
  ready: z.boolean(),
  /** Why not: codes, with what is stuck. */
  notReady: z.array(z.string()),
  /** What does not move, and for how long. */
  stuck: z.array(z.object({ part: z.string(), detail: z.string().nullable(), stuckMs: ms })),
  /** Null: another relay leads. */
  lagMs: ms.nullable(),
  /** Null: this process does not lead. */
  epoch: z.number().nullable(),
  /** What keeps it from working, or ended its last term; a code. */
  fault: z.string().nullable(),
  /** Null where nothing is known of the database. */
  outboxes: z
    .array(
      z.object({
        table: z.string(),
        /** Null: its rows have no state. */
        waiting: z
          .object({
            pendingRows: z.number(),
            oldestPendingMs: ms.nullable(),
            delayedRows: z.number(),
            failedRows: z.number(),
          })
          .nullable(),
      }),
    )
    .nullable(),
  limits: z.array(z.object({ outbox: z.string(), overRows: z.boolean(), overAge: z.boolean() })),
  head: position,
  /** Null: there is no term. */
  term: z
    .object({
      source: z.enum(['tail', 'sweep']),
      routed: position,
      checkpoint: position,
      high: position,
      pool: z.object({ takenBytes: z.number(), maxBytes: z.number(), sourceWaits: z.boolean() }),
      lanes: z.object({ inUse: z.number(), sending: z.number(), held: z.number() }),
      openTransactions: z.number(),
      unflushedRows: z.number(),
      lockedRows: z.number(),
      parked: z.object({ pair: z.number(), 'topic-partition': z.number(), topic: z.number(), everything: z.number() }),
      /** Some of them, the wide ones first. */
      scopes: z.array(
        z.object({
          kind: z.string(),
          topic: z.string().nullable(),
          partition: z.number().nullable(),
          reason: z.string(),
          attempts: z.number(),
          dueInMs: ms.nullable(),
        }),
      ),
    })
    .nullable(),
  /** Since the process began. */
  rows: z.object({ byTail: z.number(), bySweep: z.number(), failed: z.number(), retried: z.number() }),
});
export type RelayStatus = z.infer<typeof relayStatusSchema>;

/** `tables`: by outbox. */
export function statusView(relay: string, tables: readonly string[], sight: Sight, stats: RelayStats): RelayStatus {
  const { term } = stats;
  const { database, verdict, limits } = sight;
  return {
    version: 1,
    relay,
    pid: process.pid,
    state: verdict.word,
    stateForMs: Math.round(sight.wordForMs),
    ready: sight.notReady.length === 0,
    notReady: [...sight.notReady],
    stuck: verdict.stuck.map((part) => ({ ...part, stuckMs: Math.round(part.stuckMs) })),
    lagMs: verdict.lagMs === null ? null : Math.round(verdict.lagMs),
    epoch: stats.epoch,
    fault: stats.fault,
    outboxes: database?.outboxes.map((waiting, index) => ({ table: tables[index], waiting })) ?? null,
    limits: limits.map(({ outbox, overRows, overAge }) => ({ outbox, overRows, overAge })),
    head: database?.head ?? null,
    term:
      term === null
        ? null
        : {
            source: term.isTailing ? 'tail' : 'sweep',
            routed: term.routed,
            checkpoint: term.checkpoint,
            high: term.high,
            pool: { ...term.pool, sourceWaits: stats.poolWaitsSinceMs !== null },
            lanes: { inUse: term.lanes.inUse, sending: term.lanes.sending, held: stats.heldLanes.size },
            openTransactions: term.window.openTransactions,
            unflushedRows: term.unflushedRows,
            lockedRows: term.lockedRows,
            parked: { ...term.parked },
            scopes: term.scopes().map((scope) => ({ ...scope })),
          },
    rows: {
      byTail: sum(stats.tailRows),
      bySweep: sum([...stats.sweptRows.values()].flat()),
      failed: sum([...stats.failedRows.values()].flat()),
      retried: sum([...stats.retriedRows.values()].flat()),
    },
  };
}

function sum(rows: readonly (number | undefined)[]): number {
  return rows.reduce<number>((total, each) => total + (each ?? 0), 0);
}
