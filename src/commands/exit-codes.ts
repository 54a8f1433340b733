import type { FaultCode } from '../model/fault.ts';

/** What the process says to its caller; the same for every command. */
export const ExitCode = {
  Good: 0,
  /** A finding, or the work failed. */
  Failure: 1,
  /** Wrong usage or configuration. */
  Usage: 2,
  /** A server could not be reached. */
  Unreachable: 3,
  /** A server said no. */
  NotPermitted: 4,
  /** Ctrl-C. */
  Interrupted: 130,
  /** SIGTERM, where a command does not stop softly. */
  Terminated: 143,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

const UNREACHABLE: ReadonlySet<FaultCode> = new Set([
  'MYSQL_UNREACHABLE',
  'MYSQL_QUERY_TIMEOUT',
  'BINLOG_CONNECTION_LOST',
  'BINLOG_SILENT',
  'KAFKA_UNREACHABLE',
  'KAFKA_TIMEOUT',
] satisfies FaultCode[]);

const NOT_PERMITTED: ReadonlySet<FaultCode> = new Set([
  'MYSQL_ACCESS_DENIED',
  'BINLOG_NOT_PERMITTED',
  'KAFKA_AUTHENTICATION',
  'KAFKA_TLS',
  'KAFKA_SASL_AUTHENTICATION_FAILED',
  'KAFKA_TOPIC_AUTHORIZATION_FAILED',
  'KAFKA_CLUSTER_AUTHORIZATION_FAILED',
] satisfies FaultCode[]);

export function exitCodeOf(code: FaultCode): ExitCode {
  if (code === 'START_NOT_CHOSEN') return ExitCode.Usage;
  if (UNREACHABLE.has(code)) return ExitCode.Unreachable;
  return NOT_PERMITTED.has(code) ? ExitCode.NotPermitted : ExitCode.Failure;
}
