import { AckWindow } from '../delivery/ack-window.ts';
import { BufferPool } from '../delivery/buffer-pool.ts';
import { parseGtidSet } from '../delivery/gtid-set.ts';
import { Lane, type SpareBatches } from '../delivery/lane.ts';
import { Scopes } from '../delivery/scopes.ts';
import type { Fault } from '../model/fault.ts';
import { comparePositions, type Position } from '../model/position.ts';
import type { RelayStats, TermProbe } from '../model/stats.ts';
import type { Leader, ServerFacts } from '../model/store.ts';
import { Claims } from './claimed-rows.ts';
import { DeadLetters } from './dead-letters.ts';
import { Flusher } from './flusher.ts';
import { HeldClaims } from './held-claims.ts';
import { JobRunner } from './job-runner.ts';
import { LaneSender } from './lane-sender.ts';
import { Parking } from './parking.ts';
import { PayloadCheck } from './payload-check.ts';
import { Reader } from './reader.ts';
import type { RelayDeps } from './relay-deps.ts';
import { ReplayChunk } from './replay-chunk.ts';
import { SweptRows } from './replayed-rows.ts';
import { Router } from './router.ts';
import { RowCompletion } from './row-completion.ts';
import { RowVerdicts } from './row-verdicts.ts';
import { SentRows } from './sent-rows.ts';
import { Settlement } from './settlement.ts';
import type { Start } from './start-position.ts';
import { SweepPass } from './sweep-pass.ts';
import { SweepRound } from './sweep-round.ts';
import { Sweeper } from './sweeper.ts';
import { probeOf } from './term-probe.ts';
import { Topics } from './topics.ts';
import { Turns } from './turns.ts';

/** Part of the pool that a lane which cannot deliver, or a hand-over, may hold. */
const POOL_PART = 4;

/** What a term is made of. */
export interface TermParts {
  readonly scopes: Scopes;
  readonly topics: Topics;
  readonly parking: Parking;
  readonly sender: LaneSender;
  readonly flusher: Flusher;
  readonly reader: Reader;
  readonly round: SweepRound;
  readonly heldClaims: HeldClaims;
  /** Null: every outbox is only kept. */
  readonly sweeper: Sweeper | null;
  readonly jobs: JobRunner | null;
  readonly probe: TermProbe;
}

export interface TermPartsOptions {
  readonly deps: RelayDeps & { readonly stats: RelayStats };
  readonly leader: Leader;
  readonly facts: ServerFacts;
  readonly start: Pick<Start, 'from' | 'high'>;
  /** Ends everything at once. */
  readonly abandon: AbortSignal;
  readonly onFault: (fault: Fault) => void;
  /** A job asks for a new beginning. */
  readonly onResync: (why: Fault) => void;
}

