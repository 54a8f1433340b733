import type { Retire } from '../../../src/model/settings.ts';

/** One schedule, written down: what is committed when, and what goes wrong. The same plan always runs the same way. */
export interface Plan {
  readonly mode: 'tail' | 'sweep';
  /** What becomes of a row that is published; `keep`: there is no sweep, and nothing is written to it. */
  readonly retire: Retire;
  /** Latencies of all calls, one after the other and round again; empty = 1 ms each. */
  readonly delaysMs: readonly number[];
  /** For the engine's jitter. */
  readonly seed: number;
  /** When the first relay starts. */
  readonly startMs: number;
  /** What becomes of the later rows of one that has failed; those that block are mended by an operator in time. */
  readonly onExhausted: 'release' | 'block';
  /** Rows that fail go to a topic of their own first. */
  readonly hasDeadLetters: boolean;
  readonly sizes: Sizes;
  readonly writes: readonly Write[];
  readonly faults: readonly PlannedFault[];
}

export interface Sizes {
  readonly batchRecords: number;
  readonly flushRows: number;
  readonly sweepRows: number;
  /** Of the smallest size: small pools make the tail wait. */
  readonly poolBuffers: number;
}

/**
 * A transaction of the application.
 * - plain: by the tail
 * - incomplete: the log leaves columns out, the row is read from the table
 * - pieces: its rows are read again from the log as they are routed
 * - undecodable: the stream says so and goes on (statement format, XA)
 * - unreadable: the stream ends there until it is asked to tolerate it
 * - rolled-back: prepared, logged and never committed
 */
export type WriteKind = 'plain' | 'incomplete' | 'pieces' | 'undecodable' | 'unreadable' | 'rolled-back';

export interface Write {
  /** Behind the write before. */
  readonly afterMs: number;
  readonly kind: WriteKind;
  readonly rows: readonly PlannedRow[];
  /** Its ids were given before those of so many writes that committed earlier. */
  readonly idsBefore: number;
  /** From the log to SELECT. */
  readonly visibleAfterMs: number;
}

export interface PlannedRow {
  /** Index into `AGGREGATES`. */
  readonly aggregate: number;
  /** `available_at` behind the commit; 0 = not delayed. */
  readonly delayMs: number;
  readonly valueBytes: number;
  readonly poison: Poison | null;
}

/** A row that the broker refuses: so often when it comes alone, or for ever. */
export interface Poison {
  readonly code: 'MESSAGE_TOO_LARGE' | 'CORRUPT_MESSAGE';
  readonly times: number;
}

export type PlannedFault =
  /** The leader's process dies; another starts. */
  | { readonly kind: 'crash'; readonly atMs: number; readonly downMs: number }
  /** The leader's process stands still; another has started meanwhile. */
  | { readonly kind: 'freeze'; readonly atMs: number; readonly forMs: number }
  /** No fault: the leader's process is told to stop, and another has started before (`isAwaited`), or starts behind it. */
  | { readonly kind: 'stop'; readonly atMs: number; readonly restMs: number; readonly isAwaited: boolean }
  /** No fault: people ask for published rows to be sent again (`aggregate` -1: all), and may cancel that. */
  | { readonly kind: 'republish'; readonly atMs: number; readonly aggregate: number; readonly cancelMs: number | null }
  /** No fault: people ask for a new beginning, at the end of the log or so many transactions before it. */
  | { readonly kind: 'resync'; readonly atMs: number; readonly back: number; readonly cancelMs: number | null }
  /** No fault: people act on the first row that has failed by then, or fails soon; `isMended`: what ailed it is gone. */
  | {
      readonly kind: 'act';
      readonly atMs: number;
      readonly forMs: number;
      readonly action: 'retry' | 'discard';
      readonly isMended: boolean;
    }
  /** The server ends the connection that holds the leader's lock. */
  | { readonly kind: 'lock'; readonly atMs: number }
  | { readonly kind: 'stream'; readonly atMs: number }
  /** No fault: people pause the relay, and let it go on. */
  | { readonly kind: 'pause'; readonly atMs: number; readonly forMs: number }
  /** The application holds a row: the one with this number, in commit order. */
  | { readonly kind: 'hold'; readonly atMs: number; readonly forMs: number; readonly row: number }
  | {
      readonly kind: 'partition';
      readonly atMs: number;
      readonly forMs: number;
      readonly topic: number;
      readonly partition: number;
      readonly how: SendFault;
    }
  | { readonly kind: 'topic'; readonly atMs: number; readonly forMs: number; readonly topic: number }
  | { readonly kind: 'grow'; readonly atMs: number }
  /** MySQL's answers to calls of this kind are lost; `done`: what was asked for is done all the same. */
  | {
      readonly kind: 'mysql';
      readonly atMs: number;
      readonly forMs: number;
      readonly call: Call;
      readonly done: boolean;
    }
  /** No fault: transactions of this kind are rolled back for a deadlock. */
  | { readonly kind: 'deadlock'; readonly atMs: number; readonly forMs: number; readonly call: Call }
  /** No broker can be reached. */
  | { readonly kind: 'kafka'; readonly atMs: number; readonly forMs: number }
  /** What the binary log has is purged, read or not. */
  | { readonly kind: 'purge'; readonly atMs: number }
  /** The binary log cannot be read at all. */
  | { readonly kind: 'log'; readonly atMs: number; readonly forMs: number }
  /** Calls of this kind take so much longer. */
  | {
      readonly kind: 'slow';
      readonly atMs: number;
      readonly forMs: number;
      readonly call: Call;
      readonly byMs: number;
    };

/** What a relay asks of others, as far as a schedule can make it slow. */
export const CALLS = [
  'look',
  'log end',
  'claim',
  'claimed rows',
  'write back',
  'barrier',
  'flush',
  'fail',
  'stream',
  'read rows',
  'topic',
  'jobs',
  'other',
] as const;
export type Call = (typeof CALLS)[number];

/**
 * - refused: not now, nothing appended
 * - producer: the broker does not know who sends, nothing appended
 * - lost: the request is lost
 * - unanswered: appended, the answer is lost
 * - late: no answer; the request reaches the broker long after it was given up
 * - forbidden: an operator must act
 */
export type SendFault = 'refused' | 'producer' | 'lost' | 'unanswered' | 'late' | 'forbidden';

export const TOPICS = ['orders', 'payments', 'dead'] as const;
export const DEAD_LETTERS = 'dead';

/**
 * With two partitions of `orders` the first two share one; with four the second has moved. The last has no key: each
 * of its rows is alone.
 */
export const AGGREGATES: readonly { readonly topic: (typeof TOPICS)[number]; readonly key: string | null }[] = [
  { topic: 'orders', key: 'agg-a' },
  { topic: 'orders', key: 'agg-e' },
  { topic: 'orders', key: 'agg-c' },
  { topic: 'payments', key: 'agg-a' },
  { topic: 'orders', key: null },
];

/** Rows that the table never saw, of transactions rolled back, have no number. */
export function isCommitted(write: Write): boolean {
  return write.kind !== 'rolled-back';
}
