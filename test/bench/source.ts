import { parseArgs } from 'node:util';
import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise';
import { createBinlogSource } from '../../src/binlog/binlog-source.ts';
import type { Log } from '../../src/model/log.ts';
import { SHIPPED_COLUMNS } from '../../src/model/outbox-columns.ts';
import type { Position } from '../../src/model/position.ts';
import type { OutboxSettings } from '../../src/model/settings.ts';
import { outboxMigrations } from '../../src/store/migrations.ts';
import type { DatabaseServer } from '../stack/handles.ts';
import { startMysql } from '../stack/stack.ts';

/**
 * `node test/bench/source.ts`: reads a prepared log through the source and steps every row; nothing is published.
 * One JSON line per shape of transaction. `rowsPerCpuS`: by the CPU time of this process, which the server's sending
 * does not limit.
 */
const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '300000' },
    singles: { type: 'string', default: '60000' },
    rounds: { type: 'string', default: '2' },
  },
});

const OUTBOX: OutboxSettings = {
  schema: 'bench',
  table: 'outbox',
  columns: SHIPPED_COLUMNS,
  topic: { kind: 'column', column: 'topic' },
  retire: 'mark',
  validateJson: false,
  retention: null,
  limits: null,
};
const CLIENTS = 16;
const SILENT: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => SILENT,
};

interface Shape {
  readonly rowsPerTransaction: number;
  readonly rows: number;
  readonly from: Position;
}

await using server = await startMysql();
const shapes = await prepare(server);
for (let round = 0; round < Number(values.rounds); round++) for (const shape of shapes) await drain(server, shape);

async function prepare({ host, port, user, password }: DatabaseServer): Promise<Shape[]> {
  const pool = createPool({ host, port, user, password, connectionLimit: CLIENTS });
  try {
    await pool.query('CREATE DATABASE bench');
    for (const { sql } of outboxMigrations(OUTBOX)) await pool.query(sql);
    const bulk = { rowsPerTransaction: 500, rows: Number(values.rows), from: await head(pool) };
    await fill(pool, bulk.rows, bulk.rowsPerTransaction, 1);
    const single = { rowsPerTransaction: 1, rows: Number(values.singles), from: await head(pool) };
    await fill(pool, single.rows, single.rowsPerTransaction, CLIENTS);
    return [bulk, single];
  } finally {
    await pool.end();
  }
}

async function fill(pool: Pool, rows: number, rowsPerTransaction: number, clients: number): Promise<void> {
  let next = 0;
  const client = async () => {
    while (next < rows) {
      const first = next;
      next += rowsPerTransaction;
      const batch = Array.from({ length: rowsPerTransaction }, (_, n) => rowOf(first + n));
      await pool.query('INSERT INTO bench.outbox (topic, aggregate_id, payload) VALUES ?', [batch]);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
}

function rowOf(n: number): [string, string, string] {
  const order = {
    orderId: n,
    customer: `customer-${n % 977}`,
    status: 'CREATED',
    total: (n % 10_000) / 100 + 0.5,
    currency: 'EUR',
    createdAt: '2026-11-30T10:00:00.000Z',
    lines: [
      { sku: `SKU-${n % 333}`, qty: (n % 5) + 1, price: 19.99 },
      { sku: `SKU-${n % 131}`, qty: 1, price: 5.25 },
    ],
    note: 'x'.repeat(60),
  };
  return ['orders', `agg-${(n * 7919) % 1000}`, JSON.stringify(order)];
}

async function head(pool: Pool): Promise<Position> {
  const [[row]] = await pool.query<RowDataPacket[]>('SHOW BINARY LOG STATUS');
  return { file: String(row['File']), offset: Number(row['Position']) };
}

async function drain({ host, port, user, password }: DatabaseServer, shape: Shape): Promise<void> {
  const mysql = {
    ...{ host, port, user, password, tls: null, serverId: 4_711, database: 'relay' },
    ...{ connectTimeoutMs: 10_000, queryTimeoutMs: 10_000, heartbeatMs: 10_000 },
  };
  const source = createBinlogSource({ mysql, outboxes: [OUTBOX], maxTransactionBytes: 64 * 1024 * 1024, log: SILENT });
  const from = { position: shape.from, gtidSet: null, lastBegin: null, lastGtid: null, lastCommitMicros: null };
  let rows = 0;
  let began = 0;
  let cpu = process.cpuUsage();
  for await (const { transactions } of source.stream(from, new AbortController().signal)) {
    if (began === 0) {
      began = performance.now();
      cpu = process.cpuUsage();
    }
    for (const transaction of transactions) {
      const cursor = transaction.rows();
      while (cursor.next()) rows += 1;
    }
    if (rows >= shape.rows) break;
  }
  const { user: userMicros, system } = process.cpuUsage(cpu);
  const figures = {
    rowsPerTransaction: shape.rowsPerTransaction,
    rows,
    rowsPerS: Math.round((rows * 1000) / (performance.now() - began)),
    rowsPerCpuS: Math.round((rows * 1_000_000) / (userMicros + system)),
    rssBytes: process.memoryUsage.rss(),
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}
