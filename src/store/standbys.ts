import { RelayError } from '../model/fault.ts';
import type { ServerFacts } from '../model/store.ts';
import type { Session } from './session.ts';

/**
 * How many relays wait for the lock. Everybody may look at the connections of their own account: null where the leader's
 * is none of them (other relays, too, may then be hidden), or where the server keeps no list. Between two waits of two
 * seconds a relay is not seen for an instant.
 */
export async function readStandbys(
  session: Session,
  { flavour }: Pick<ServerFacts, 'flavour'>,
  lock: string,
): Promise<number | null> {
  const list = flavour === 'mariadb' ? 'information_schema.PROCESSLIST' : 'performance_schema.processlist';
  const sql = `SELECT SUM(STATE = 'User lock' AND INFO LIKE ?) AS waiting,
    SUM(ID = COALESCE(IS_USED_LOCK(?), CONNECTION_ID())) AS seen FROM ${list}`;
  try {
    const [row] = await session.rows('looking for other relays', sql, [`SELECT GET_LOCK('${lock}'%`, lock]);
    return Number(row['seen'] ?? 0) === 0 ? null : Number(row['waiting']);
  } catch (error) {
    const code = error instanceof RelayError ? error.fault.code : null;
    // MySQL before 8.0.22 has no such table.
    if (code === 'MYSQL_ACCESS_DENIED' || code === 'MYSQL_SCHEMA') return null;
    throw error;
  }
}
