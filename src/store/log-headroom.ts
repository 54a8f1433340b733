import { comparePositions, fileNumber, type Position } from '../model/position.ts';
import type { LogHeadroom } from '../model/progress.ts';
import type { BinlogFile } from './binlog-files.ts';
import type { Row, Session } from './session.ts';

const DAY_MS = 86_400_000;

/** How long a binlog is kept, and what else ends its life. No server has all of them. */
const VARIABLES = [
  'binlog_expire_logs_seconds',
  'binlog_expire_logs_auto_purge',
  'expire_logs_days',
  // Purged when there is too much of it: MariaDB, Percona.
  'max_binlog_total_size',
  'binlog_space_limit',
  'basedir',
] as const;
/** Amazon RDS and Aurora purge by a procedure of their own, whatever the variables say. */
const FOREIGN_RULE = /^\/rdsdbbin\//;

/** The variables of this server, as columns of a SELECT: they may be changed at any time. */
export async function expiryColumns(session: Session): Promise<string> {
  const rows = await session.rows(
    'asking how long binlogs are kept',
    `SHOW GLOBAL VARIABLES WHERE Variable_name IN (${VARIABLES.map((name) => `'${name}'`).join(', ')})`,
  );
  return rows.map(({ Variable_name: name }) => `@@GLOBAL.${String(name)} AS ${String(name)}`).join(', ');
}

export interface Expiry {
  /** How long a binlog is kept; null: for ever, or nobody knows. */
  readonly expireMs: number | null;
  /** Nothing but its age ends it. */
  readonly isByAge: boolean;
}

/** `row`: with the columns above. */
export function expiryOf(row: Row): Expiry {
  const number = (name: (typeof VARIABLES)[number]): number => Number(row[name] ?? 0);
  const isByAge = number('max_binlog_total_size') === 0 && number('binlog_space_limit') === 0;
  const isOff = ['0', 'OFF'].includes(String(row['binlog_expire_logs_auto_purge']));
  if (isOff || FOREIGN_RULE.test(String(row['basedir']))) {
    return { expireMs: null, isByAge };
  }
  const expireMs = number('binlog_expire_logs_seconds') * 1000 || number('expire_logs_days') * DAY_MS;
  return { expireMs: expireMs === 0 ? null : expireMs, isByAge };
}

export interface LogPlaces {
  readonly checkpoint: Position;
  /** Commit of the last transaction before it, milliseconds since the epoch by the server's clock; null: none was seen. */
  readonly lastCommitMs: number | null;
  readonly head: Position;
  /** Oldest first, up to that of the head; null: not listed yet, or may not be asked. */
  readonly files: readonly BinlogFile[] | null;
  /** The server's clock, milliseconds since the epoch. */
  readonly nowMs: number;
}

/**
 * When the checkpoint's binlog may go, at the earliest. The server purges whole files, the oldest first, at a rotation
 * or a start, those that were last written longer ago than the expiry. Who wrote a file last cannot be asked, but it was
 * not before the last transaction in front of the checkpoint was committed; and the file that is being written will be
 * written again. Readers of an older file, and a rotation that is yet to come, only put it off.
 */
export function logHeadroom(places: LogPlaces, { expireMs, isByAge }: Expiry): LogHeadroom {
  const { checkpoint, head, files, nowMs } = places;
  const isThere = files === null || files.some(({ name }) => name === checkpoint.file);
  const writtenMs = checkpoint.file === head.file ? nowMs : places.lastCommitMs;
  const inMs =
    expireMs === null || !isByAge || writtenMs === null
      ? null
      : Math.max(0, Math.floor(Math.min(writtenMs, nowMs) + expireMs - nowMs));
  return {
    inMs: isThere ? inMs : 0,
    expireMs,
    keptBytes: files === null || !isThere ? null : keptBytes(files, checkpoint),
    behindBytes: bytesBetween(files, checkpoint, head),
  };
}

/** Of the files before it. */
function keptBytes(files: readonly BinlogFile[], { file }: Position): number {
  return files.filter(({ name }) => fileNumber(name) < fileNumber(file)).reduce((bytes, file) => bytes + file.bytes, 0);
}

/** Log between two places; null where a file of it is not listed. */
export function bytesBetween(files: readonly BinlogFile[] | null, from: Position, to: Position): number | null {
  if (from.file === to.file) return Math.max(0, to.offset - from.offset);
  if (files === null || comparePositions(from, to) > 0) return null;
  const between = files.filter(
    ({ name }) => fileNumber(name) >= fileNumber(from.file) && fileNumber(name) < fileNumber(to.file),
  );
  if (between.length !== fileNumber(to.file) - fileNumber(from.file)) return null;
  return between.reduce((bytes, { end }) => bytes + end, 0) - from.offset + to.offset;
}
