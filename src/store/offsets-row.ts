import { fault } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import { type Checkpoint, comparePositions, type Position } from '../model/position.ts';
import type { Settings } from '../model/settings.ts';
import type { Leader, NewBeginning, SavedOffsets } from '../model/store.ts';
import type { Row, Session } from './session.ts';

/**
 * This relay's row of the offsets table. Every write of it is a compare-and-set by the epoch and throws a `RelayError`
 * (LEADERSHIP_LOST) when the row carries another. All of them change the row, so that they are in the binlog.
 */
export class OffsetsRow {
  readonly #table: string;
  readonly #name: string;

  constructor(settings: Settings) {
    this.#table = quoteTable(settings.mysql.database, 'cdc_relay_offsets');
    this.#name = settings.relay.name;
  }

  /** Null before the first position was saved. */
  async read(session: Session): Promise<SavedOffsets | null> {
    const sql =
      'SELECT server_uuid, file, position, gtid_set, last_gtid, last_commit_us, last_file, last_begin, last_begin_us, ' +
      `high_file, high_position FROM ${this.#table} WHERE name = ?`;
    const [row] = (await session.rows('reading the checkpoint', sql, [this.#name])) as (Row | undefined)[];
    const position = row === undefined ? null : positionOf(row['file'], row['position']);
    if (row === undefined || position === null) return null;
    const high = positionOf(row['high_file'], row['high_position']);
    return {
      serverUuid: String(row['server_uuid']),
      checkpoint: {
        position,
        gtidSet: textOrNull(row['gtid_set']),
        lastBegin: lastBeginOf(row),
        lastGtid: textOrNull(row['last_gtid']),
        lastCommitMicros: row['last_commit_us'] === null ? null : Number(row['last_commit_us']),
      },
      high: high !== null && comparePositions(high, position) > 0 ? high : position,
    };
  }

  /** Locks the row, too: the first statement of every transaction of the relay. */
  compareAndSet(session: Session, leader: Leader): Promise<void> {
    return this.#update(session, leader, '', []);
  }

  /** A checkpoint of null leaves the one that is there. */
  async save(session: Session, leader: Leader, checkpoint: Checkpoint | null, high: Position): Promise<void> {
    const values = [high.file, high.offset];
    if (checkpoint === null) return this.#update(session, leader, 'high_file = ?, high_position = ?, ', values);
    const { position, gtidSet, lastBegin, lastGtid, lastCommitMicros } = checkpoint;
    await this.#update(
      session,
      leader,
      'file = ?, position = ?, gtid_set = ?, last_gtid = ?, last_commit_us = ?, last_file = ?, last_begin = ?, ' +
        'last_begin_us = ?, high_file = ?, high_position = ?, ',
      [
        ...[position.file, position.offset, gtidSet, lastGtid, lastCommitMicros],
        ...(lastBegin === null ? [null, null, null] : [lastBegin.file, lastBegin.offset, lastCommitMicros]),
        ...values,
      ],
    );
  }

  async begin(session: Session, leader: Leader, beginning: NewBeginning): Promise<void> {
    const { checkpoint, high, serverUuid } = beginning;
    await this.save(session, leader, checkpoint, high);
    await this.#update(session, leader, 'server_uuid = ?, ', [serverUuid]);
  }

  /** For those who have asked for a pause. */
  rested(session: Session, leader: Leader): Promise<void> {
    return this.#update(session, leader, 'rested_epoch = ?, ', [leader.epoch]);
  }

  /** Only in a transaction that has the row locked. */
  async raiseHigh(session: Session, leader: Leader, high: Position): Promise<void> {
    const sql = `SELECT high_file, high_position FROM ${this.#table} WHERE name = ?`;
    const [row] = await session.rows('reading the offsets row', sql, [this.#name]);
    const saved = positionOf(row['high_file'], row['high_position']);
    if (saved === null || comparePositions(high, saved) > 0) await this.save(session, leader, null, high);
  }

  async #update(session: Session, leader: Leader, changes: string, values: readonly unknown[]): Promise<void> {
    const { matched } = await session.change(
      'writing the offsets row',
      `UPDATE ${this.#table} SET ${changes}updated_at = ${LATER} WHERE name = ? AND epoch = ?`,
      [...values, this.#name, leader.epoch],
    );
    if (matched !== 1) {
      throw fault('LEADERSHIP_LOST', 'renew', 'the offsets row carries another epoch: another relay leads');
    }
  }
}

/** Never what it was, whatever the server's clock does: a row that stays the same is not in the binlog. */
const LATER = 'IF(updated_at = UTC_TIMESTAMP(6), updated_at + INTERVAL 1 MICROSECOND, UTC_TIMESTAMP(6))';

function positionOf(file: unknown, offset: unknown): Position | null {
  return typeof file === 'string' ? { file, offset: Number(offset) } : null;
}

/** Null, too, where a version that does not know it has saved since. */
function lastBeginOf(row: Row): Position | null {
  const { last_begin_us: ofBegin, last_commit_us: ofLast } = row;
  return ofBegin !== null && Number(ofBegin) === Number(ofLast)
    ? positionOf(row['last_file'], row['last_begin'])
    : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
