import type { Position } from './position.ts';

/** What the database says of what waits, whoever leads. */
export interface Progress {
  /** The server's clock, milliseconds since the epoch. */
  readonly serverMs: number;
  /** Where its log ends; null where there is none, or the user may not ask. */
  readonly head: Position | null;
  /** By outbox; null where rows have no state. Null: not asked for. */
  readonly outboxes: readonly (OutboxProgress | null)[] | null;
  /** What asking for the outboxes took. */
  readonly outboxesTookMs: number;
}

/** Counts end at `COUNTED_ROWS`: that many, or more. */
export interface OutboxProgress {
  readonly pendingRows: number;
  /** Of the row that has been due longest; null: none is due. */
  readonly oldestPendingMs: number | null;
  /** Pending, and not due yet. */
  readonly delayedRows: number;
  readonly failedRows: number;
}

export const COUNTED_ROWS = 100_000;

export interface ProgressReader {
  /** Throws a `RelayError`. Without `withOutboxes` it costs next to nothing. */
  read(withOutboxes: boolean): Promise<Progress>;
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
