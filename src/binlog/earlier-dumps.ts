import type { Connection } from 'mysql2';
import { z } from 'zod';
import type { Log } from '../model/log.ts';
import { ask } from './ask.ts';

/** So many may hang at once and be found all the same. */
const LOCKS = 4;
/** One that lives hears of its end and closes, well within it. */
export const CLOSES_WITHIN_MS = 2_000;

const WHY = 'it had our replica id and did not close when ours began: the server hung in a write to it';

/** A dump under our replica id that was there before this one. */
export interface EarlierDump {
  readonly lock: string;
  readonly connectionId: string;
}

const Holders = z.array(z.record(z.string(), z.coerce.string().nullable())).length(1);

/**
 * A server ends the dump that it has under our replica id when it gets the next one; but not while it hangs in a write
 * to somebody who does not read: a frozen process, a network that is gone. MySQL then has both, and purges no file that
 * the old one still needs; MariaDB lets the new one wait for the old one's end, silently. Only a KILL of its connection
 * ends it. So each dump holds a lock by which the next one finds its connection. To be called on the connection that
 * will be the dump; queues what it asks at once.
 */
export async function takeDumpLock(connection: Connection, serverId: number): Promise<readonly EarlierDump[]> {
  const locks = Array.from({ length: LOCKS }, (_, n) => `cdc_relay_dump_${serverId}_${n}`);
  const [holders] = await Promise.all([
    holdersOf(connection, locks),
    ask(connection, `SELECT ${locks.map(() => 'GET_LOCK(?, 0)').join(' OR ')}`, locks),
  ]);
  return holders;
}

/** Ends those that are still there. Never rejects: what cannot be killed (another's, and no right to) stays. */
export async function endHangingDumps(
  connection: Connection,
  earlier: readonly EarlierDump[],
  log: Log,
): Promise<void> {
  try {
    const holders = await holdersOf(
      connection,
      earlier.map(({ lock }) => lock),
    );
    const hanging = holders.filter((now) =>
      earlier.some(({ lock, connectionId }) => lock === now.lock && connectionId === now.connectionId),
    );
    await Promise.all(
      hanging.map(async ({ connectionId }) => {
        await ask(connection, 'KILL ?', [Number(connectionId)]);
        log.info('earlier-dump-ended', { connectionId, why: WHY });
      }),
    );
  } catch {
    // The dump itself tells how it goes on.
  }
}

async function holdersOf(connection: Connection, locks: readonly string[]): Promise<EarlierDump[]> {
  const columns = locks.map((_, n) => `IS_USED_LOCK(?) AS holder${n}`).join(', ');
  const [row] = Holders.parse(await ask(connection, `SELECT ${columns}`, locks));
  return locks.flatMap((lock, n) => {
    const connectionId = row[`holder${n}`];
    return connectionId === null ? [] : [{ lock, connectionId }];
  });
}
