import type { FaultCode } from './fault.ts';
import { count } from './stats.ts';

/**
 * What a connection to MySQL is for. `people`: what is asked for over HTTP, a connection each. The dump is not among
 * them: its streams are counted by the engine.
 */
export const MYSQL_CONNECTIONS = [
  ...(['leader', 'flush', 'rows', 'sweep', 'history'] as const),
  ...(['jobs', 'retention', 'limits', 'progress', 'people'] as const),
] as const;
export type MysqlConnection = (typeof MYSQL_CONNECTIONS)[number];

/**
 * Why a connection is opened. FIRST: there was none; IDLE: the last one had rested, and was closed by us; DONE: it was not
 * needed any more; SESSION_EXPIRES: the broker wants a new login; APART: for one batch alone. Else what ended the last one.
 */
export type ConnectCause = 'FIRST' | 'IDLE' | 'DONE' | 'SESSION_EXPIRES' | 'APART' | FaultCode;

/** Of one connection to MySQL, again and again. There is no pool: each has one piece of work at a time. */
export class ConnectionCounts {
  /** Now; of `people` there may be more than one. */
  open = 0;
  /** Pieces of work under way, and those that wait for their turn. */
  working = 0;
  waiting = 0;
  waitedMs = 0;
  readonly connects = new Map<ConnectCause, number>();
  /** Deadlocks and lock waits that a statement ended with. */
  readonly lockFaults = new Map<FaultCode, number>();
  #cause: ConnectCause = 'FIRST';

  opened(): void {
    this.open++;
    count(this.connects, this.#cause);
  }

  ended(cause: ConnectCause): void {
    this.open--;
    this.#cause = cause;
  }
}

/** What the relay's statements and connections meet at MySQL, by connection. */
export type MysqlCounts = Readonly<Record<MysqlConnection, ConnectionCounts>>;

export function newMysqlCounts(): MysqlCounts {
  const entries = MYSQL_CONNECTIONS.map((name) => [name, new ConnectionCounts()] as const);
  return Object.fromEntries(entries) as MysqlCounts;
}

/** What connections and requests meet at Kafka. Written once for a connection or a request, never for a record. */
export interface KafkaCounts {
  /** Connections now. */
  open: number;
  readonly connects: Map<ConnectCause, number>;
  /** How long brokers have asked to be left alone: quotas. */
  throttledMs: number;
  /** `request`: its name in Kafka's protocol. From the writing of it to its answer. */
  onAnswer: (request: string, tookMs: number) => void;
}

export function newKafkaCounts(): KafkaCounts {
  return { open: 0, connects: new Map(), throttledMs: 0, onAnswer: () => undefined };
}

export interface ServerCounts {
  readonly mysql: MysqlCounts;
  readonly kafka: KafkaCounts;
}

export function newServerCounts(): ServerCounts {
  return { mysql: newMysqlCounts(), kafka: newKafkaCounts() };
}
