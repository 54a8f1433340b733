import type { PoolConnection, RowDataPacket } from 'mysql2/promise';
import { createBinlogSource, type BinlogSource } from '../../../src/binlog/binlog-source.ts';
import { RelayError, type Fault } from '../../../src/model/fault.ts';
import type { Log } from '../../../src/model/log.ts';
import { SHIPPED_COLUMNS } from '../../../src/model/outbox-columns.ts';
import type { Checkpoint, Gtid, GtidRun, Position } from '../../../src/model/position.ts';
import { Form, type Field, type OutboxRow } from '../../../src/model/row.ts';
import type { MysqlSettings, OutboxColumns, OutboxSettings, TopicRule } from '../../../src/model/settings.ts';
import type { Transaction } from '../../../src/model/source.ts';
import { outboxMigrations } from '../../../src/store/migrations.ts';
import type { DatabaseServer } from '../../stack/handles.ts';
import { logHead } from '../../stack/log-head.ts';
import { testBed, type TestBed } from '../../stack/test-bed.ts';

export interface ReadRow {
  readonly outbox: number;
  readonly id: string;
  readonly topic: string | null;
  readonly key: string | null;
  readonly eventType: string | null;
  /** Binary JSON as `json:` and hex. */
  readonly value: string | null;
  readonly headers: string | null;
  readonly idempotencyKey: string | null;
  readonly createdAtMs: number;
}

export interface ReadTransaction {
  readonly end: Position;
  readonly gtid: Gtid | null;
  readonly commitMicros: number;
  readonly rows: readonly ReadRow[];
  readonly undecodable: Fault | null;
}

export interface ReadLog {
  readonly transactions: readonly ReadTransaction[];
  readonly skipped: readonly GtidRun[];
  readonly reached: Position;
  readonly worthSaving: boolean;
}

export interface SourceOptions {
  readonly outboxes?: readonly OutboxSettings[];
  readonly mysql?: Partial<MysqlSettings>;
  readonly maxTransactionBytes?: number;
  readonly log?: Log;
}

/** A database with an outbox table as shipped, and sources that read what is written to it. */
export class BinlogBed implements AsyncDisposable {
  readonly bed: TestBed;
  readonly server: DatabaseServer | null;

  private constructor(bed: TestBed, server: DatabaseServer | null) {
    this.bed = bed;
    this.server = server;
  }

  /** On the shared server, or on one of the test's own, which goes with the bed. */
  static async open(server: DatabaseServer | null = null): Promise<BinlogBed> {
    const bed = new BinlogBed(await testBed(server === null ? {} : { mysql: server }), server);
    await bed.sql(
      outboxMigrations(bed.outbox())
        .map(({ sql }) => sql)
        .join(';'),
    );
    return bed;
  }

  outbox(table = 'outbox', columns: Partial<OutboxColumns> = {}, topic?: TopicRule): OutboxSettings {
    return {
      schema: this.bed.database,
      table,
      columns: { ...SHIPPED_COLUMNS, ...(table === 'outbox' ? {} : TAIL_ONLY), ...columns },
      topic: topic ?? { kind: 'column', column: 'topic' },
      retire: 'mark',
      validateJson: false,
      retention: null,
      limits: null,
    };
  }

  settings(change: Partial<MysqlSettings> = {}): MysqlSettings {
    return {
      ...this.bed.mysql,
      tls: null,
      serverId: this.bed.serverId,
      connectTimeoutMs: 5_000,
      queryTimeoutMs: 5_000,
      heartbeatMs: 1_000,
      database: this.bed.database,
      ...change,
    };
  }

  source({ outboxes, mysql, maxTransactionBytes, log }: SourceOptions = {}): BinlogSource {
    return createBinlogSource({
      mysql: this.settings(mysql),
      outboxes: outboxes ?? [this.outbox()],
      maxTransactionBytes: maxTransactionBytes ?? 256 * 1024 * 1024,
      log: log ?? silent,
    });
  }

  async sql(text: string, values: readonly unknown[] = []): Promise<RowDataPacket[]> {
    const [rows] = await this.bed.pool.query<RowDataPacket[]>(text, [...values]);
    return rows;
  }

  /** Statements of one session, whose settings do not outlive it. */
  async session(...statements: readonly string[]): Promise<void> {
    const connection = await this.bed.pool.getConnection();
    try {
      await connection.query(`USE ${this.bed.database}`);
      for (const statement of statements) await connection.query(statement);
    } finally {
      connection.destroy();
    }
  }

