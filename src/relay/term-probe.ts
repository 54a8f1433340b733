import type { AckWindow } from '../delivery/ack-window.ts';
import type { BufferPool } from '../delivery/buffer-pool.ts';
import type { Scopes } from '../delivery/scopes.ts';
import type { Position } from '../model/position.ts';
import type { TermProbe } from '../model/stats.ts';
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
}

/** The parts of a term, as those see them who only look. */
export function probeOf({ window, pool, scopes, topics, router, flusher, isTailing, high }: ProbedParts): TermProbe {
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
