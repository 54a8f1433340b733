import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolConnection, RowDataPacket } from 'mysql2/promise';

const MOST_ROWS = 5;
const MOST_HELD_MS = 2_000;
const MOST_PAUSE_MS = 500;
const LOOK_ROWS = 50;

/**
 * An application that locks rows of its outbox table for a while: those that are waiting or claimed just then, as a page
 * of an admin does, and some of the newest, whatever became of them.
 */
export class RowHolder implements AsyncDisposable {
  /** So many times rows have been held. */
  holds = 0;
  readonly #pool: Pool;
  readonly #random: () => number;
  readonly #holding: Promise<void>;
  #isStopped = false;

  constructor(pool: Pool, random: () => number) {
    this.#pool = pool;
    this.#random = random;
    this.#holding = this.#run();
  }

  /** Nothing is held from then on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    await this.#holding;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      // A server that is down, or that has picked it as a deadlock's victim: nothing of it is missed.
      await this.#hold().catch(() => undefined);
      await sleep(this.#random() * MOST_PAUSE_MS);
    }
  }

  async #hold(): Promise<void> {
    const connection = await this.#pool.getConnection();
    try {
      await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
      const ids = await this.#some(connection);
      if (ids.length === 0) return;
      await connection.beginTransaction();
      await connection.query('SELECT id, status FROM outbox FORCE INDEX (PRIMARY) WHERE id IN (?) FOR UPDATE', [ids]);
      this.holds++;
      await sleep(this.#random() * MOST_HELD_MS);
    } finally {
      connection.destroy();
    }
  }

  async #some(connection: PoolConnection): Promise<unknown[]> {
    const [waiting] = await connection.query<RowDataPacket[]>(
      `SELECT id FROM outbox WHERE status IN ('processing', 'pending') LIMIT ${LOOK_ROWS}`,
    );
    const [newest] = await connection.query<RowDataPacket[]>(
      `SELECT id FROM outbox ORDER BY id DESC LIMIT ${MOST_ROWS}`,
    );
    const from = this.#random() < 0.7 && waiting.length > 0 ? waiting : newest;
    return from
      .filter(() => this.#random() < 0.5)
      .slice(0, MOST_ROWS)
      .map(({ id }) => id as unknown);
  }
}
