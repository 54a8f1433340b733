import { z } from 'zod';
import type { Clock } from '../model/clock.ts';
import type { History } from '../observability/history.ts';
import type { Observer } from '../observability/observer.ts';
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
  /** Since the process began. */
  upMs: ms,
  ready: z.boolean(),
  /** Why not: codes, with what is stuck. */
  notReady: z.array(z.string()),
  /** What does not move, and for how long. */
  stuck: z.array(z.object({ part: z.string(), detail: z.string().nullable(), stuckMs: ms })),
  /** Null: another relay leads. */
  lagMs: ms.nullable(),
  /** Null: this process does not lead. */
  epoch: z.number().nullable(),
  /** Who leads by the word of the database; null: nobody, or not known. */
  leader: z.object({ owner: z.string(), epoch: z.number(), isThis: z.boolean() }).nullable(),
  /** Relays that wait to lead; null: may not be asked. */
  standbys: z.number().nullable(),
  /** Somebody has asked for a pause. */
  paused: z.object({ sinceMs: ms, by: z.string() }).nullable(),
  /** Null: there is no position, or nothing may be asked. */
  purge: z
    .object({
      /** Until the server may purge the binlog that holds the checkpoint, at the earliest; null: never, or not known. */
      inMs: ms.nullable(),
      /** How long the server keeps a binlog that is full; null: for ever, or not known. */
      expireMs: ms.nullable(),
      /** Of older binlogs, which go first. */
      keptBytes: z.number().nullable(),
      /** Of log between checkpoint and head. */
      behindBytes: z.number().nullable(),
    })
    .nullable(),
  /** Acknowledged rows: in the last seconds, and in the last 15 minutes or since the process began. */
  rate: z.object({ nowRowsPerSecond: z.number(), over15MinRowsPerSecond: z.number() }),
  /** Those that wait or run. */
  jobs: z.array(
    z.object({
      id: z.string(),
      kind: z.enum(['reconcile', 'republish']),
      state: z.enum(['queued', 'running']),
      /** Rows; null: not known yet. */
      done: z.number().nullable(),
      total: z.number().nullable(),
      /** Null: not yet. */
      startedMsAgo: ms.nullable(),
    }),
  ),
  /** What keeps it from working, or ended its last term; a code. */
  fault: z.string().nullable(),
  /** The last fault of a term, the stream, a send or the store; a code. Also one that was mended at once. */
  lastError: z.object({ code: z.string(), agoMs: ms }).nullable(),
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
            /** Null: none is delayed. */
            nextDelayedInMs: ms.nullable(),
            /** Claimed by the sweep. */
            processingRows: z.number(),
            failedRows: z.number(),
            /** Since the failed row that became due last did so, and the code of its failure; null: none, or not known. */
            newestFailedMs: ms.nullable(),
            newestFailedCode: z.string().nullable(),
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
          /** For how long it has been waiting. */
          sinceMs: ms,
          dueInMs: ms.nullable(),
        }),
      ),
    })
    .nullable(),
  /** Since the process began. */
  rows: z.object({ byTail: z.number(), bySweep: z.number(), failed: z.number(), retried: z.number() }),
});
export type RelayStatus = z.infer<typeof relayStatusSchema>;

export interface StatusSources {
  readonly relay: string;
  /** By outbox: `schema.table`. */
  readonly outboxes: readonly string[];
  readonly observer: Observer;
  readonly history: History;
  readonly clock: Clock;
}

export function statusView({ relay, outboxes, observer, history, clock }: StatusSources): RelayStatus {
  const { stats } = observer;
  const { term, lastError } = stats;
  const sight = observer.look();
  const { database, verdict, limits } = sight;
  const leader = database?.leader ?? null;
  return {
    version: 1,
    relay,
    pid: process.pid,
    state: verdict.word,
    stateForMs: Math.round(sight.wordForMs),
    upMs: Math.round(process.uptime() * 1_000),
    ready: sight.notReady.length === 0,
    notReady: [...sight.notReady],
    stuck: verdict.stuck.map((part) => ({ ...part, stuckMs: Math.round(part.stuckMs) })),
    lagMs: verdict.lagMs === null ? null : Math.round(verdict.lagMs),
    epoch: stats.epoch,
    leader:
      leader === null || isOutdated(leader, stats.epoch) ? null : { ...leader, isThis: leader.epoch === stats.epoch },
    standbys: database?.standbys ?? null,
    paused: database?.paused ?? null,
    purge: database?.purge ?? null,
    rate: history.rate(),
    jobs: [...(database?.jobs ?? [])],
    fault: stats.fault,
    lastError: lastError === null ? null : { code: lastError.code, agoMs: Math.round(clock.nowMs() - lastError.atMs) },
    outboxes: database?.outboxes.map((waiting, index) => ({ table: outboxes[index], waiting })) ?? null,
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

/** It was looked at before this relay took over: whoever led then leads no more. */
function isOutdated(leader: { readonly epoch: number }, epoch: number | null): boolean {
  return epoch !== null && leader.epoch < epoch;
}
