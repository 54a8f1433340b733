import type { Ledger } from './ledger.ts';
import { percentile } from './percentile.ts';
import type { PartState, Screen } from './screen.ts';

const EVERY_MS = 250;
const LAST_MS = 1000;

/** What the faults change and the screen shows. */
export interface Parts {
  relay: PartState;
  kafka: PartState;
}

/** Shows live figures until `end` is called. */
export function watch(
  screen: Screen,
  ledger: Ledger,
  parts: Parts,
  startedMs: number,
  plannedMs: number,
): { end(): void } {
  const committedAt: { atMs: number; committed: number }[] = [];
  const show = (): void => {
    const nowMs = performance.now();
    const sinceMs = nowMs - LAST_MS;
    committedAt.push({ atMs: nowMs, committed: ledger.committed });
    while (committedAt.length > 1 && committedAt[0].atMs < sinceMs) committedAt.shift();
    const [first] = committedAt;
    const span = nowMs - first.atMs;
    const recent: number[] = [];
    for (let i = ledger.samples.length - 1; i >= 0 && ledger.samples[i].receivedMs >= sinceMs; i--) {
      recent.push(ledger.samples[i].latencyMs);
    }
    screen.figures({
      elapsedMs: nowMs - startedMs,
      plannedMs,
      committed: ledger.committed,
      committedPerS: span === 0 ? 0 : ((ledger.committed - first.committed) * 1000) / span,
      delivered: ledger.delivered,
      deliveredPerS: recent.length,
      waiting: ledger.waiting,
      oldestWaitMs: ledger.oldestWaitMs(nowMs),
      p50Ms: percentile(recent, 0.5),
      p99Ms: percentile(recent, 0.99),
      ...parts,
    });
  };
  const timer = setInterval(show, EVERY_MS);
  return {
    end() {
      clearInterval(timer);
      show();
    },
  };
}
