import type { Socket } from 'node:net';
import mysql from 'mysql2/promise';
import { fault } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import { ConnectionCounts, type ConnectCause } from '../model/server-counts.ts';
import type { MysqlSettings } from '../model/settings.ts';
import { count } from '../model/stats.ts';
import { classifyMysql } from '../mysql/classify.ts';
import { connectionOptions } from '../mysql/connection.ts';
import { loggedIn, loginFault } from '../mysql/login.ts';
import { SERVER_UUID, serverUuidIn } from '../mysql/server-uuid.ts';

const NOT_PERMITTED = 1227;
/** A server that only reads is, or is becoming, a replica: whoever writes now may be found behind the address. */
const READ_ONLY: ReadonlySet<unknown> = new Set([1290, 1836]);

/**
 * Made on every connection: READ COMMITTED (under REPEATABLE READ our locks reach into gaps, and application INSERTs
 * wait), the server's clock in UTC, and locks that are given up soon: those of rows, and those of whole tables (an
 * ALTER or LOCK TABLES of the application), which by default are waited for a year. A server may begin every session in
 * a transaction (autocommit = OFF): what is written outside of ours would never be committed. MariaDB would make a join
 * of a list of 1,000 ids or more, whatever index is forced: it scans the table then, and waits for every locked row.
 */
const SETUP = [
  'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
  "SET SESSION autocommit = 1, time_zone = '+00:00', innodb_lock_wait_timeout = 1, lock_wait_timeout = 1" +
    ' /*M!100600 , in_predicate_conversion_threshold = 0 */',
];

export interface Changed {
  /** Rows found by the WHERE clause, whether or not they changed (CLIENT_FOUND_ROWS, mysql2's default). */
  readonly matched: number;
}

export type Row = Readonly<Record<string, unknown>>;

/**
 * One connection for statements. Every statement has a time-out; what timed out or lost its connection leaves the
 * session unusable (a late answer would be taken for the next one's), as does a server that only reads; `isUsable` says so.
 */
export class Session {
  readonly #connection: mysql.Connection;
  readonly #timeoutMs: number;
  readonly #counts: ConnectionCounts;
  readonly serverUuid: string;
  #usable = true;
  /** One for each statement under way. */
  readonly #giveUp = new Set<(reason: Error) => void>();

  private constructor(connection: mysql.Connection, timeoutMs: number, serverUuid: string, counts: ConnectionCounts) {
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
    this.serverUuid = serverUuid;
    this.#counts = counts;
    counts.opened();
    // Without a listener a connection that dies while idle takes the process with it.
    connection.on('error', (error: unknown) => this.#end(classifyMysql(error, 'waiting').fault.code));
  }

  /** Throws a `RelayError`. */
  static async open(settings: MysqlSettings, log: Log, counts = new ConnectionCounts()): Promise<Session> {
    const doing = `connecting to ${settings.host}:${settings.port}`;
    let connection: mysql.Connection;
    try {
      connection = await mysql.createConnection(connectionOptions(settings));
    } catch (error) {
      throw loginFault(settings, classifyMysql(error, doing), error);
    }
    loggedIn(settings);
    connection.on('error', () => undefined);
    try {
      const timeout = settings.queryTimeoutMs;
      for (const sql of SETUP) await connection.query({ sql, timeout });
      await shortRowImages(connection, timeout, log);
      return new Session(connection, timeout, await serverUuid(connection, timeout), counts);
    } catch (error) {
      cut(connection);
      throw classifyMysql(error, doing);
    }
  }

  get isUsable(): boolean {
    return this.#usable;
  }

  /**
   * From now on the server ends the connection, and with it every lock that it holds, when nothing comes from it for
   * so long: a frozen process, a dead network.
   */
  async endWhenSilentFor(ms: number): Promise<void> {
    await this.change('setting the take-over time', 'SET SESSION wait_timeout = ?', [Math.ceil(ms / 1000)]);
  }

  async rows(doing: string, sql: string, values: readonly unknown[] = [], timeoutMs = this.#timeoutMs): Promise<Row[]> {
    const [rows] = await this.#query(doing, sql, values, timeoutMs);
    return rows as Row[];
  }

  /** The same with each value as the bytes that the server sent: text in UTF-8, binary columns as they are. */
  async raw(doing: string, sql: string): Promise<{ rows: (Buffer | null)[][]; fields: mysql.FieldPacket[] }> {
    const typeCast: mysql.TypeCast = (field) => field.buffer();
    const [rows, fields] = await this.#query(doing, sql, [], this.#timeoutMs, { rowsAsArray: true, typeCast });
    return { rows: rows as (Buffer | null)[][], fields: fields as mysql.FieldPacket[] };
  }

  async change(doing: string, sql: string, values: readonly unknown[] = []): Promise<Changed> {
    const [result] = await this.#query(doing, sql, values, this.#timeoutMs);
    return { matched: (result as mysql.ResultSetHeader).affectedRows };
  }

  async #query(
    doing: string,
    sql: string,
    values: readonly unknown[],
    timeout: number,
    options: Partial<mysql.QueryOptions> = {},
  ): Promise<[unknown, unknown]> {
    const statement = { sql, timeout, values: [...values], ...options };
    try {
      return await new Promise((resolve, reject) => {
        this.#giveUp.add(reject);
        void this.#connection
          .query(statement)
          .then(resolve, reject)
          .finally(() => this.#giveUp.delete(reject));
      });
    } catch (error) {
      const classified = classifyMysql(error, doing);
      const { code } = classified.fault;
      const isReadOnly = READ_ONLY.has((error as { errno?: unknown }).errno);
      if (code === 'MYSQL_UNREACHABLE' || code === 'MYSQL_QUERY_TIMEOUT' || isReadOnly) this.destroy(code);
      if (code === 'MYSQL_DEADLOCK' || code === 'MYSQL_LOCK_WAIT') count(this.#counts.lockFaults, code);
      throw classified;
    }
  }

  /** Statements under way end at once: the library would leave them to their time-outs. */
  destroy(cause: ConnectCause = 'DONE'): void {
    this.#end(cause);
    cut(this.#connection);
    for (const reject of this.#giveUp) reject(fault('MYSQL_UNREACHABLE', 'retry', 'the connection was ended'));
    this.#giveUp.clear();
  }

  #end(cause: ConnectCause): void {
    if (this.#usable) this.#counts.ended(cause);
    this.#usable = false;
  }
}

/** The library would only say goodbye, and wait with an open socket for a peer that may never answer. */
function cut(connection: mysql.Connection): void {
  connection.destroy();
  (connection as unknown as { readonly connection: { readonly stream: Socket } }).connection.stream.destroy();
}

/**
 * Our updates need only the primary key in the log: a fifth of the bytes for every replica. Needs
 * SESSION_VARIABLES_ADMIN (MySQL) or BINLOG ADMIN (MariaDB); without it the server's row image stays.
 */
async function shortRowImages(connection: mysql.Connection, timeout: number, log: Log): Promise<void> {
  try {
    await connection.query({ sql: "SET SESSION binlog_row_image = 'MINIMAL'", timeout });
  } catch (error) {
    if ((error as { errno?: unknown }).errno !== NOT_PERMITTED) throw error;
    log.debug('row-image-stays-full', { missing: 'SESSION_VARIABLES_ADMIN' });
  }
}

async function serverUuid(connection: mysql.Connection, timeout: number): Promise<string> {
  const [rows] = await connection.query({ sql: SERVER_UUID, timeout });
  return serverUuidIn(rows);
}
