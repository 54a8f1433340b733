import { type RowId, rowIds } from '../model/row-ids.ts';
import type { Leader, RowFailure } from '../model/store.ts';
import type { OffsetsRow } from './offsets-row.ts';
import { isLockWait, relayTransaction } from './relay-transaction.ts';
import type { Session } from './session.ts';
import type { SweptOutbox } from './swept-outbox.ts';

/**
 * Rows of the tail that could not be delivered, of all outboxes in one transaction. They are pending, not claimed; a
 * row that the log shows and SELECT does not yet is locked by its transaction, so it is held. Returns what is held.
 */
export async function writeFailures(
  session: Session,
  offsets: OffsetsRow,
  leader: Leader,
  failures: readonly RowFailure[],
  outboxOf: (outbox: number) => SweptOutbox,
): Promise<readonly RowFailure[]> {
  if (failures.length === 0) return [];
  const write = async (): Promise<Set<RowFailure> | null> => {
    const done = new Set<RowFailure>();
    for (const [outbox, own] of Map.groupBy(failures, (failure) => failure.outbox)) {
      const { select, locks, changes } = outboxOf(outbox);
      const { free } = await locks.take(session, rowIds(own.map(({ id }) => id)));
      const isFree = new Set<RowId>(free);
      const writable = own.filter(({ id }) => isFree.has(id));
      await changes.fail(session, writable, select.pending);
      for (const failure of writable) done.add(failure);
    }
    return done.size === 0 ? null : done;
  };
  try {
    const done = await relayTransaction(session, offsets, leader, 'writing failures', write);
    return failures.filter((failure) => done?.has(failure) !== true);
  } catch (error) {
    if (isLockWait(error)) return failures;
    throw error;
  }
}
