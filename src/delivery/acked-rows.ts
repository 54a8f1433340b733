import type { Batch } from './batch.ts';
import type { BatchRow } from './batch-rows.ts';

/** Consecutive runs of a batch. `firstRow` is the place of the first one's first row in the batch. */
export interface BatchRuns {
  readonly batch: Batch;
  readonly firstRun: number;
  readonly endRun: number;
  readonly firstRow: number;
}

/** Runs of an acknowledged batch that are taken together. */
export interface BatchPart extends BatchRuns {
  readonly rows: number;
  /** Nothing of the batch is left behind it. */
  readonly isLast: boolean;
}

/** An acknowledged batch, and how much of it has been taken. */
interface Rest {
  readonly batch: Batch;
  run: number;
  row: number;
}

/**
 * Rows that are in Kafka and not yet retired. They are taken by transaction, oldest first, out of whatever batch they
 * lie in: the rows of a flush then lie next to one another in the table, and the checkpoint moves with every flush.
 *
 * Runs of a batch ascend by transaction: a lane is a FIFO, and transactions are routed in order.
 */
export class AckedRows {
  #rests: Rest[] = [];
  #count = 0;

  /** Rows that have not been taken. */
  get count(): number {
    return this.#count;
  }

  add(batch: Batch): void {
    this.#rests.push({ batch, run: 0, row: 0 });
    this.#count += batch.records;
  }

  /** What has not been taken. */
  *remaining(): Iterable<BatchRuns> {
    for (const { batch, run, row } of this.#rests) {
      yield { batch, firstRun: run, endRun: batch.runCount, firstRow: row };
    }
  }

  /** The same row by row. Slow: an object a row. */
  *rows(): Iterable<BatchRow> {
    for (const { batch, firstRun, endRun, firstRow } of this.remaining()) yield* batch.rows(firstRun, endRun, firstRow);
  }

  /** About `maxRows` rows; more only where one transaction has more. */
  take(maxRows: number): BatchPart[] {
    const through = this.#count <= maxRows ? Infinity : this.#transactionOfRow(maxRows);
    const parts: BatchPart[] = [];
    this.#rests = this.#rests.filter((rest) => {
      const part = takeThrough(rest, through);
      if (part === null) return true;
      this.#count -= part.rows;
      parts.push(part);
      return !part.isLast;
    });
    return parts;
  }

  /** The transaction of the `maxRows`th row when they are sorted by transaction. */
  #transactionOfRow(maxRows: number): number {
    const transactions = new Float64Array(this.#count);
    let filled = 0;
    for (const { batch, run } of this.#rests) {
      for (let i = run; i < batch.runCount; i++) {
        const { transaction, rows } = batch.run(i);
        transactions.fill(transaction, filled, (filled += rows));
      }
    }
    return transactions.sort()[maxRows - 1];
  }
}

function takeThrough(rest: Rest, through: number): BatchPart | null {
  const { batch, run: firstRun, row: firstRow } = rest;
  for (; rest.run < batch.runCount; rest.run++) {
    const { transaction, rows } = batch.run(rest.run);
    if (transaction > through) break;
    rest.row += rows;
  }
  if (rest.run === firstRun) return null;
  const isLast = rest.run === batch.runCount;
  return { batch, firstRun, endRun: rest.run, firstRow, rows: rest.row - firstRow, isLast };
}
