import type { RowCursor } from './row.ts';
import type { RowId } from './row-ids.ts';
import type { Leader } from './store.ts';

export type JobState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled';

/** Where the tail goes on when everything has been parked: where it is now, at the log's end, or at a place named. */
export type ResyncFrom =
  | { readonly at: 'head' }
  | { readonly at: 'position'; readonly file: string; readonly offset: number; readonly gtidSet: string | null };

/** Which published rows are sent again. */
export interface ReplayFilter {
  /** `schema.table`; null: all that have published rows. */
  readonly outbox: string | null;
  /** As people write them; both ends belong to it. */
  readonly ids: { readonly from: string; readonly to: string } | null;
  /** The aggregate id as text. */
  readonly aggregate: string | null;
  readonly topic: string | null;
  /** `created_at`, milliseconds since the epoch: from the first, before the second. */
  readonly sinceMs: number | null;
  readonly untilMs: number | null;
}

export type JobSpec =
  | { readonly kind: 'reconcile'; readonly from: ResyncFrom }
  | { readonly kind: 'republish'; readonly filter: ReplayFilter };

/** Of a reconciliation. */
export interface ReconcileProgress {
  /** Everything is parked, and the position is saved. */
  readonly hasBegun: boolean;
  /** Due and pending when it began, and now; counts end at `COUNTED_ROWS`. */
  readonly pendingAtFirst: number;
  readonly pending: number;
}

/** A row that could not be sent again. */
export interface UnsentRow {
  readonly outbox: string;
  readonly id: string;
  /** Code and short reason, never payload. */
  readonly error: string;
}

/** Of rows that are sent again: outbox after outbox, in each by the hash of the pair (topic, aggregate). */
export interface RepublishProgress {
  readonly outbox: number;
  /** Hashes up to it are done with; -1: none. */
  readonly doneHash: number;
  /** Not null: of this hash, rows up to this id are done with. */
  readonly cut: { readonly hash: number; readonly id: string } | null;
  /** By outbox: newer rows do not belong to it. Null where ids are no integers. */
  readonly lastIds: readonly (string | null)[];
  /** Rows looked at so far, while they are looked for. */
  readonly looked: number;
  /** Rows that belong to it, of the outboxes that have been looked through; null: of none. */
  readonly total: number | null;
  /** So many outboxes. */
  readonly counted: number;
  readonly sent: number;
  /** Not there, or published no longer, when it was their turn. */
  readonly gone: number;
  readonly failed: number;
  /** The first few of them. */
  readonly failedRows: readonly UnsentRow[];
  /** A chunk is on its way: who takes the job up finds no end of it, and some of its rows may have been sent. */
  readonly isUnderWay: boolean;
  /** Chunks that had to be begun again: some of their rows were sent more than once. */
  readonly repeats: number;
  /** Time that it took to send them. */
  readonly sendingMs: number;
}

export type JobProgress = ReconcileProgress | RepublishProgress;

export interface Job {
  readonly id: bigint;
  readonly spec: JobSpec;
  readonly state: JobState;
  readonly progress: JobProgress | null;
}

/** A published row, without what is in it. */
export interface ReplayKey {
  readonly id: RowId;
  /** Null: it names none. */
  readonly topic: Buffer | null;
  /** As `scopeKeyText` makes it of a row. */
  readonly key: Buffer;
  /** About what it takes in memory; 0 where it was not asked for. */
  readonly bytes: number;
}

/** One look at the rows of an outbox, by primary key. */
export interface ReplayPage {
  readonly rows: readonly ReplayKey[];
  /** Rows looked at, whether or not they belong to it. */
  readonly looked: number;
  /** Behind it the next page begins; null: there is nothing behind. */
  readonly next: RowId | null;
}

/** What people have asked for, as the engine sees it. All methods throw `RelayError`. */
export interface Jobs {
  /** The job that is running, else the one that has waited longest; null: there is none. */
  next(): Promise<Job | null>;
  /** False: it has been cancelled meanwhile. */
  start(leader: Leader, id: bigint): Promise<boolean>;
  /** False: it is not running any more. */
  save(leader: Leader, id: bigint, progress: JobProgress): Promise<boolean>;
  finish(leader: Leader, id: bigint, state: 'done' | 'failed', error: string | null): Promise<void>;
  /** Due and pending in all outboxes; counts of each end at `COUNTED_ROWS`. */
  pendingRows(): Promise<number>;
  /** The last id there is now; null where ids are no integers, or there is no row. */
  lastId(outbox: number): Promise<bigint | null>;
  /** Rows that are published and that the filter names, up to the id `last`, in the order of the primary key. */
  replayPage(outbox: number, filter: ReplayFilter, after: RowId | null, last: bigint | null): Promise<ReplayPage>;
  /** Those that are published still, in the order asked for, with their sizes. */
  replayKeys(outbox: number, ids: readonly RowId[]): Promise<readonly ReplayKey[]>;
  /** The same, whole. */
  replayRows(outbox: number, ids: readonly RowId[]): Promise<RowCursor>;
  close(): void;
}
