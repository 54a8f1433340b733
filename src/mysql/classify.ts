import { type Disposition, fault, type FaultCode, RelayError } from '../model/fault.ts';

/**
 * Server error numbers (MySQL Error Message Reference; MariaDB uses the same below 1900) that mean something to us.
 * Everything else that the server says about a statement is MYSQL_QUERY_FAILED.
 */
const BY_ERRNO: ReadonlyMap<number, readonly [FaultCode, Disposition]> = new Map([
  [1040, ['MYSQL_UNREACHABLE', 'retry']], // too many connections
  [1044, ['MYSQL_ACCESS_DENIED', 'halt']], // database
  [1045, ['MYSQL_ACCESS_DENIED', 'halt']], // user or password
  [1130, ['MYSQL_ACCESS_DENIED', 'halt']], // host not allowed
  [1251, ['MYSQL_ACCESS_DENIED', 'halt']], // way of authentication not known to us
  [1820, ['MYSQL_ACCESS_DENIED', 'halt']], // password expired, found out by a statement
  [1862, ['MYSQL_ACCESS_DENIED', 'halt']], // password expired
  [3118, ['MYSQL_ACCESS_DENIED', 'halt']], // account locked
  [3955, ['MYSQL_ACCESS_DENIED', 'halt']], // locked after wrong passwords
  [4150, ['MYSQL_ACCESS_DENIED', 'halt']], // locked after wrong passwords (MariaDB)
  [4151, ['MYSQL_ACCESS_DENIED', 'halt']], // account locked (MariaDB)
  [1042, ['MYSQL_UNREACHABLE', 'retry']], // our address has no name
  [1047, ['MYSQL_UNREACHABLE', 'retry']], // node of a cluster that is not ready
  [1053, ['MYSQL_UNREACHABLE', 'retry']], // shutting down
  [1079, ['MYSQL_UNREACHABLE', 'retry']], // shutdown complete
  [1129, ['MYSQL_UNREACHABLE', 'retry']], // host blocked
  [1135, ['MYSQL_UNREACHABLE', 'retry']], // no thread for the connection
  [1203, ['MYSQL_UNREACHABLE', 'retry']], // too many connections of this user
  [1226, ['MYSQL_UNREACHABLE', 'retry']], // the same, by a limit of the account
  [1927, ['MYSQL_UNREACHABLE', 'retry']], // connection killed (MariaDB)
  [3032, ['MYSQL_UNREACHABLE', 'retry']], // offline mode
  [3168, ['MYSQL_UNREACHABLE', 'retry']], // not serving yet
  [3169, ['MYSQL_UNREACHABLE', 'retry']], // session killed
  [4031, ['MYSQL_UNREACHABLE', 'retry']], // ended for its silence (wait_timeout)
  [1142, ['MYSQL_ACCESS_DENIED', 'halt']], // table
  [1143, ['MYSQL_ACCESS_DENIED', 'halt']], // column
  [1227, ['MYSQL_ACCESS_DENIED', 'halt']], // privilege
  [1236, ['BINLOG_POSITION_UNUSABLE', 'halt']],
  [1205, ['MYSQL_LOCK_WAIT', 'retry']],
  [1213, ['MYSQL_DEADLOCK', 'retry']],
  [1049, ['MYSQL_SCHEMA', 'halt']], // no such database
  [1054, ['MYSQL_SCHEMA', 'halt']], // no such column
  [1146, ['MYSQL_SCHEMA', 'halt']], // no such table
  [1021, ['MYSQL_QUERY_FAILED', 'retry']], // disk full
  [1037, ['MYSQL_QUERY_FAILED', 'retry']], // out of memory
  [1041, ['MYSQL_QUERY_FAILED', 'retry']], // out of resources
  [1114, ['MYSQL_QUERY_FAILED', 'retry']], // table full
  [1180, ['MYSQL_QUERY_FAILED', 'retry']], // error during COMMIT
  [1206, ['MYSQL_QUERY_FAILED', 'retry']], // too many locks
  [1290, ['MYSQL_QUERY_FAILED', 'retry']], // read only: a failover in progress
  [1317, ['MYSQL_QUERY_FAILED', 'retry']], // KILL QUERY
  [1412, ['MYSQL_QUERY_FAILED', 'retry']], // the table was altered meanwhile
  [1836, ['MYSQL_QUERY_FAILED', 'retry']], // read only mode
  [1698, ['MYSQL_ACCESS_DENIED', 'halt']],
  [1969, ['MYSQL_QUERY_TIMEOUT', 'retry']], // max_statement_time (MariaDB)
  [3024, ['MYSQL_QUERY_TIMEOUT', 'retry']], // max_execution_time
  [3101, ['MYSQL_QUERY_FAILED', 'retry']], // rolled back by a plugin in COMMIT
  [3159, ['MYSQL_ACCESS_DENIED', 'halt']], // require_secure_transport
]);

