import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'mysql2/promise';
import { insertInto } from './outbox-rows.ts';

export interface LoadOptions {
  readonly topic: string;
  /** Each writes to its own aggregates. Default 4. */
  readonly writers?: number;
  readonly tables?: readonly string[];
  /** Rows of a transaction, at most; default 10. */
  readonly maxRows?: number;
  readonly payloadBytes?: number;
  /** Between two transactions of a writer; default 10. */
  readonly pauseMs?: number;
}

/**
 * An application that goes on until it is told to stop: transactions of some rows, one in eight rolled back. When the
 * server fails it does what an application does: it takes another connection and goes on with its next event.
 */
export class Load {
  committed = 0;
  failed = 0;
  #stopped = false;
  readonly #pool: Pool;
  readonly #options: LoadOptions;
  readonly #writers: Promise<unknown>;

  constructor(pool: Pool, options: LoadOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#writers = Promise.all(Array.from({ length: options.writers ?? 4 }, (_, writer) => this.#write(writer)));
  }

  /** Ends when the last transaction has. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#writers;
  }

  async #write(writer: number): Promise<void> {
    const { topic, tables = ['outbox'], maxRows = 10, payloadBytes = 200, pauseMs = 10 } = this.#options;
    for (let n = 0; !this.#stopped; n += maxRows) {
      const count = 1 + ((n / maxRows) % maxRows);
      try {
        const connection = await this.#pool.getConnection();
        try {
          await connection.beginTransaction();
          for (const table of tables) {
            await insertInto(connection, { topic, table, count, payloadBytes, prefix: `writer-${writer}` }, n);
          }
          if ((n / maxRows) % 8 === 7) await connection.rollback();
          else await connection.commit();
          this.committed += count;
          connection.release();
        } catch (error) {
          connection.destroy();
          throw error;
        }
      } catch {
        this.failed++;
        await sleep(50);
      }
      await sleep(pauseMs);
    }
  }
}
