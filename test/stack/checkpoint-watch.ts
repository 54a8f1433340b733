import { setTimeout as sleep } from 'node:timers/promises';
import type { RowDataPacket } from 'mysql2/promise';
import { comparePositions, formatPosition, type Position } from '../../src/model/position.ts';
import type { TestBed } from './test-bed.ts';

const EVERY_MS = 3;
/** What a log file may go on with between two transactions. */
const BETWEEN = /^(Gtid|Anonymous_Gtid|Gtid_tagged|Rotate|Stop|Previous_gtids|Format_desc)/;

/** Looks at the saved position all the time, and tells at the end whether it was ever where it may not be. */
export class CheckpointWatch implements AsyncDisposable {
  readonly #bed: TestBed;
  readonly seen: Position[] = [];
  #ended = false;
  readonly #watching: Promise<void>;

  constructor(bed: TestBed) {
    this.#bed = bed;
    this.#watching = this.#watch();
    this.#watching.catch(() => undefined);
  }

  /** Throws when the position went back, or was not between two transactions. */
  async expectSound(): Promise<void> {
    this.#ended = true;
    await this.#watching;
    let last: Position | null = null;
    for (const position of this.seen) {
      if (last !== null && comparePositions(position, last) < 0) {
        throw new Error(`the checkpoint went back from ${formatPosition(last)} to ${formatPosition(position)}`);
      }
      last = position;
      const [events] = await this.#bed.pool.query<RowDataPacket[]>('SHOW BINLOG EVENTS IN ? FROM ? LIMIT 1', [
        position.file,
        position.offset,
      ]);
      const type = events.at(0)?.['Event_type'] as string | undefined;
      if (type !== undefined && !BETWEEN.test(type)) {
        throw new Error(`the checkpoint ${formatPosition(position)} lies inside a transaction: ${type} comes next`);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    await this.#watching.catch(() => undefined);
  }

  async #watch(): Promise<void> {
    const connection = await this.#bed.pool.getConnection();
    try {
      while (!this.#ended) {
        const [rows] = await connection.query<RowDataPacket[]>('SELECT file, position FROM cdc_relay_offsets');
        for (const row of rows) {
          if (row['file'] === null) continue;
          const position = { file: String(row['file']), offset: Number(row['position']) };
          const last = this.seen.at(-1);
          if (last === undefined || comparePositions(position, last) !== 0) this.seen.push(position);
        }
        await sleep(EVERY_MS);
      }
    } finally {
      connection.release();
    }
  }
}
