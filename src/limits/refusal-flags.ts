import { quoteTable } from '../model/identifier.ts';
import type { Settings } from '../model/settings.ts';
import type { Leader } from '../model/store.ts';
import { OffsetsRow } from '../store/offsets-row.ts';
import { relayTransaction } from '../store/relay-transaction.ts';
import type { Session } from '../store/session.ts';

export interface Refusal {
  readonly outbox: string;
  /** Null: rows are welcome. */
  readonly reason: string | null;
  readonly validMs: number;
}

/** `cdc_relay_limits`: what an application reads before it inserts. */
export class RefusalFlags {
  readonly #table: string;
  readonly #relay: string;
  readonly #offsets: OffsetsRow;
  readonly #leader: Leader;

  constructor(settings: Settings, leader: Leader) {
    this.#table = quoteTable(settings.mysql.database, 'cdc_relay_limits');
    this.#relay = settings.relay.name;
    this.#offsets = new OffsetsRow(settings);
    this.#leader = leader;
  }

  /**
   * Throws a `RelayError` at once when somebody holds the flag (an application that read it with a lock): while it waited
   * it would keep the offsets row from the flush.
   */
  async put(session: Session, { outbox, reason, validMs }: Refusal): Promise<void> {
    const doing = `writing the limit flag of ${outbox}`;
    await relayTransaction(session, this.#offsets, this.#leader, doing, async () => {
      await session.rows(doing, `SELECT refuse FROM ${this.#table} WHERE outbox = ? FOR UPDATE NOWAIT`, [outbox]);
      return session.change(
        doing,
        `INSERT INTO ${this.#table} (outbox, relay, refuse, reason, valid_until)
         VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
         ON DUPLICATE KEY UPDATE since = IF(refuse = VALUES(refuse), since, UTC_TIMESTAMP(6)), relay = VALUES(relay),
           refuse = VALUES(refuse), reason = VALUES(reason), valid_until = VALUES(valid_until)`,
        [outbox, this.#relay, reason === null ? 0 : 1, reason, Math.round(validMs * 1000)],
      );
    });
  }

  /** Takes back flags of this relay for outboxes that it keeps none for any more. */
  async removeOthers(session: Session, kept: readonly string[]): Promise<void> {
    const doing = 'looking for old limit flags';
    const rows = await session.rows(doing, `SELECT outbox FROM ${this.#table} WHERE relay = ?`, [this.#relay]);
    for (const outbox of rows.map((row) => String(row['outbox']))) {
      if (kept.includes(outbox)) continue;
      await relayTransaction(session, this.#offsets, this.#leader, doing, () =>
        session.change(doing, `DELETE FROM ${this.#table} WHERE outbox = ?`, [outbox]),
      );
    }
  }
}
