import type { LimitSettings } from '../model/settings.ts';

/** What waits in one outbox, beside its limits. */
export interface LimitState {
  /** `schema.table` */
  readonly outbox: string;
  /** Rows that are pending and due; not counted beyond the limit and one. Null: not limited, or not counted yet. */
  readonly pendingRows: number | null;
  /** Of the row that has been due longest; null: none is, or not looked yet. */
  readonly oldestAgeMs: number | null;
  readonly overRows: boolean;
  readonly overAge: boolean;
}

/** A limit that was passed counts as passed until what waits is at this share of it: no flag that flutters. */
const CLEARS_AT = 0.8;

/** The state that follows from what was read. */
export function nextState(
  before: LimitState,
  { pendingRows: rowLimit, pendingAgeMs: ageLimit }: LimitSettings,
  read: { readonly pendingRows: number | null; readonly oldestAgeMs: number | null },
): LimitState {
  return {
    outbox: before.outbox,
    ...read,
    overRows: isOver(before.overRows, read.pendingRows, rowLimit),
    overAge: isOver(before.overAge, read.oldestAgeMs, ageLimit),
  };
}

function isOver(wasOver: boolean, value: number | null, limit: number | null): boolean {
  if (limit === null || value === null) return false;
  return value > (wasOver ? limit * CLEARS_AT : limit);
}

/** For people and for the flag's column; null when no limit is passed. */
export function reasonOf(
  { overRows, overAge }: LimitState,
  { pendingRows, pendingAgeMs }: LimitSettings,
): string | null {
  const reasons = [
    ...(overRows ? [`more than ${pendingRows!.toLocaleString('en')} rows are pending`] : []),
    ...(overAge ? [`a row is pending for more than ${pendingAgeMs!.toLocaleString('en')} ms`] : []),
  ];
  return reasons.length === 0 ? null : reasons.join('; ');
}
