import { quoteTable } from '../model/identifier.ts';
import type { Position } from '../model/position.ts';
import type { Settings } from '../model/settings.ts';
import { lockName } from './leadership.ts';
import { type Expiry, expiryOf } from './log-headroom.ts';
import type { Row, Session } from './session.ts';

/** What the offsets row and the server say of a relay, dead or alive. Ages by the server's clock. */
export interface RelayFacts {
  /** The server's clock, milliseconds since the epoch. */
  readonly serverMs: number;
  /** Whoever holds the lock; null: nobody. */
  readonly leader: { readonly owner: string; readonly epoch: number } | null;
  /** Null before the first start. */
  readonly checkpoint: SavedCheckpoint | null;
  /** Null: nobody has asked for a pause. */
  readonly paused: { readonly sinceMs: number; readonly by: string } | null;
  readonly expiry: Expiry;
}

export interface SavedCheckpoint extends Position {
  /** Of the server whose log it is about. */
  readonly serverUuid: string;
  readonly savedMsAgo: number;
  /** Milliseconds since the epoch; see `Checkpoint`. */
  readonly lastCommitMs: number | null;
}

/** One statement, by primary key. `expiry`: what `expiryColumns` says of this server. */
export async function readRelayFacts(session: Session, settings: Settings, expiry: string): Promise<RelayFacts> {
  const { name } = settings.relay;
  const table = quoteTable(settings.mysql.database, 'cdc_relay_offsets');
  const own = (column: string): string => `(SELECT ${column} FROM ${table} WHERE name = ?)`;
  // Without the columns of a pause (before `migrate`) those names mean what is absent: nothing is missed, nothing fails.
  const [row] = await session.rows(
    'looking at the relay',
    `SELECT UNIX_TIMESTAMP(NOW(6)) AS now_s, IS_USED_LOCK(?) AS holder, server_uuid, file, position, epoch,
       COALESCE(owner, '') AS owner, last_commit_us, ${ageMs('updated_at')} AS saved_ms_ago,
       ${own(ageMs('paused_at'))} AS paused_ms, ${own("COALESCE(paused_by, '')")} AS paused_by, ${expiry}
     FROM (SELECT NULL AS paused_at, NULL AS paused_by) AS absent LEFT JOIN ${table} AS saved ON saved.name = ?`,
    [lockName(settings.mysql.database, name), name, name, name],
  );
  return {
    serverMs: Number(row['now_s']) * 1000,
    leader:
      row['holder'] === null || row['epoch'] === null
        ? null
        : { owner: String(row['owner']), epoch: Number(row['epoch']) },
    checkpoint: checkpointOf(row),
    paused: row['paused_ms'] === null ? null : { sinceMs: Number(row['paused_ms']), by: String(row['paused_by']) },
    expiry: expiryOf(row),
  };
}

function ageMs(column: string): string {
  return `TIMESTAMPDIFF(MICROSECOND, ${column}, UTC_TIMESTAMP(6)) DIV 1000`;
}

function checkpointOf(row: Row): SavedCheckpoint | null {
  const { file } = row;
  if (typeof file !== 'string') return null;
  return {
    file,
    offset: Number(row['position']),
    serverUuid: String(row['server_uuid']),
    savedMsAgo: Number(row['saved_ms_ago']),
    lastCommitMs: row['last_commit_us'] === null ? null : Number(row['last_commit_us']) / 1000,
  };
}