/** Made anew for each term, and put together; nothing runs yet. */
export function termParts({ deps, leader, facts, start, abandon, onFault, onResync }: TermPartsOptions): TermParts {
  const { settings, publisher, store, clock, log, stats } = deps;
  const { from } = start;
  /** Head of the last pass of the sweep, and what earlier leaders may have sent. */
  let high = start.high;
  const highest = (): Position => further(high, router.reachesTo);
  const { maxInFlightBytes, laneStallMs } = settings.relay;
  const keeps = settings.outboxes.map((outbox) => outbox.retire === 'keep');
  const canSweep = keeps.includes(false);
  const tables = settings.outboxes.map(({ schema, table }) => `${schema}.${table}`);
  const spare: SpareBatches = [];
  const pool = new BufferPool(maxInFlightBytes, settings.kafka.batchBytes);
  const gtids = from.gtidSet === null || !facts.gtidMode ? null : parseGtidSet(from.gtidSet, facts.flavour);
  const window = new AckWindow(from, gtids);
  const isTailing = (): boolean => reader.isTailing;
  const { backOffMs: baseMs, backOffCapMs: capMs, deadLetterTopic } = settings.failures;
  const scopes = new Scopes({ baseMs, capMs });
  const claims = new Claims();
  const swept = new SweptRows(claims);
  const turns = new Turns();
  const topics = new Topics({
    ...{ publisher, clock, log, patienceMs: laneStallMs },
    makeLane: (topic, partition) => new Lane(topic, partition, pool, spare, settings.kafka.batchRecords),
  });
  const flusher = new Flusher({
    ...{ store, leader, window, clock, log, spare, onFault, scopes, stats },
    flushMs: settings.relay.flushMs,
    flushRows: settings.relay.flushRows,
    retires: keeps.map((keep) => !keep),
    high: highest,
  });
  const sent = deps.sentRows ?? new SentRows(clock);
  const settlement = new Settlement(window, flusher, swept, sent, spare, clock, stats);
  const parking = new Parking({
    ...{ scopes, topics, settlement, clock, log, keeps, stats },
    maxHeldBytes: maxInFlightBytes / POOL_PART,
    onParked: () => {
      flusher.wake();
      sweeper?.wake();
    },
  });
  const deadLetters =
    deadLetterTopic === null
      ? null
      : new DeadLetters({ publisher, clock, log, leader, topic: deadLetterTopic, outboxes: tables });
  const verdicts = new RowVerdicts({
    ...{ settings: settings.failures, deadLetters, log, tables, stats },
    waitingSinceMs: (topic, key, id) => parking.waitingSinceMs(topic, key, id),
    isReplaying: () => swept.isReplaying,
  });
  const sender = new LaneSender({
    ...{ publisher, leader, clock, log, onFault, laneStallMs, settlement, parking, verdicts, stats },
    compression: settings.kafka.compression,
    maxStuckBytes: maxInFlightBytes / POOL_PART,
  });
  const payloads = new PayloadCheck(settings.outboxes.map((outbox) => outbox.validateJson));
  const completion = new RowCompletion(store, clock, log, tables, stats);
  const router = new Router({
    ...{ window, pool, topics, parking, sender, flusher, verdicts, payloads, completion, stats, clock, log, keeps },
    from,
    high: start.high,
  });
  const reader = new Reader({
    ...{ source: deps.source, router, parking, clock, log, stats, canSweep, abandon },
    serverUuid: facts.serverUuid,
    keepsSome: keeps.includes(true),
    mode: settings.sweep.mode,
    takeOverMs: settings.relay.takeOverMs,
  });
  const heldClaims = new HeldClaims({ store, leader, scopes, topics, parking, clock, log });
  const round = new SweepRound({
    ...{ store, leader, claims, heldClaims, topics, parking, sender, flusher, router, verdicts, payloads, pool, clock },
    ...{ isTailing, abandon },
    noteHigh: (head) => (high = further(high, head)),
  });
  const { batchRows } = settings.sweep;
  const pass = new SweepPass({ store, parking, topics, round, heldClaims, clock, batchRows, keeps });
  const sweeper = canSweep
    ? new Sweeper({
        ...{ store, leader, scopes, topics, parking, sender, flusher, router, pass, heldClaims, turns },
        ...{ clock, log, keeps },
        ...{ settings: settings.sweep, stats, isTailing },
        high: () => high,
      })
    : null;
  const { jobs } = deps;
  const runner =
    jobs === undefined
      ? null
      : new JobRunner({
          ...{ jobs, leader, turns, clock, log, tables, isTailing, onResync },
          chunk: new ReplayChunk({
            ...{ jobs, store, scopes, parking, topics, sender, router, swept, pool, stats, keeps, isTailing, abandon },
          }),
          isReconciled: () => !scopes.hasEverything && comparePositions(router.routedThrough.position, start.high) >= 0,
        });
  const probe = probeOf({ clock, window, pool, scopes, topics, router, flusher, isTailing, high: highest });
  return { scopes, topics, parking, sender, flusher, reader, round, heldClaims, sweeper, jobs: runner, probe };
}

function further(a: Position, b: Position): Position {
  return comparePositions(a, b) >= 0 ? a : b;
}
