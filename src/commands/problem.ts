import type { Fault, FaultCode } from '../model/fault.ts';
import type { Settings } from '../model/settings.ts';
import { ExitCode, exitCodeOf } from './exit-codes.ts';

/** What went wrong, as people read it: the verdict, then where, what follows, and what to do. */
export interface Problem {
  readonly exitCode: ExitCode;
  readonly headline: string;
  readonly server?: string;
  readonly effect?: string;
  /** One line, or several; statements ready to be pasted. */
  readonly fix?: string;
}

/** Ends a command with a problem from within. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.headline);
    this.problem = problem;
  }
}

/** Wrong usage: exit code 2. */
export function usageError(headline: string, fix?: string): ProblemError {
  return new ProblemError({ exitCode: ExitCode.Usage, headline, ...(fix === undefined ? {} : { fix }) });
}

/** `error: …` and the aligned lines under it. */
export function problemText({ headline, server, effect, fix }: Problem): string {
  const facts = Object.entries({ server, effect, fix }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return [
    `error: ${headline}`,
    ...facts.map(([label, text]) => `  ${label.padEnd(7)}  ${text.replaceAll('\n', `\n${' '.repeat(11)}`)}`),
  ].join('\n');
}

/** A fault with the servers of the settings; `more` is what the command knows better. */
export function problemOf(
  fault: Fault,
  settings: Settings,
  more: Partial<Pick<Problem, 'effect' | 'fix'>> = {},
): Problem {
  const isKafka = fault.code.startsWith('KAFKA_');
  const { host, port } = settings.mysql;
  const fix = more.fix ?? FIXES[fault.code];
  return {
    exitCode: exitCodeOf(fault.code),
    headline: `${fault.detail} (${fault.code})`,
    server: isKafka ? settings.kafka.brokers.join(', ') : `${host}:${port}`,
    ...(more.effect === undefined ? {} : { effect: more.effect }),
    ...(fix === undefined ? {} : { fix }),
  };
}

const FIXES: Partial<Record<FaultCode, string>> = {
  MYSQL_UNREACHABLE: 'see that MySQL runs there and can be reached from here; mysql.host, mysql.port',
  MYSQL_ACCESS_DENIED:
    'see mysql.user, mysql.password and mysql.tls; cdc-relay check names each right that is missing, with its GRANT',
  MYSQL_SCHEMA:
    'cdc-relay check names the tables and columns that are missing; cdc-relay migrate creates tables, cdc-relay adopt adds columns',
  BINLOG_NOT_PERMITTED: "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO the relay's user",
  KAFKA_UNREACHABLE: 'see that Kafka runs there and can be reached from here; kafka.brokers, kafka.tls',
  KAFKA_AUTHENTICATION: 'see kafka.sasl',
  KAFKA_TLS: "see kafka.tls; caFile names the authority that signed the brokers' certificates",
};
