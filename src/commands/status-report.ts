import { z } from 'zod';
import { relayStatusSchema } from '../http/status-view.ts';
import { COUNTED_ROWS } from '../model/progress.ts';
import type { Settings } from '../model/settings.ts';
import { STATE_WORDS, type StateWord } from '../observability/verdict.ts';
import type { StatusFacts } from '../store/status.ts';
import type { RelayAnswer } from './relay-answer.ts';

/** Rows that have waited longer than this are a backlog. */
const CATCHING_UP_MS = 10_000;
/** A relay with a backlog whose checkpoint has not moved for so long does not move it. */
const STUCK_MS = 30_000;
/** Parked scopes that are told; how many there are stands beside them. */
const MOST_SCOPES = 100;

/** Where both say the same, they say it in the same form. */
const told = relayStatusSchema.shape;
const ms = z.number();
const position = z.object({ file: z.string(), offset: z.number() });

const scope = z.object({
  kind: z.enum(['everything', 'topic', 'topic-partition', 'pair']),
  /** Null: all topics. */
  topic: z.string().nullable(),
  partition: z.number().nullable(),
  /** Of a pair: the aggregate id as text, or `(no aggregate)` and the row's idempotency key. */
  key: z.string().nullable(),
  reason: z.string(),
  attempts: z.number(),
  /** For how long it has been waiting. */
  sinceMs: ms,
  /** Until its next try; null: until somebody acts on `row`. */
  dueInMs: ms.nullable(),
  /** The row that it began with, where it is one row's fault. */
  row: z.object({ outbox: z.string(), id: z.string() }).nullable(),
  /** Pending rows under it; null where counting them is costly. */
  rowsWaiting: z.number().nullable(),
});

/**
 * What `status --json` prints. Fields may be added; a changed meaning raises `version`. Ages and lags in milliseconds.
 * Counts of rows end at 100,000: that many, or more.
 */
export const statusSchema = z.object({
  version: z.literal(1),
  name: z.string(),
  state: z.enum(STATE_WORDS),
  /** For how long; null where no relay says so. */
  stateForMs: ms.nullable(),
  /** Who says what state and lag are. */
  source: z.enum(['relay', 'database']),
  /** What does not move, and for how long; by the word of the relay. */
  stuck: told.stuck,
  /** How long what should be delivered by now has been waiting; null where nobody can say. */
  lagMs: ms.nullable(),
  /** Bytes of binlog between checkpoint and head, other tables' included; null when the checkpoint's file is gone. */
  behindBytes: z.number().nullable(),
  /** `uuid` and `version` are null where it could not be reached. */
  server: z.object({ address: z.string(), uuid: z.string().nullable(), version: z.string().nullable() }),
  /** Null: nobody leads, or nobody knows. `upMs`: of its process; null where it does not answer here. */
  leader: z.object({ owner: z.string(), epoch: z.number(), upMs: ms.nullable() }).nullable(),
  standbys: told.standbys,
  paused: told.paused,
  checkpoint: position.extend({ savedMsAgo: ms }).nullable(),
  /** Null where there is no binlog, or the user may not ask. */
  head: position.nullable(),
  /** How long the checkpoint's binlog is there still; null: there is no position, or nothing may be asked. */
  purge: z
    .object({
      /** At the earliest; null: it is not purged by its age, or nobody knows. */
      inMs: ms.nullable(),
      expireMs: ms.nullable(),
      /** Of older binlogs, which go first. */
      keptBytes: z.number().nullable(),
    })
    .nullable(),
  /** Acknowledged rows; null where the leader does not answer here. */
  rate: z.object({ nowRowsPerSecond: z.number(), over15MinRowsPerSecond: z.number() }).nullable(),
  outboxes: z.array(
    z.object({
      table: z.string(),
      /** Null: its rows have no state. */
      waiting: z
        .object({
          pending: z.number(),
          oldestPendingMs: ms.nullable(),
          delayed: z.number(),
          nextDelayedInMs: ms.nullable(),
          /** Claimed by the sweep. */
          processing: z.number(),
          failed: z.number(),
          newestFailedMs: ms.nullable(),
          newestFailedCode: z.string().nullable(),
        })
        .nullable(),
    }),
  ),
  /** The wide scopes first, then those that have waited longest. */
  parked: z.object({ total: z.number(), scopes: z.array(scope) }),
  jobs: told.jobs,
  /** The last fault of the relay that answers, also one that was mended at once; a code. */
  lastError: told.lastError,
  /** Limits that are passed. */
  limits: z.array(z.object({ outbox: z.string(), overRows: z.boolean(), overAge: z.boolean() })),
  /** The relay that was asked at `http.host` and `http.port`. */
  relay: z.object({
    as: z.enum(['leader', 'standby', 'not-leading', 'off', 'absent', 'unclear']),
    address: z.string().nullable(),
    detail: z.string().nullable(),
  }),
  /** Thresholds of the command line that are passed, in words. */
  passed: z.array(z.string()),
});
export type StatusReport = z.infer<typeof statusSchema>;

