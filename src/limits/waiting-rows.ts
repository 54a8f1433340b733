import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { LimitSettings, OutboxSettings } from '../model/settings.ts';
import type { Session } from '../store/session.ts';

/** How much waits in one outbox, by the index (status, available_at, …) alone. */
export class WaitingRows {
  readonly #doing: string;
  readonly #count: string | null;
  readonly #oldest: string;

  constructor({ schema, table, columns }: OutboxSettings, { pendingRows }: LimitSettings) {
    const name = quoteTable(schema, table);
    const due = quoteIdentifier(columns.availableAt!);
    const waiting = `FROM ${name} WHERE ${quoteIdentifier(columns.status!)} = 'pending' AND ${due} <= UTC_TIMESTAMP(6)`;
    this.#doing = `counting what waits in ${name}`;
    this.#count =
      pendingRows === null
        ? null
        : `SELECT COUNT(*) AS pending FROM (SELECT 1 ${waiting} LIMIT ${pendingRows + 1}) AS waiting`;
    this.#oldest = `SELECT TIMESTAMPDIFF(MICROSECOND, ${due}, UTC_TIMESTAMP(6)) DIV 1000 AS age_ms ${waiting} ORDER BY ${due} LIMIT 1`;
  }

  async read(session: Session): Promise<{ pendingRows: number | null; oldestAgeMs: number | null }> {
    const [oldest] = await session.rows(this.#doing, this.#oldest);
    const oldestAgeMs = (oldest as typeof oldest | undefined) === undefined ? null : Number(oldest['age_ms']);
    if (this.#count === null) return { pendingRows: null, oldestAgeMs };
    const [counted] = await session.rows(this.#doing, this.#count);
    return { pendingRows: Number(counted['pending']), oldestAgeMs };
  }
}
