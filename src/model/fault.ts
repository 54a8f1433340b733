/**
 * What the engine does about a fault.
 * - retry: the world is at fault (network, leader moving): back off, hold the lane; costs no row an attempt
 * - renew: our own session is at fault (producer id, connection): make a new one, then as retry
 * - reject: the broker says that the batch is at fault: it appended nothing
 * - park: a topic or topic-partition cannot be written by anybody like us
 * - halt: nothing that the relay can do by itself
 */
export type Disposition = 'retry' | 'renew' | 'reject' | 'park' | 'halt';

/** Every fault of the relay by code. Closed: a new kind of fault gets a code here. */
export type FaultCode =
  // binlog source
  | 'BINLOG_CONNECTION_LOST'
  | 'BINLOG_SILENT'
  | 'BINLOG_DECODE'
  | 'BINLOG_POSITION_UNUSABLE'
  | 'BINLOG_SERVER_ID_CLASH'
  | 'BINLOG_NOT_PERMITTED'
  | 'BINLOG_DISABLED'
  | 'BINLOG_UNSUPPORTED'
  | 'BINLOG_TRANSACTION_TOO_LARGE'
  | 'BINLOG_INCIDENT'
  // MySQL by statements
  | 'MYSQL_UNREACHABLE'
  | 'MYSQL_ACCESS_DENIED'
  | 'MYSQL_QUERY_TIMEOUT'
  | 'MYSQL_LOCK_WAIT'
  | 'MYSQL_DEADLOCK'
  | 'MYSQL_SCHEMA'
  | 'MYSQL_QUERY_FAILED'
  | 'MYSQL_FOREIGN_SERVER'
  // first start
  | 'START_NOT_CHOSEN'
  // a job asks for a new beginning
  | 'RESYNC'
  // people have asked for a pause
  | 'PAUSED'
  // leadership
  | 'LEADERSHIP_LOST'
  | 'LEADERSHIP_HELD'
  // a row that cannot become a record
  | 'ROW_ENCODING'
  | 'ROW_NO_TOPIC'
  // Kafka: the client's side
  | 'KAFKA_UNREACHABLE'
  | 'KAFKA_TIMEOUT'
  | 'KAFKA_AUTHENTICATION'
  | 'KAFKA_TLS'
  | 'KAFKA_CLIENT_BUG'
  | 'KAFKA_RESPONSE_MISMATCH'
  // Kafka: the broker's word, `KAFKA_` + the protocol's own name of the error code
  | `KAFKA_${string}`
  // our own
  | 'STOPPED'
  | 'INTERNAL';

/** One fault: what, what to do about it, and why. `detail` is safe to print: no payload, no secret. */
export interface Fault {
  readonly code: FaultCode;
  readonly disposition: Disposition;
  readonly detail: string;
  readonly cause?: unknown;
}

/** The one error class of the relay. */
export class RelayError extends Error {
  override readonly name = 'RelayError';
  readonly fault: Fault;

  constructor(fault: Fault) {
    super(`${fault.code}: ${fault.detail}`, { cause: fault.cause });
    this.fault = fault;
  }
}

export function fault(code: FaultCode, disposition: Disposition, detail: string, cause?: unknown): RelayError {
  return new RelayError({ code, disposition, detail, cause });
}
