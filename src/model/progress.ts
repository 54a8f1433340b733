import type { Position } from './position.ts';

/** What the database says of what waits, whoever leads. */
export interface Progress {
  /** The server's clock, milliseconds since the epoch. */
  readonly serverMs: number;
  /** Where its log ends; null where there is none, or the user may not ask. */
  readonly head: Position | null;
  /** Whoever holds the lock; null: nobody. */
  readonly leader: { readonly owner: string; readonly epoch: number } | null;
  /** Null: nobody has asked for a pause. */
  readonly paused: { readonly sinceMs: number; readonly by: string } | null;
  /** Null: no position is saved, it is one of another server, or the user may not ask. */
  readonly purge: LogHeadroom | null;
  /** By outbox; null where rows have no state. Null: not asked for. */
  readonly outboxes: readonly (OutboxProgress | null)[] | null;
  /** What asking for the outboxes took. */
  readonly outboxesTookMs: number;
  /** Null: not asked for. */
  readonly surroundings: Surroundings | null;
  readonly surroundingsTookMs: number;
}

/** How long the checkpoint's binlog is there still. */
export interface LogHeadroom {
  /** Until it may be purged, at the earliest; null: it is not purged by its age, or nobody knows. */
  readonly inMs: number | null;
  /** How long a binlog is kept; null: for ever, or nobody knows. */
  readonly expireMs: number | null;
  /** Of older files, which go first. */
  readonly keptBytes: number | null;
  /** Of log between checkpoint and head; null: the checkpoint's file is gone. */
  readonly behindBytes: number | null;
}

/** What is around the relay; it costs more, and changes less. */
export interface Surroundings {
  /** Relays that wait for the lock; null: may not be asked. */
  readonly standbys: number | null;
  /** By id. */
  readonly jobs: readonly WaitingJob[];
  /** Of the scope that has been parked longest; null: none is. */
  readonly oldestParkedMs: number | null;
}

/** A job that is queued or runs. */
export interface WaitingJob {
  readonly id: string;
  readonly kind: 'reconcile' | 'republish';
  readonly state: 'queued' | 'running';
  /** Rows; null: not known yet. */
  readonly done: number | null;
  readonly total: number | null;
  /** Null: not yet. */
  readonly startedMsAgo: number | null;
}

/** Counts end at `COUNTED_ROWS`: that many, or more. */
export interface OutboxProgress {
  readonly pendingRows: number;
  /** Of the row that has been due longest; null: none is due. */
  readonly oldestPendingMs: number | null;
  /** Pending, and not due yet. */
  readonly delayedRows: number;
  /** Until the next of them is due; null: there is none. */
  readonly nextDelayedInMs: number | null;
  /** Claimed by the sweep. */
  readonly processingRows: number;
  readonly failedRows: number;
  /** Of the failed row that became due last: since it did, and the code of its failure. Null: there is none. */
  readonly newestFailedMs: number | null;
  /** Null, too, where what stands there is no code. */
  readonly newestFailedCode: string | null;
}

export const COUNTED_ROWS = 100_000;

export interface ProgressReader {
  /** Throws a `RelayError`. Without what is wanted it costs next to nothing. */
  read(wanted: { readonly outboxes: boolean; readonly surroundings: boolean }): Promise<Progress>;
  close(): void;
}

/** What waits in one outbox, beside its limits. */
export interface PendingLimitState {
  /** `schema.table` */
  readonly outbox: string;
  readonly pendingRows: number | null;
  readonly oldestAgeMs: number | null;
  readonly overRows: boolean;
  readonly overAge: boolean;
}
