import { fault } from '../model/fault.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { Leader, SweepCursor } from '../model/store.ts';
import type { OffsetsRow } from './offsets-row.ts';
import { isLockWait, relayTransaction } from './relay-transaction.ts';
import type { Session } from './session.ts';
import type { SweptOutbox } from './swept-outbox.ts';

const READ_AT_ONCE = 10_000;
const MARKED_AT_ONCE = 1_000;
/** Rows that somebody holds are waited for so often, a second each time. */
const TRIES = 30;

/**
 * Counts as published, without a time of it, what is pending in one consistent snapshot: what is committed later is not touched, however long
 * it takes. Small transactions; rows that the application holds are passed and come last.
 */
export async function leaveHistory(
  snapshot: Session,
  session: Session,
  offsets: OffsetsRow,
  leader: Leader,
  outbox: SweptOutbox,
): Promise<number> {
  const doing = 'leaving history';
  await snapshot.change(doing, 'SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
  await snapshot.change(doing, 'START TRANSACTION WITH CONSISTENT SNAPSHOT');
  let left = 0;
  const held: RowId[] = [];
  for (let after: SweepCursor | null = null; ;) {
    const { ids, next } = await outbox.select.pendingIds(snapshot, after, READ_AT_ONCE);
    for (let at = 0; at < ids.length; at += MARKED_AT_ONCE) {
      const marked = await markFree(session, offsets, leader, ids.slice(at, at + MARKED_AT_ONCE), outbox);
      left += marked.count;
      held.push(...marked.held);
    }
    if (next === null) break;
    after = next;
  }
  for (let at = 0; at < held.length; at += MARKED_AT_ONCE) {
    left += await markHeld(session, offsets, leader, held.slice(at, at + MARKED_AT_ONCE), outbox);
  }
  return left;
}

async function markFree(
  session: Session,
  offsets: OffsetsRow,
  leader: Leader,
  ids: readonly RowId[],
  { select, locks, changes }: SweptOutbox,
): Promise<{ count: number; held: readonly RowId[] }> {
  let held: readonly RowId[] = [];
  try {
    const count = await relayTransaction(session, offsets, leader, 'leaving history', async () => {
      const taken = await locks.take(session, rowIds(ids));
      held = [...taken.held];
      return taken.free.length === 0 ? null : changes.leave(session, [...taken.free], select.pending);
    });
    return { count: count ?? 0, held };
  } catch (error) {
    if (isLockWait(error)) return { count: 0, held: ids };
    throw error;
  }
}

async function markHeld(
  session: Session,
  offsets: OffsetsRow,
  leader: Leader,
  ids: readonly RowId[],
  { select, changes }: SweptOutbox,
): Promise<number> {
  for (let tries = 1; ; tries++) {
    try {
      const leave = () => changes.leave(session, ids, select.pending);
      return (await relayTransaction(session, offsets, leader, 'leaving history', leave)) ?? 0;
    } catch (error) {
      if (!isLockWait(error)) throw error;
      if (tries === TRIES) {
        throw fault('MYSQL_LOCK_WAIT', 'retry', 'leaving history: somebody holds rows that were there before', error);
      }
    }
  }
}
