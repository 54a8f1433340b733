import type { AckWindow } from '../delivery/ack-window.ts';
import type { BufferPool } from '../delivery/buffer-pool.ts';
import type { Scopes } from '../delivery/scopes.ts';
import type { Position } from '../model/position.ts';
import type { Clock } from '../model/clock.ts';
import type { ParkedSight, TermProbe } from '../model/stats.ts';
import type { Flusher } from './flusher.ts';
import type { Router } from './router.ts';
import type { Topics } from './topics.ts';

export interface ProbedParts {
  readonly window: AckWindow;
  readonly pool: BufferPool;
  readonly scopes: Scopes;
  readonly topics: Topics;
  readonly router: Router;
  readonly flusher: Flusher;
  readonly isTailing: () => boolean;
  readonly high: () => Position;
  readonly clock: Clock;
}

/** Of the parked scopes, those that are shown. */
const SHOWN_SCOPES = 20;
const WIDE_FIRST = ['everything', 'topic', 'topic-partition', 'pair'];

/** The parts of a term, as those see them who only look. */
export function probeOf(parts: ProbedParts): TermProbe {
  const { window, pool, scopes, topics, router, flusher, isTailing, high } = parts;
  return {
    get isTailing() {
      return isTailing();
    },
    get routed() {
      return router.routedThrough.position;
    },
    get checkpoint() {
      return window.saved.position;
    },
    get high() {
      return high();
    },
    get pool() {
      return { takenBytes: pool.takenBytes, maxBytes: pool.maxBytes };
    },
    get lanes() {
      const lanes = { inUse: 0, sending: 0, heldBytes: 0 };
      for (const lane of topics.lanes()) {
        lanes.inUse++;
        if (lane.sending !== null) lanes.sending++;
        lanes.heldBytes += lane.heldBytes;
      }
      return lanes;
    },
    get parked() {
      const parked = { pair: 0, 'topic-partition': 0, topic: 0, everything: 0 };
      for (const { scope } of scopes.all) parked[scope.kind]++;
      return parked;
    },
    scopes: () => shown(parts),
    get window() {
      return { openTransactions: window.openTransactions, oldestCommitMicros: window.oldestCommitMicros };
    },
    get unflushedRows() {
      return flusher.unflushedRows;
    },
    get lockedRows() {
      return flusher.lockedRows;
    },
  };
}

function shown({ scopes, clock }: ProbedParts): ParkedSight[] {
  const nowMs = clock.nowMs();
  return [...scopes.all]
    .sort((a, b) => WIDE_FIRST.indexOf(a.scope.kind) - WIDE_FIRST.indexOf(b.scope.kind))
    .slice(0, SHOWN_SCOPES)
    .map(({ scope, reason, attempts, sinceMs, dueAtMs }) => ({
      kind: scope.kind,
      topic: scope.kind === 'everything' ? null : scope.topic,
      partition: 'partition' in scope && scope.partition >= 0 ? scope.partition : null,
      ...{ reason, attempts },
      // Times of the table are dates.
      sinceMs: Math.max(0, Date.now() - sinceMs),
      dueInMs: dueAtMs === null ? null : Math.max(0, dueAtMs - nowMs),
    }));
}