/** `facts` null: the database cannot be reached. */
export function statusReport(facts: StatusFacts | null, answer: RelayAnswer, settings: Settings): StatusReport {
  const asked = answer.as === 'answered' ? answer.status : null;
  const word = facts === null ? asked : wordOf(facts, asked);
  const isLeader = word !== null && word.epoch !== null;
  const { state, lagMs } = word ?? databaseWord(facts);
  return {
    version: 1,
    name: settings.relay.name,
    state: facts === null ? 'UNKNOWN' : state,
    stateForMs: word?.stateForMs ?? null,
    source: word === null ? 'database' : 'relay',
    stuck: word?.stuck.map((part) => ({ ...part })) ?? [],
    lagMs,
    behindBytes: facts?.purge?.behindBytes ?? null,
    server: {
      address: `${settings.mysql.host}:${settings.mysql.port}`,
      uuid: facts?.server.uuid ?? null,
      version: facts?.server.version ?? null,
    },
    leader: facts === null || facts.leader === null ? null : { ...facts.leader, upMs: isLeader ? word.upMs : null },
    standbys: facts?.standbys ?? null,
    paused: facts?.paused ?? null,
    checkpoint: checkpointOf(facts),
    head: facts?.head ?? null,
    purge: purgeOf(facts),
    rate: isLeader ? { ...word.rate } : null,
    outboxes: facts?.outboxes.map(outboxOf) ?? [],
    parked: {
      total: facts?.parked.total ?? 0,
      scopes: facts?.parked.parked.slice(0, MOST_SCOPES).map((each) => ({ ...each })) ?? [],
    },
    jobs: facts?.jobs.map((job) => ({ ...job })) ?? [],
    lastError: asked?.lastError ?? null,
    limits: asked?.limits.filter(({ overRows, overAge }) => overRows || overAge) ?? [],
    relay: relayOf(answer, facts),
    passed: [],
  };
}

type Asked = Extract<RelayAnswer, { as: 'answered' }>['status'];

/** The relay whose word is taken: that which leads, or where nobody does one that would. */
function wordOf({ leader }: StatusFacts, asked: Asked | null): Asked | null {
  if (asked === null) return null;
  if (leader === null) return asked.state === 'STANDBY' ? null : asked;
  return asked.epoch === leader.epoch ? asked : null;
}

function databaseWord(facts: StatusFacts | null): { state: StateWord; lagMs: number | null } {
  if (facts === null) return { state: 'UNKNOWN', lagMs: null };
  const lagMs = databaseLagMs(facts);
  const { leader, paused, checkpoint } = facts;
  const word = (state: StateWord) => ({ state, lagMs });
  if (leader === null) return word('STOPPED');
  if (paused !== null) return word('PAUSED');
  if (lagMs === null || lagMs < CATCHING_UP_MS) return word('FLOWING');
  return word(checkpoint !== null && checkpoint.savedMsAgo < STUCK_MS ? 'CATCHING UP' : 'STUCK');
}

/** What single scopes hold back is told apart, as the relay itself does. Null: no outbox has a status, or too much waits. */
function databaseLagMs({ outboxes, parked }: StatusFacts): number | null {
  const known = outboxes.flatMap(({ waiting }) => (waiting === null ? [] : [waiting]));
  if (known.length === 0) return null;
  const isNarrow = parked.total > 0 && parked.parked.every(({ kind }) => kind !== 'everything');
  if (isNarrow) return parked.oldestFreeMs;
  return Math.max(0, ...known.map(({ oldestPendingMs }) => oldestPendingMs ?? 0));
}

function checkpointOf(facts: StatusFacts | null): StatusReport['checkpoint'] {
  if (facts === null || facts.checkpoint === null) return null;
  const { file, offset, savedMsAgo } = facts.checkpoint;
  return { file, offset, savedMsAgo };
}

function purgeOf(facts: StatusFacts | null): StatusReport['purge'] {
  if (facts === null || facts.purge === null) return null;
  const { inMs, expireMs, keptBytes } = facts.purge;
  return { inMs, expireMs, keptBytes };
}

function outboxOf({ table, waiting }: StatusFacts['outboxes'][number]): StatusReport['outboxes'][number] {
  if (waiting === null) return { table, waiting };
  const { pendingRows, oldestPendingMs, delayedRows, nextDelayedInMs, processingRows, failedRows } = waiting;
  const { newestFailedMs, newestFailedCode } = waiting;
  return {
    table,
    waiting: {
      ...{ pending: pendingRows, oldestPendingMs, delayed: delayedRows, nextDelayedInMs },
      ...{ processing: processingRows, failed: failedRows, newestFailedMs, newestFailedCode },
    },
  };
}

function relayOf(answer: RelayAnswer, facts: StatusFacts | null): StatusReport['relay'] {
  if (answer.as === 'off') return { as: 'off', address: null, detail: null };
  const { address } = answer;
  if (answer.as === 'absent') return { as: 'absent', address, detail: null };
  if (answer.as === 'unclear') return { as: 'unclear', address, detail: answer.why };
  const { epoch, state, fault } = answer.status;
  if (epoch !== null && (facts === null || facts.leader?.epoch === epoch)) {
    return { as: 'leader', address, detail: facts === null ? state : null };
  }
  return { as: state === 'STANDBY' ? 'standby' : 'not-leading', address, detail: fault };
}

/** So many rows, or more. */
export function isMost(count: number): boolean {
  return count >= COUNTED_ROWS;
}
