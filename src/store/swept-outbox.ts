import type { OutboxSettings } from '../model/settings.ts';
import { Claims } from './claims.ts';
import type { OffsetsRow } from './offsets-row.ts';
import { RowChanges } from './row-changes.ts';
import { RowLocks } from './row-locks.ts';
import { SweepSelect } from './sweep-select.ts';
import { WaitingTable } from './waiting-table.ts';

/** What there is to say and to do about the waiting rows of one outbox. */
export interface SweptOutbox {
  readonly select: SweepSelect;
  readonly claims: Claims;
  readonly locks: RowLocks;
  readonly changes: RowChanges;
}

/** Null for an outbox whose rows say nothing of their state: nothing of it waits, fails or is claimed. */
export function sweptOutbox(index: number, settings: OutboxSettings, offsets: OffsetsRow): SweptOutbox | null {
  const { status } = settings.columns;
  if (settings.retire === 'keep' || status === null) return null;
  const waiting = new WaitingTable(settings);
  const select = new SweepSelect(index, settings, status, waiting);
  const locks = new RowLocks(settings);
  const changes = new RowChanges(settings, status, waiting);
  const { pendingAndDue } = select;
  const claims = new Claims(settings, status, { offsets, waiting, locks, changes, pendingAndDue });
  return { select, claims, locks, changes };
}
