import type { Pool, PoolConnection } from 'mysql2/promise';

export interface RowsToInsert {
  readonly topic: string;
  readonly count: number;
  readonly table?: string;
  /** Default 10. */
  readonly aggregates?: number;
  /** Before the names of aggregates: a writer's own, so that ids and commits of each come in one order. */
  readonly prefix?: string;
  /** About so long; default 100. */
  readonly payloadBytes?: number;
  /** Default: all in one. */
  readonly perTransaction?: number;
}

const STATEMENT_ROWS = 500;
const STATEMENT_BYTES = 4 << 20;

/** Inserts rows whose payloads tell their number, and commits. */
export async function insertRows(pool: Pool, rows: RowsToInsert): Promise<void> {
  const { count, perTransaction = count } = rows;
  const connection = await pool.getConnection();
  try {
    for (let from = 0; from < count; from += perTransaction) {
      await connection.beginTransaction();
      await insertInto(connection, { ...rows, count: Math.min(perTransaction, count - from) }, from);
      await connection.commit();
    }
  } finally {
    connection.release();
  }
}

/** The same in a transaction of the caller's. `from` is the number of the first. */
export async function insertInto(connection: PoolConnection, rows: RowsToInsert, from = 0): Promise<void> {
  const { topic, count, table = 'outbox', aggregates = 10, prefix = 'aggregate', payloadBytes = 100 } = rows;
  const filler = 'x'.repeat(Math.max(0, payloadBytes - 20));
  const atOnce = Math.max(1, Math.min(STATEMENT_ROWS, Math.floor(STATEMENT_BYTES / payloadBytes)));
  for (let done = 0; done < count; done += atOnce) {
    const values = Array.from({ length: Math.min(atOnce, count - done) }, (_, i) => {
      const n = from + done + i;
      return [topic, `${prefix}-${n % aggregates}`, 'happened', `{"n": ${n}, "filler": "${filler}"}`];
    });
    await connection.query(`INSERT INTO ${table} (topic, aggregate_id, event_type, payload) VALUES ?`, [values]);
  }
}
