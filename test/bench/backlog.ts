import { randomBytes } from 'node:crypto';
import { type Connection, createPool, type PoolOptions } from 'mysql2/promise';
import { AGGREGATES, TOPIC } from './stand.ts';

/** For single-row transactions: so many commit at once, each for aggregates of its own: their order stays known. */
const CONNECTIONS = 25;

/** Inserts rows with the numbers from `first` on; the numbers of one aggregate rise in commit order. */
export async function loadBacklog(
  connection: Connection,
  pool: PoolOptions,
  first: number,
  rows: number,
  perTransaction: number,
): Promise<void> {
  if (perTransaction === 1) return loadSingle(pool, first, rows);
  const end = first + rows;
  for (let at = first; at < end; at += perTransaction) {
    const count = Math.min(perTransaction, end - at);
    await connection.query(INSERT_MANY, [Array.from({ length: count }, (_, i) => rowOf(at + i))]);
  }
}

const COLUMNS = '(topic, aggregate_id, payload, idempotency_key)';
const INSERT_MANY = `INSERT INTO outbox ${COLUMNS} VALUES ?`;
export const INSERT_ONE = `INSERT INTO outbox ${COLUMNS} VALUES (?, ?, ?, ?)`;

async function loadSingle(options: PoolOptions, first: number, rows: number): Promise<void> {
  const pool = createPool({ ...options, connectionLimit: CONNECTIONS });
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, worker) => {
      const connection = await pool.getConnection();
      for (let number = first + worker; number < first + rows; number += CONNECTIONS) {
        await connection.execute(INSERT_ONE, rowOf(number, worker));
      }
      connection.release();
    }),
  );
  await pool.end();
}

/** With a worker: its aggregates only. */
function rowOf(number: number, worker?: number): [string, string, string, Buffer] {
  const scattered = (number * 7919) % AGGREGATES;
  const aggregate = worker === undefined ? scattered : worker + CONNECTIONS * (scattered % (AGGREGATES / CONNECTIONS));
  return [TOPIC, `order-${aggregate}`, payload(number), randomBytes(16)];
}

/** An order's event of about 300 bytes. */
export function payload(number: number): string {
  return JSON.stringify({
    number,
    customer: `customer-${number % 977}`,
    status: 'CREATED',
    total: (number % 10_000) / 100 + 0.5,
    currency: 'EUR',
    createdAt: '2026-11-30T10:00:00.000Z',
    lines: [
      { sku: `SKU-${number % 333}`, quantity: (number % 5) + 1, price: 19.99 },
      { sku: `SKU-${number % 131}`, quantity: 1, price: 5.25 },
    ],
    note: 'x'.repeat(60),
  });
}
