import { fault, type RelayError } from '../model/fault.ts';
import { formatPosition, type Position } from '../model/position.ts';
import { classifyMysql } from '../mysql/classify.ts';

const CANNOT_READ_LOG = 1236;
const PRIVILEGE_MISSING = 1227;
/** MariaDB's own number for it. */
const SAME_SERVER_ID = 4052;

/** What ends a dump, or keeps it from beginning. `from` is where it was to begin. */
export function dumpFault(error: unknown, from: Position): RelayError {
  const { errno, message } = shapeOf(error);
  if (errno === CANNOT_READ_LOG) return cannotRead(message, from, error);
  if (errno === SAME_SERVER_ID) return serverIdClash(error);
  if (errno === PRIVILEGE_MISSING) {
    return fault('BINLOG_NOT_PERMITTED', 'halt', 'reading the binlog needs GRANT REPLICATION SLAVE ON *.*', error);
  }
  const classified = classifyMysql(error, 'reading the binlog');
  if (classified.fault.code !== 'MYSQL_UNREACHABLE' && classified.fault.code !== 'MYSQL_QUERY_FAILED')
    return classified;
  // Killed, shut down, cut: whatever ended an established dump, the next one may live.
  return fault('BINLOG_CONNECTION_LOST', 'retry', classified.fault.detail, error);
}

/** One number for many causes: here only the text tells them apart, and not always the true one. */
function cannotRead(message: string, from: Position, cause: unknown): RelayError {
  if (/same server_(?:uuid|id)/i.test(message)) return serverIdClash(cause);
  if (/binary log is not open/i.test(message)) return binlogDisabled(cause);
  const hint = /max_allowed_packet|bogus data|middle of event|log event|crc check|corrupt/i.test(message)
    ? 'the position is probably not an event boundary of this file; or an event there is larger than max_allowed_packet'
    : 'the file was purged, the log was reset, or this is another server';
  const at = formatPosition(from);
  return fault('BINLOG_POSITION_UNUSABLE', 'halt', `cannot read from ${at}: ${hint} (the server: ${message})`, cause);
}

function serverIdClash(cause: unknown): RelayError {
  return fault(
    'BINLOG_SERVER_ID_CLASH',
    'halt',
    'another replica or relay reads with the same mysql.serverId: give each its own',
    cause,
  );
}

export function binlogDisabled(cause?: unknown): RelayError {
  return fault('BINLOG_DISABLED', 'halt', 'the server writes no binlog: start it with log_bin', cause);
}

function shapeOf(error: unknown): { readonly errno: unknown; readonly message: string } {
  const { errno } = (typeof error === 'object' && error !== null ? error : {}) as { readonly errno?: unknown };
  return { errno, message: error instanceof Error ? error.message : '' };
}
