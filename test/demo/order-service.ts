import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPool, type Pool, type PoolConnection, type PoolOptions, type ResultSetHeader } from 'mysql2/promise';
import type { Entry, Ledger } from './ledger.ts';
import { eventsOf, ORDERS } from './order-events.ts';

const WORKERS = 10;
/** One in so many transactions is refused (no stock, card declined) and rolled back after its rows were written. */
const REFUSED_EVERY = 17;

/**
 * An ordinary application: each transaction changes an order and writes what happened into the outbox. It knows nothing
 * of the relay and of Kafka.
 */
export class OrderService {
  readonly #pool: Pool;
  readonly #ledger: Ledger;
  readonly #ratePerS: number;
  #turn = 0;

  constructor(mysql: PoolOptions, ledger: Ledger, ratePerS: number) {
    this.#pool = createPool({ ...mysql, connectionLimit: WORKERS, charset: 'utf8mb4' });
    this.#ledger = ledger;
    this.#ratePerS = ratePerS;
  }

  async open(): Promise<void> {
    await this.#pool.query(
      'CREATE TABLE orders (id INT PRIMARY KEY, version INT UNSIGNED NOT NULL, event VARCHAR(32) NOT NULL)',
    );
    const orders = Array.from({ length: ORDERS }, (_, i) => [i + 1, 0, '']);
    await this.#pool.query('INSERT INTO orders (id, version, event) VALUES ?', [orders]);
  }

  /** Works at its rate for so long; late transactions are made up for. */
  async work(durationMs: number): Promise<void> {
    const startedMs = performance.now();
    await Promise.all(
      Array.from({ length: WORKERS }, async () => {
        for (;;) {
          const turn = ++this.#turn;
          const dueMs = (turn * 1000) / this.#ratePerS;
          if (dueMs > durationMs) return;
          const waitMs = startedMs + dueMs - performance.now();
          if (waitMs > 0) await sleep(waitMs);
          await this.#transaction(turn);
        }
      }),
    );
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #transaction(turn: number): Promise<void> {
    const connection = await this.#pool.getConnection();
    await connection.query('START TRANSACTION');
    const entries = await this.#change(connection, (turn * 7) % ORDERS, turn);
    if (turn % REFUSED_EVERY === 0) {
      await connection.query('ROLLBACK');
      this.#ledger.hasRolledBack(entries.map(({ id }) => id));
    } else {
      this.#ledger.begun(entries);
      await connection.query('COMMIT');
      this.#ledger.hasCommitted(entries, performance.now());
    }
    connection.release();
  }

  async #change(connection: PoolConnection, index: number, turn: number): Promise<Entry[]> {
    const order = index + 1;
    const events = eventsOf(order, turn);
    // The order's row stays locked until the end of the transaction: versions are in commit order.
    const [changed] = await connection.query<ResultSetHeader>(
      'UPDATE orders SET version = LAST_INSERT_ID(version + ?), event = ? WHERE id = ?',
      [events.length, events[0].type, order],
    );
    const key = `order-${order}`;
    const entries = events.map(({ topic }, i): Entry => {
      const sequence = changed.insertId - events.length + 1 + i;
      return { id: randomUUID(), topic, key, sequence, committedMs: NaN, receivedMs: NaN };
    });
    const rows = events.map(({ topic, type, payload }, i) => {
      const uuid = Buffer.from(entries[i].id.replaceAll('-', ''), 'hex');
      return [topic, key, type, payload, JSON.stringify(traceHeaders()), uuid];
    });
    await connection.query(
      'INSERT INTO outbox (topic, aggregate_id, event_type, payload, headers, idempotency_key) VALUES ?',
      [rows],
    );
    return entries;
  }
}

function traceHeaders(): Record<string, string> {
  const traceparent = `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;
  return { traceparent, service: 'orders' };
}
