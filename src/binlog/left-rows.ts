import type { Log } from '../model/log.ts';
import type { SourceCounters } from './source-counters.ts';

/** A table that is full of delayed rows must not fill the log. */
const TELL_EVERY_MS = 60_000;
const REASONS = ['delayed', 'replaced'] as const;

/**
 * Tells of rows that the tail leaves pending in the table: for each reason at once the first time, then once a minute
 * at the most. `rows` counts from the start of the process.
 */
export class LeftRows {
  readonly #counters: Readonly<SourceCounters>;
  readonly #log: Log;
  readonly #told = REASONS.map((why) => ({ why, rows: 0, atMs: -Infinity }));

  constructor(counters: Readonly<SourceCounters>, log: Log) {
    this.#counters = counters;
    this.#log = log;
  }

  /** To be asked when a group has been routed: rows are counted as they are read. */
  tell(nowMs: number): void {
    for (const told of this.#told) {
      const rows = this.#counters[told.why];
      if (rows === told.rows || nowMs - told.atMs < TELL_EVERY_MS) continue;
      told.rows = rows;
      told.atMs = nowMs;
      this.#log.warn('rows-left-pending', { why: told.why, rows });
    }
  }
}