/** Client-side codes of mysql2 and of the socket under it. */
const BY_CODE: ReadonlyMap<string, readonly [FaultCode, Disposition]> = new Map([
  ['PROTOCOL_SEQUENCE_TIMEOUT', ['MYSQL_QUERY_TIMEOUT', 'retry']],
  ['CERT_HAS_EXPIRED', ['MYSQL_ACCESS_DENIED', 'halt']],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', ['MYSQL_ACCESS_DENIED', 'halt']],
  ['ERR_TLS_CERT_ALTNAME_INVALID', ['MYSQL_ACCESS_DENIED', 'halt']],
  ['SELF_SIGNED_CERT_IN_CHAIN', ['MYSQL_ACCESS_DENIED', 'halt']],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', ['MYSQL_ACCESS_DENIED', 'halt']],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', ['MYSQL_ACCESS_DENIED', 'halt']],
  ['HANDSHAKE_NO_SSL_SUPPORT', ['MYSQL_ACCESS_DENIED', 'halt']],
  ['AUTH_SWITCH_PLUGIN_ERROR', ['MYSQL_ACCESS_DENIED', 'halt']],
]);

/** What the server says about our certificate (RFC 8446, 6.2), as OpenSSL names it. */
const ALERTS = /^ERR_SSL_\w+_ALERT_(?:UNKNOWN_CA|ACCESS_DENIED|\w*CERTIFICATE\w*)$/;
const OUR_CERTIFICATE = ['MYSQL_ACCESS_DENIED', 'halt'] as const;

interface MysqlErrorShape {
  readonly code?: unknown;
  readonly errno?: unknown;
  readonly fatal?: unknown;
  readonly sqlState?: unknown;
}

/**
 * Sorts what mysql2 throws. A dead connection may reject with no code at all, so what the server did not name
 * (no SQLSTATE) is a lost connection. The server's message is not repeated: it may quote values of the statement.
 */
export function classifyMysql(error: unknown, doing: string): RelayError {
  if (error instanceof RelayError) return error;
  const { code, errno, fatal, sqlState } =
    typeof error === 'object' && error !== null ? (error as MysqlErrorShape) : {};
  const known =
    (typeof errno === 'number' ? BY_ERRNO.get(errno) : undefined) ??
    (typeof code === 'string' ? (BY_CODE.get(code) ?? (ALERTS.test(code) ? OUR_CERTIFICATE : undefined)) : undefined);
  const name = typeof code === 'string' ? code : 'no code';
  if (known !== undefined) return fault(known[0], known[1], `${doing}: ${name}`, error);
  if (code === 'HANDSHAKE_SSL_ERROR' && error instanceof Error && !isBrokenOff(error)) {
    // OpenSSL's words about the certificate: no value of ours is in them.
    return fault('MYSQL_ACCESS_DENIED', 'halt', `${doing}: ${name} (${error.message})`, error);
  }
  if (fatal === true || typeof sqlState !== 'string') {
    return fault('MYSQL_UNREACHABLE', 'retry', `${doing}: ${name}`, error);
  }
  return fault('MYSQL_QUERY_FAILED', 'halt', `${doing}: ${name}`, error);
}

/**
 * mysql2 puts one code over all that goes wrong while TLS is set up. A socket that broke still shows by what Node adds
 * to its error: the system call, or the address of an end that was closed early.
 */
function isBrokenOff(error: Error): boolean {
  return 'syscall' in error || 'localAddress' in error;
}