  connect(): Promise<PoolConnection> {
    return this.bed.pool.getConnection();
  }

  /** The end of the log now. */
  head(): Promise<Position> {
    return logHead((text) => this.sql(text));
  }

  /** What `work` writes to the log, as the source reads it. */
  async read(work: () => Promise<unknown>, options: SourceOptions = {}): Promise<ReadLog> {
    const from = await this.head();
    await work();
    return this.readFrom(from, options);
  }

  /** From there to what is the end of the log now; a stream that is to be asked for again is, as the engine does. */
  async readFrom(from: Position, options: SourceOptions = {}, source = this.source(options)): Promise<ReadLog> {
    const to = await this.head();
    const transactions: ReadTransaction[] = [];
    const skipped: GtidRun[] = [];
    let worthSaving = false;
    let reached = from;
    const end = AbortSignal.timeout(60_000);
    while (isBefore(reached, to)) {
      try {
        for await (const group of source.stream(checkpointAt(reached), end)) {
          for (const transaction of group.transactions) {
            skipped.push(...transaction.skipped);
            transactions.push(await plain(transaction));
          }
          skipped.push(...group.skipped);
          worthSaving ||= group.worthSaving;
          ({ reached } = group);
          if (!isBefore(reached, to)) break;
        }
      } catch (error) {
        if (!isAskAgain(error)) throw error;
      }
      if (end.aborted) throw new Error('the end of the log was not reached');
    }
    return { transactions, skipped, reached, worthSaving };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bed[Symbol.asyncDispose]();
    await this.server?.dispose();
  }
}

/** Tables of the tests' own have no columns that only statements need. */
const TAIL_ONLY = { claimedAt: null, claimedBy: null, attempts: null, lastError: null, publishedAt: null };

/** The columns must be asked for again, or the log be read ahead. */
function isAskAgain(error: unknown): boolean {
  return error instanceof RelayError && error.fault.code === 'MYSQL_SCHEMA' && error.fault.disposition === 'retry';
}

export function checkpointAt(position: Position): Checkpoint {
  return { position, gtidSet: null, lastBegin: null, lastGtid: null, lastCommitMicros: null };
}

export function isBefore(a: Position, b: Position): boolean {
  return a.file < b.file || (a.file === b.file && a.offset < b.offset);
}

export async function plain(transaction: Transaction): Promise<ReadTransaction> {
  const rows: ReadRow[] = [];
  const { end, gtid, commitMicros, undecodable } = transaction;
  for await (const cursor of transaction.pieces?.(AbortSignal.timeout(60_000)) ?? [transaction.rows()]) {
    while (cursor.next()) rows.push(plainRow(cursor.row));
  }
  return { end, gtid, commitMicros, rows, undecodable };
}

function plainRow(row: OutboxRow): ReadRow {
  const id = (BigInt(row.idHigh) << 32n) | BigInt(row.idLow);
  return {
    outbox: row.outbox,
    id: textOf(row.idBytes) ?? id.toString(),
    topic: textOf(row.topic),
    key: textOf(row.key),
    eventType: textOf(row.eventType),
    value: textOf(row.value),
    headers: textOf(row.headers),
    idempotencyKey: identityOf(row.idempotencyKey),
    createdAtMs: row.createdAtMs,
  };
}

function textOf(field: Field): string | null {
  if (field.form === Form.Null) return null;
  return field.form === Form.Json ? `json:${bytesOf(field).toString('hex')}` : bytesOf(field).toString('utf8');
}

/** In hexadecimal digits; the zeros that the log leaves out at the end of a UUID count as there. */
function identityOf(field: Field): string | null {
  const hex = bytesOf(field).toString('hex');
  if (field.form === Form.Uuid) return hex.padEnd(32, '0');
  return field.form === Form.Null ? null : hex;
}

function bytesOf({ buffer, start, end }: Field): Buffer {
  return buffer.subarray(start, end);
}

/** The key of each row of each transaction. */
export function keysOf({ transactions }: ReadLog): (string | null)[][] {
  return transactions.map(({ rows }) => rows.map(({ key }) => key));
}

/** An INSERT of rows with these aggregate ids. */
export function insertOf(...keys: readonly string[]): string {
  const values = keys.map((key) => `('orders', '${key}', '{"key": "${key}"}')`);
  return `INSERT INTO outbox (topic, aggregate_id, payload) VALUES ${values.join(', ')}`;
}

export const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};
