import type { FaultCode } from './fault.ts';
import type { Scope } from './parked.ts';
import type { Position } from './position.ts';

/** Where the relay is in its life; see `relay.ts`. */
export type RelayPhase = 'starting' | 'standby' | 'leading' | 'flowing' | 'paused' | 'stopping' | 'stopped' | 'halted';

/** By outbox; where nothing was counted there is nothing. */
export type ByOutbox = (number | undefined)[];

/** Counts by a word of a closed set (a code, a cause), and in each by outbox. */
export type RowTally = Map<string, ByOutbox>;

/** A parked scope without its key. */
export interface ParkedSight {
  readonly kind: Scope['kind'];
  /** Null where it is about all topics. */
  readonly topic: string | null;
  readonly partition: number | null;
  readonly reason: string;
  readonly attempts: number;
  /** For how long it has been waiting. */
  readonly sinceMs: number;
  /** Null: until somebody acts. */
  readonly dueInMs: number | null;
}

/** A term under way, looked at when somebody asks. */
export interface TermProbe {
  /** False: rows go by the sweep alone. */
  readonly isTailing: boolean;
  /** Everything before it is routed. */
  readonly routed: Position;
  /** Saved; everything before it is settled. */
  readonly checkpoint: Position;
  /** What lies before it may have been sent. */
  readonly high: Position;
  /** Of batch buffers, and how many there may be. */
  readonly pool: { readonly takenBytes: number; readonly maxBytes: number };
  readonly lanes: {
    readonly inUse: number;
    /** With a batch on its way. */
    readonly sending: number;
    /** Of rows held for a hand-over. */
    readonly heldBytes: number;
  };
  readonly parked: Readonly<Record<Scope['kind'], number>>;
  /** Of the parked scopes some, the wide ones first. */
  scopes(): readonly ParkedSight[];
  readonly window: {
    /** Not behind a saved checkpoint. */
    readonly openTransactions: number;
    /** Commit time of the oldest that is not settled, by the server's clock; null: none. */
    readonly oldestCommitMicros: number | null;
  };
  /** In their topic, and not yet retired. */
  readonly unflushedRows: number;
  /** Of those, rows that the application holds. */
  readonly lockedRows: number;
}

/**
 * What the engine counts and notes while it works; others read it. Written per batch, transaction or flush, never per
 * row. Numbers only grow unless they say otherwise; times are milliseconds of the engine's clock.
 */
export interface RelayStats {
  phase: RelayPhase;
  phaseSinceMs: number;
  /** Null: this relay does not lead. */
  epoch: number | null;
  term: TermProbe | null;
  /** What ended a term, or keeps one from beginning; null once one flows. */
  fault: FaultCode | null;
  /** Terms that ended by a fault, and losses of leadership, by code. */
  readonly termsEnded: Map<FaultCode, number>;
  /** The last fault of a term, the stream, a send or the store; also one that was mended at once. See `noteError`. */
  lastError: { readonly code: FaultCode; readonly atMs: number } | null;

  transactions: number;
  readonly undecodable: Map<FaultCode, number>;
  /** Null: none in this life. */
  lastRouted: { readonly atMs: number; readonly commitMicros: number } | null;
  /** Ends of binlog streams that had to be begun again, by code. */
  readonly streamsLost: Map<FaultCode, number>;
  /** Times that the source waited for a free buffer, how long, and since when it does now. */
  poolWaits: number;
  poolWaitedMs: number;
  poolWaitsSinceMs: number | null;

  /** Acknowledged rows of the tail, by outbox. */
  readonly tailRows: ByOutbox;
  /** Acknowledged rows of the sweep, by cause and outbox. */
  readonly sweptRows: RowTally;
  /** What the sweep is at: one thing at a time. */
  sweepCause: string;
  lastAckedMs: number | null;
  lastFlushedMs: number | null;
  /** Lanes that cannot deliver what they are sending, and since when; `topic/partition`. */
  readonly heldLanes: Map<string, number>;

  /** By code and outbox. */
  readonly failedRows: RowTally;
  readonly retriedRows: RowTally;
  readonly deadLetters: { sent: number; notSent: number };
  handOvers: { done: number; givenUp: number };
  /** Rows that were gone from their table before what the log left out could be read. */
  goneRows: number;
  /** Rows that were sent, and that the server lacks which was found behind the address, by outbox. */
  readonly sentRowsMissing: number[];

  /** Commit to acknowledgement of a batch's oldest row. The commit is by the server's clock: see `serverAheadMs`. */
  onPublished: (latencyMs: number) => void;
  /** The server's clock less this machine's; null: not known. */
  serverAheadMs: number | null;
}

export function newRelayStats(): RelayStats {
  return {
    phase: 'starting',
    phaseSinceMs: 0,
    epoch: null,
    term: null,
    fault: null,
    termsEnded: new Map(),
    lastError: null,
    transactions: 0,
    undecodable: new Map(),
    lastRouted: null,
    streamsLost: new Map(),
    poolWaits: 0,
    poolWaitedMs: 0,
    poolWaitsSinceMs: null,
    tailRows: [],
    sweptRows: new Map(),
    sweepCause: '',
    lastAckedMs: null,
    lastFlushedMs: null,
    heldLanes: new Map(),
    failedRows: new Map(),
    retriedRows: new Map(),
    deadLetters: { sent: 0, notSent: 0 },
    handOvers: { done: 0, givenUp: 0 },
    goneRows: 0,
    sentRowsMissing: [],
    onPublished: () => undefined,
    serverAheadMs: null,
  };
}

export function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

export function tally(counts: RowTally, word: string, outbox: number, rows: number): void {
  const byOutbox = tallyOf(counts, word);
  byOutbox[outbox] = (byOutbox[outbox] ?? 0) + rows;
}

/** The counts by outbox of a word. */
export function tallyOf(counts: RowTally, word: string): ByOutbox {
  let byOutbox = counts.get(word);
  if (byOutbox === undefined) counts.set(word, (byOutbox = []));
  return byOutbox;
}

/** Ends of terms and of waits that people have asked for. */
const NO_ERRORS: ReadonlySet<FaultCode> = new Set<FaultCode>(['STOPPED', 'RESYNC', 'PAUSED']);

export function noteError(stats: RelayStats, code: FaultCode, nowMs: number): void {
  if (!NO_ERRORS.has(code)) stats.lastError = { code, atMs: nowMs };
}

/** Rows that Kafka has acknowledged since the process began. */
export function ackedRows({ tailRows, sweptRows }: RelayStats): number {
  let rows = 0;
  for (const byOutbox of [tailRows, ...sweptRows.values()]) for (const count of byOutbox) rows += count ?? 0;
  return rows;
}
