import { fault, RelayError } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { Checkpoint } from '../model/position.ts';
import { type RowId, rowIds } from '../model/row-ids.ts';
import type { Settings } from '../model/settings.ts';
import type { FlushRequest, Leader, RetireRows } from '../model/store.ts';
import { OutboxRetirement } from './outbox-retirement.ts';
import type { Session } from './session.ts';

/** A deadlock makes our transaction the victim now and then; it is simply made again. */
const DEADLOCK_TRIES = 5;

/**
 * The flush: one transaction whose first statement is the compare-and-set of the offsets row. One lock order for all
 * transactions of the relay, and the tail knows its own transactions by that first statement and skips them.
 */
export class Flush {
  readonly #offsets: string;
  readonly #name: string;
  readonly #retirements: readonly OutboxRetirement[];

  constructor(settings: Settings) {
    this.#offsets = quoteTable(settings.mysql.database, 'cdc_relay_offsets');
    this.#name = settings.relay.name;
    this.#retirements = settings.outboxes.map((outbox) => new OutboxRetirement(outbox));
  }

  /** Returns what was saved. Throws a `RelayError`; nothing is changed then, unless the connection died in COMMIT. */
  async run<C extends Checkpoint>(session: Session, leader: Leader, request: FlushRequest<C>): Promise<C | null> {
    let { retire, suspects } = request;
    for (let tries = 1; ; tries++) {
      try {
        return suspects.length === 0
          ? await this.#plain(session, leader, { ...request, retire, suspects })
          : await this.#aroundLocks(session, leader, { ...request, retire, suspects });
      } catch (error) {
        await rollBack(session);
        if (!(error instanceof RelayError)) throw error;
        if (error.fault.code === 'MYSQL_LOCK_WAIT' && retire.length > 0) {
          // Somebody holds one of these rows, and 1205 does not say which: look at each without waiting.
          suspects = merge(suspects, retire);
          retire = [];
        } else if (error.fault.code !== 'MYSQL_DEADLOCK' || tries === DEADLOCK_TRIES) {
          throw error;
        }
      }
    }
  }

  /** Nobody is known to hold a row: position first, then the rows. */
  async #plain<C extends Checkpoint>(session: Session, leader: Leader, request: FlushRequest<C>): Promise<C | null> {
    const checkpoint = request.checkpoint([]);
    if (checkpoint === null && request.retire.length === 0) return null;
    await session.change('flush', 'START TRANSACTION');
    await this.#save(session, leader, checkpoint, request.high);
    for (const rows of request.retire) await this.#retirements[rows.outbox].retire(session, rows.ids);
    await session.change('flush', 'COMMIT');
    return checkpoint;
  }

  /** Some rows may be held: lock what can be locked, leave the rest, and save the position that fits. */
  async #aroundLocks<C extends Checkpoint>(
    session: Session,
    leader: Leader,
    request: FlushRequest<C>,
  ): Promise<C | null> {
    await session.change('flush', 'START TRANSACTION');
    await this.#compareAndSet(session, leader);
    const held: RetireRows[] = [];
    let changed = request.retire.length > 0;
    for (const rows of request.retire) await this.#retirements[rows.outbox].retire(session, rows.ids);
    for (const rows of request.suspects) {
      const retirement = this.#retirements[rows.outbox];
      const { free, locked } = await retirement.lockWithoutWaiting(session, rows.ids);
      if (free.length > 0) {
        await retirement.retire(session, free);
        changed = true;
      }
      if (locked.length > 0) held.push({ outbox: rows.outbox, ids: locked });
    }
    const checkpoint = request.checkpoint(held);
    if (checkpoint !== null) await this.#save(session, leader, checkpoint, request.high);
    // While all that is left is held, looking at it leaves no trace in the log.
    await session.change('flush', changed || checkpoint !== null ? 'COMMIT' : 'ROLLBACK');
    return checkpoint;
  }

  async #save(
    session: Session,
    leader: Leader,
    checkpoint: Checkpoint | null,
    high: { file: string; offset: number },
  ): Promise<void> {
    if (checkpoint === null) {
      await this.#compareAndSet(session, leader);
      return;
    }
    const { position, gtidSet, lastGtid, lastCommitMicros } = checkpoint;
    const changed = await session.change(
      'saving the checkpoint',
      `UPDATE ${this.#offsets} SET file = ?, position = ?, gtid_set = ?, last_gtid = ?, last_commit_us = ?,
         high_file = ?, high_position = ?, updated_at = UTC_TIMESTAMP(6) WHERE name = ? AND epoch = ?`,
      [
        position.file,
        position.offset,
        gtidSet,
        lastGtid,
        lastCommitMicros,
        high.file,
        high.offset,
        this.#name,
        leader.epoch,
      ],
    );
    mustBeLeader(changed.matched);
  }

  async #compareAndSet(session: Session, leader: Leader): Promise<void> {
    const sql = `UPDATE ${this.#offsets} SET updated_at = UTC_TIMESTAMP(6) WHERE name = ? AND epoch = ?`;
    mustBeLeader((await session.change('flush', sql, [this.#name, leader.epoch])).matched);
  }
}

function mustBeLeader(matched: number): void {
  if (matched === 1) return;
  throw fault('LEADERSHIP_LOST', 'renew', 'the offsets row carries another epoch: another relay leads');
}

async function rollBack(session: Session): Promise<void> {
  if (!session.isUsable) return;
  await session.change('rolling back', 'ROLLBACK').catch(() => undefined);
}

function merge(a: readonly RetireRows[], b: readonly RetireRows[]): RetireRows[] {
  const merged = new Map<string, { outbox: number; ids: RowId[] }>();
  for (const { outbox, ids } of [...a, ...b]) {
    const kind = `${outbox} ${typeof [...ids][0]}`;
    merged.set(kind, { outbox, ids: [...(merged.get(kind)?.ids ?? []), ...ids] });
  }
  return [...merged.values()].map(({ outbox, ids }) => ({ outbox, ids: rowIds(ids) }));
}
