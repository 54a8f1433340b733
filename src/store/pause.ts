import { RelayError } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { Settings } from '../model/settings.ts';
import { lockName } from './leadership.ts';
import { isLockWait } from './relay-transaction.ts';
import type { Row, Session } from './session.ts';

/** That a relay has been asked to pause, and nobody has asked it to go on. */
export interface Pause {
  /** For how long, by the server's clock. */
  readonly sinceMs: number;
  /** User and host of the operating system. */
  readonly by: string;
}

/** As long as its column. */
const BY_CHARACTERS = 512;
/** A flush holds the row for as long as it waits for rows of the application; each try waits a second. */
const TRIES = 30;

/** Null: it is not paused. Throws a `RelayError`; MYSQL_SCHEMA where the columns have not been made yet. */
export async function readPause(session: Session, settings: Settings): Promise<Pause | null> {
  const [row] = (await session.rows(
    'asking whether the relay is paused',
    `SELECT TIMESTAMPDIFF(MICROSECOND, paused_at, UTC_TIMESTAMP(6)) DIV 1000 AS since_ms, COALESCE(paused_by, '') AS \`by\`
     FROM ${tableOf(settings)} WHERE name = ?`,
    [settings.relay.name],
  )) as (Row | undefined)[];
  const sinceMs = row?.['since_ms'] ?? null;
  return row === undefined || sinceMs === null ? null : { sinceMs: Number(sinceMs), by: String(row['by']) };
}

/** The same for a version that runs before `migrate`: null where the table cannot say. */
export async function isPaused(session: Session, settings: Settings): Promise<boolean | null> {
  try {
    return (await readPause(session, settings)) !== null;
  } catch (error) {
    if (error instanceof RelayError && error.fault.code === 'MYSQL_SCHEMA') return null;
    throw error;
  }
}

/**
 * Asks the relay to pause, also one that has never run. What was asked before stays. Returns what holds now; `changed`:
 * it is new. `by`: user and host of the operating system.
 */
export async function askToPause(
  session: Session,
  settings: Settings,
  by: string,
): Promise<Pause & { readonly changed: boolean }> {
  const before = await readPause(session, settings);
  if (before !== null) return { ...before, changed: false };
  await patiently(async () => {
    await session.change(
      'pausing the relay',
      `INSERT INTO ${tableOf(settings)} (name, paused_at, paused_by) VALUES (?, UTC_TIMESTAMP(6), ?)
       ON DUPLICATE KEY UPDATE rested_epoch = IF(paused_at IS NULL, NULL, rested_epoch), paused_by = IF(paused_at IS NULL, VALUES(paused_by), paused_by),
         paused_at = COALESCE(paused_at, VALUES(paused_at))`,
      [settings.relay.name, Array.from(by).slice(0, BY_CHARACTERS).join('')],
    );
  });
  const held = await readPause(session, settings);
  // Somebody has resumed it in between: that is what holds.
  return { ...(held ?? { sinceMs: 0, by }), changed: true };
}

/** Returns what held before; null: it was not paused. */
export async function askToResume(session: Session, settings: Settings): Promise<Pause | null> {
  const before = await readPause(session, settings);
  if (before === null) return null;
  await patiently(async () => {
    await session.change(
      'resuming the relay',
      `UPDATE ${tableOf(settings)} SET paused_at = NULL, paused_by = NULL, rested_epoch = NULL WHERE name = ?`,
      [settings.relay.name],
    );
  });
  return before;
}

/** What has come of it: the epoch of the leader, and whether it rests; null: nobody leads. */
export async function readFollower(
  session: Session,
  settings: Settings,
): Promise<{ readonly epoch: number; readonly isResting: boolean | null }> {
  const [row] = (await session.rows(
    'looking whether the leader rests',
    `SELECT IS_USED_LOCK(?) AS holder, epoch, COALESCE(rested_epoch = epoch, FALSE) AS rests
     FROM ${tableOf(settings)} WHERE name = ?`,
    [lockName(settings.mysql.database, settings.relay.name), settings.relay.name],
  )) as (Row | undefined)[];
  if (row === undefined) return { epoch: 0, isResting: null };
  return { epoch: Number(row['epoch']), isResting: row['holder'] === null ? null : Number(row['rests']) === 1 };
}

function tableOf(settings: Settings): string {
  return quoteTable(settings.mysql.database, 'cdc_relay_offsets');
}

async function patiently(work: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await work();
      return;
    } catch (error) {
      if (!isLockWait(error) || tries === TRIES) throw error;
    }
  }
}
