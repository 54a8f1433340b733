import { RelayError } from '../model/fault.ts';
import type { Leader } from '../model/store.ts';
import type { OffsetsRow } from './offsets-row.ts';
import type { Session } from './session.ts';

/** A deadlock makes our transaction the victim now and then; it is simply made again. */
export const DEADLOCK_TRIES = 5;
/** Only transactions of this relay hold the offsets row; a flush may wait for rows meanwhile. Each try is a second. */
const OFFSETS_TRIES = 5;

/**
 * One transaction of the relay: the compare-and-set of the offsets row, then `work`, and again from the start after a
 * deadlock. `work` returns what came of it; null: nothing to be kept, and nothing shall be in the log. Throws a
 * `RelayError`; nothing is changed then, unless the connection died in COMMIT.
 */
export async function relayTransaction<T>(
  session: Session,
  offsets: OffsetsRow,
  leader: Leader,
  doing: string,
  work: () => Promise<T | null>,
): Promise<T | null> {
  let offsetsTries = 1;
  for (let tries = 1; ; tries++) {
    let isOurs = false;
    try {
      await session.change(doing, 'START TRANSACTION');
      await offsets.compareAndSet(session, leader);
      isOurs = true;
      const done = await work();
      await session.change(doing, done === null ? 'ROLLBACK' : 'COMMIT');
      return done;
    } catch (error) {
      await rollBack(session);
      if (isLockWait(error) && !isOurs && offsetsTries++ < OFFSETS_TRIES) continue;
      if (isDeadlock(error) && tries < DEADLOCK_TRIES) continue;
      throw error;
    }
  }
}

/** For a transaction that has failed, whatever state it left the session in. */
export async function rollBack(session: Session): Promise<void> {
  if (!session.isUsable) return;
  await session.change('rolling back', 'ROLLBACK').catch(() => undefined);
}

export function isLockWait(error: unknown): boolean {
  return error instanceof RelayError && error.fault.code === 'MYSQL_LOCK_WAIT';
}

export function isDeadlock(error: unknown): boolean {
  return error instanceof RelayError && error.fault.code === 'MYSQL_DEADLOCK';
}
