import type { FaultCode } from '../model/fault.ts';
import type { RelayPhase, TermProbe } from '../model/stats.ts';

/** The state of the relay in one word; the same everywhere that people see it. */
export const STATE_WORDS = [
  'FLOWING',
  'CATCHING UP',
  'SWEEP ONLY',
  'STUCK',
  'STANDBY',
  'PAUSED',
  'STOPPED',
  'UNKNOWN',
] as const;
export type StateWord = (typeof STATE_WORDS)[number];

/** With a greater lag there is a backlog. */
const CATCHING_UP_MS = 10_000;
/** What waits, and has not moved for so long, does not move. */
export const STUCK_MS = 10_000;
/** A database that has not answered for so long is not known any more. */
export const UNKNOWN_MS = 10_000;

/** Everything that the word is made of. Durations until now; null: not known, or there is nothing. */
export interface Vitals {
  readonly phase: RelayPhase;
  readonly phaseForMs: number;
  readonly fault: FaultCode | null;
  readonly database: { readonly silentMs: number | null; readonly fault: FaultCode | null };
  /** Null: no term. */
  readonly term: Pick<TermProbe, 'isTailing' | 'lanes' | 'parked' | 'unflushedRows' | 'lockedRows'> | null;
  /** Since something is in the log that is not routed. */
  readonly tailBehindMs: number;
  /** Since the commit of the last transaction routed, where it was routed while the tail is behind. */
  readonly tailLagMs: number;
  readonly sinceRoutedMs: number;
  /** Since the source waits for a free buffer. */
  readonly poolWaitsMs: number | null;
  /** Since the commit of the oldest transaction that is routed and not settled. */
  readonly unsettledMs: number;
  readonly sinceAckedMs: number;
  readonly sinceFlushedMs: number;
  /** Of the row that has been due longest. */
  readonly oldestPendingMs: number;
  /** The same where it was seen after the last acknowledgement, which may have been its; else 0. */
  readonly stillPendingMs: number;
  readonly heldLanes: readonly { readonly lane: string; readonly heldMs: number }[];
  /** Topic-partitions are parked because they took nothing: one of them, and since when there are any. */
  readonly stuckLane: { readonly lane: string; readonly stuckMs: number } | null;
}

export const STUCK_PARTS = ['start', 'tail', 'lane', 'kafka', 'flush', 'sweep'] as const;

export interface StuckPart {
  readonly part: (typeof STUCK_PARTS)[number];
  /** What more there is to say: a code, a lane. */
  readonly detail: string | null;
  readonly stuckMs: number;
}

export interface Verdict {
  readonly word: StateWord;
  /** What does not move; not empty only with STUCK. */
  readonly stuck: readonly StuckPart[];
  /** How long what should be delivered by now has been waiting; null where this relay is not the one to deliver it. */
  readonly lagMs: number | null;
}

export function verdictOf(vitals: Vitals): Verdict {
  const lagMs = lagOf(vitals);
  const verdict = (word: StateWord, stuck: readonly StuckPart[] = []): Verdict => ({ word, stuck, lagMs });
  const { phase, database, term } = vitals;
  if (phase === 'stopped' || phase === 'halted' || phase === 'stopping') return verdict('STOPPED');
  if (database.silentMs === null || database.silentMs >= UNKNOWN_MS) return verdict('UNKNOWN');
  if (phase === 'standby') return verdict('STANDBY');
  if (phase === 'paused') return verdict('PAUSED');
  const stuck = stuckParts(vitals);
  if (stuck.length > 0) return verdict('STUCK', stuck);
  if (term === null) return verdict('CATCHING UP');
  if (!term.isTailing) return verdict('SWEEP ONLY');
  return verdict((lagMs ?? 0) >= CATCHING_UP_MS ? 'CATCHING UP' : 'FLOWING');
}

function lagOf(vitals: Vitals): number | null {
  const { phase, term, database } = vitals;
  if (phase === 'standby' || phase === 'stopped') return null;
  // What nobody can see may be waiting since nobody can see it.
  const unseenMs = database.silentMs ?? 0;
  const tailMs = term?.isTailing === false ? 0 : Math.max(vitals.tailBehindMs, vitals.tailLagMs);
  const deliveryMs = isOnlyLocked(vitals) ? 0 : Math.max(vitals.unsettledMs, sweepsMs(vitals, vitals.oldestPendingMs));
  return Math.max(unseenMs, tailMs, deliveryMs);
}

/** What single scopes hold back is told apart: a lag that one poison row makes says nothing of the others. */
function sweepsMs({ term }: Vitals, pendingMs: number): number {
  const parked = term?.parked;
  const isNarrow = parked !== undefined && parked.pair + parked.topic + parked['topic-partition'] > 0;
  return isNarrow && parked.everything === 0 ? 0 : pendingMs;
}

/** Everything is in Kafka; only the application keeps rows from being marked. */
function isOnlyLocked({ term }: Vitals): boolean {
  return term !== null && term.lockedRows > 0 && term.unflushedRows === 0 && term.lanes.sending === 0;
}

function stuckParts(vitals: Vitals): StuckPart[] {
  const { term, phaseForMs, fault } = vitals;
  if (term === null) {
    return phaseForMs >= STUCK_MS ? [{ part: 'start', detail: fault, stuckMs: phaseForMs }] : [];
  }
  const parts: StuckPart[] = [];
  const add = (part: StuckPart['part'], detail: string | null, ...forMs: number[]): void => {
    const stuckMs = Math.min(...forMs);
    if (stuckMs >= STUCK_MS) parts.push({ part, detail, stuckMs });
  };
  const { tailBehindMs, sinceRoutedMs, unsettledMs, sinceAckedMs, sinceFlushedMs } = vitals;
  // A source that waits for a buffer waits for the lanes.
  if (term.isTailing && vitals.poolWaitsMs === null) add('tail', null, tailBehindMs, sinceRoutedMs, sinceAckedMs);
  for (const { lane, heldMs } of vitals.heldLanes) add('lane', lane, heldMs);
  // It was parked because it had taken nothing: where nothing else moves either that is long enough.
  const { stuckLane } = vitals;
  if (stuckLane !== null) add('lane', stuckLane.lane, Math.max(stuckLane.stuckMs, sinceAckedMs));
  if (term.lanes.sending > 0) add('kafka', null, Math.max(unsettledMs, vitals.stillPendingMs), sinceAckedMs);
  if (term.unflushedRows > 0) add('flush', null, unsettledMs, sinceFlushedMs);
  // Rows that wait for nothing else: the sweep itself waits for a tail that is behind.
  const isTailBehind = term.isTailing && tailBehindMs >= STUCK_MS / 2;
  const isFree = !isTailBehind && term.lanes.sending === 0 && term.unflushedRows === 0 && !isOnlyLocked(vitals);
  if (isFree && parts.length === 0) add('sweep', null, sweepsMs(vitals, vitals.stillPendingMs), sinceAckedMs);
  return parts;
}
