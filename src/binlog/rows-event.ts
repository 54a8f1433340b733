import type { RowPlan } from './row-plan.ts';

/** Row images of one outbox table, as they lie in the log: a slice of somebody's buffer. */
export interface RowsEvent {
  readonly change: 'insert' | 'update' | 'delete';
  /** Of the row as it became; of the row as it was for a delete. */
  readonly plan: RowPlan;
  /** Of the row as it was, which precedes each row as it became; updates only. */
  readonly before: RowPlan | null;
  buffer: Buffer;
  start: number;
  end: number;
  /** The event's timestamp. */
  readonly seconds: number;
}
