import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { type Clock, pause } from '../model/clock.ts';
import { fault, RelayError } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
import { ConnectionCounts } from '../model/server-counts.ts';
import type { MysqlSettings, RelaySettings } from '../model/settings.ts';
import type { Leader } from '../model/store.ts';
import { Session } from './session.ts';

/** One wait for the lock on the server; short enough to hear a stop in between. */
const LOCK_WAIT_SECONDS = 2;
const READ_ONLY = '@@GLOBAL.read_only AS read_only';
/** The lock's connection answers at least this often before it is too old to send, and before it is given up. */
const PINGS_PER_TAKE_OVER = 3;

/**
 * Leadership by `GET_LOCK` on a connection of its own, whose `wait_timeout` is the take-over time: a holder that
 * vanished or is frozen sends no ping, the server ends its connection, and the lock is free. Then the epoch goes up by
 * one: every write of an older leader fails its compare-and-set.
 */
export async function lead(
  mysql: MysqlSettings,
  relay: RelaySettings,
  clock: Clock,
  log: Log,
  signal: AbortSignal,
  onStandby: () => void,
  counts = new ConnectionCounts(),
): Promise<Leader> {
  const session = await Session.open(mysql, log, counts);
  try {
    await session.endWhenSilentFor(relay.takeOverMs);
    const lock = lockName(mysql.database, relay.name);
    await waitForLock(session, lock, mysql.queryTimeoutMs, signal, onStandby);
    const epoch = await takeEpoch(session, mysql.database, relay.name);
    const wasReadOnly = await isReadOnly(session);
    return hold({ session, lock, epoch, wasReadOnly, takeOverMs: relay.takeOverMs, clock, log });
  } catch (error) {
    session.destroy();
    throw error;
  }
}

/** Lock names are at most 64 characters and server-wide: schema and relay name, hashed. */
export function lockName(database: string, name: string): string {
  return `cdc_relay_${createHash('sha256').update(`${database}\0${name}`).digest('hex').slice(0, 40)}`;
}

async function waitForLock(
  session: Session,
  lock: string,
  queryTimeoutMs: number,
  signal: AbortSignal,
  onStandby: () => void,
): Promise<void> {
  for (let waitSeconds = 0; ; waitSeconds = LOCK_WAIT_SECONDS) {
    const sql = 'SELECT GET_LOCK(?, ?) AS got';
    const timeoutMs = waitSeconds * 1000 + queryTimeoutMs;
    const [row] = await session.rows('asking for the leader lock', sql, [lock, waitSeconds], timeoutMs);
    if (Number(row['got']) === 1) return;
    if (signal.aborted) throw fault('STOPPED', 'halt', 'stopped while waiting for the leader lock');
    if (waitSeconds === 0) onStandby();
  }
}

async function takeEpoch(session: Session, database: string, name: string): Promise<number> {
  const table = quoteTable(database, 'cdc_relay_offsets');
  const doing = 'taking the next epoch';
  const owner = `${hostname()}:${process.pid}`;
  await session.change(
    doing,
    `INSERT INTO ${table} (name, epoch, owner) VALUES (?, 1, ?)
     ON DUPLICATE KEY UPDATE epoch = epoch + 1, owner = VALUES(owner), updated_at = UTC_TIMESTAMP(6)`,
    [name, owner],
  );
  const [row] = await session.rows(doing, `SELECT epoch FROM ${table} WHERE name = ?`, [name]);
  return Number(row['epoch']);
}

/** Whether only the privileged may write there. */
async function isReadOnly(session: Session): Promise<boolean> {
  const [row] = await session.rows('asking whether the server takes writes', `SELECT ${READ_ONLY}`);
  return isOn(row['read_only']);
}

function isOn(value: unknown): boolean {
  return !['0', 'OFF'].includes(String(value));
}

interface Held {
  readonly session: Session;
  readonly lock: string;
  readonly epoch: number;
  readonly wasReadOnly: boolean;
  readonly takeOverMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

function hold({ session, lock, epoch, wasReadOnly, takeOverMs, clock, log }: Held): Leader {
  const lost = new AbortController();
  /** Ends the pinging: the lock was given back, or lost. */
  const over = new AbortController();
  let answeredMs = clock.nowMs();
  const ping = async (): Promise<void> => {
    const askedMs = clock.nowMs();
    const sql = `SELECT IS_USED_LOCK(?) = CONNECTION_ID() AS mine, ${READ_ONLY}`;
    const [row] = await session.rows('pinging the leader connection', sql, [lock], takeOverMs / 2);
    if (Number(row['mine']) !== 1) throw fault('LEADERSHIP_LOST', 'renew', 'the leader lock is somebody else’s');
    // It was the primary. Nothing else would tell while it lives on and there is nothing to write.
    if (!wasReadOnly && isOn(row['read_only'])) throw fault('LEADERSHIP_LOST', 'renew', 'the server only reads now');
    answeredMs = askedMs;
  };
  const pinging = async (): Promise<void> => {
    for (;;) {
      await pause(clock, takeOverMs / PINGS_PER_TAKE_OVER, over.signal);
      if (over.signal.aborted) return;
      await ping();
    }
  };
  pinging().catch((error: unknown) => {
    if (over.signal.aborted) return;
    const { code, detail } =
      error instanceof RelayError ? error.fault : { code: 'INTERNAL', detail: 'pinging the leader connection' };
    log.warn('leader-lock-lost', { code, detail });
    over.abort();
    lost.abort();
    session.destroy('LEADERSHIP_LOST');
  });
  const leader = {
    epoch,
    lost: lost.signal,
    serverUuid: session.serverUuid,
    maySend: () => !over.signal.aborted && clock.nowMs() - answeredMs < takeOverMs / 2,
    async release() {
      over.abort();
      if (session.isUsable) {
        const sql = 'SELECT RELEASE_LOCK(?)';
        await session.rows('giving the leader lock back', sql, [lock], takeOverMs / 2).catch(() => undefined);
      }
      session.destroy();
    },
  };
  // The brand is a type's only: nothing else can make a Leader.
  return leader as unknown as Leader;
}
