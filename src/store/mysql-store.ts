import { type Clock } from '../model/clock.ts';
import { fault } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
import type { Checkpoint } from '../model/position.ts';
import type { Settings } from '../model/settings.ts';
import type { RowId } from '../model/row-ids.ts';
import type { FlushRequest, FoundRows, Leader, SavedOffsets, ServerFacts, Store } from '../model/store.ts';
import { Flush } from './flush.ts';
import { lead } from './leadership.ts';
import { readHead, readServerFacts } from './server.ts';
import { OutboxSelect } from './outbox-select.ts';
import type { Row, Session } from './session.ts';
import { SessionSlot } from './session-slot.ts';

/**
 * The store over one connection for statements and the leader's own. The first is made when it is needed and closed
 * when it is not; like the leader's it ends with the take-over time: a frozen process must not keep the offsets row
 * locked, in the midst of a flush, from the one that takes over.
 */
export class MysqlStore implements Store {
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #offsets: string;
  readonly #flush: Flush;
  readonly #selects: readonly OutboxSelect[];
  /** For flushes and all that is asked between them. */
  readonly #statements: SessionSlot;
  /** For rows: a flush on its way must neither wait for them nor hold their locks. */
  readonly #reading: SessionSlot;
  #facts: ServerFacts | null = null;

  constructor(settings: Settings, clock: Clock, log: Log) {
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    this.#offsets = quoteTable(settings.mysql.database, 'cdc_relay_offsets');
    this.#flush = new Flush(settings);
    this.#selects = settings.outboxes.map((outbox, index) => new OutboxSelect(index, outbox));
    const options = { mysql: settings.mysql, takeOverMs: settings.relay.takeOverMs, clock, log };
    this.#statements = new SessionSlot(options);
    this.#reading = new SessionSlot(options);
  }

  async serverFacts(): Promise<ServerFacts> {
    const facts = await this.#statements.use(readServerFacts);
    this.#facts = facts;
    return facts;
  }

  async head(): Promise<Checkpoint> {
    const facts = this.#facts ?? (await this.serverFacts());
    return this.#statements.use((session) => readHead(session, facts));
  }

  async lead(signal: AbortSignal, onStandby: () => void): Promise<Leader> {
    const { mysql, relay } = this.#settings;
    const leader = await lead(mysql, relay, this.#clock, this.#log, signal, onStandby);
    // A flush of the term before may still be under way: its statements must not fall into this term's transactions.
    this.#statements.destroy();
    return leader;
  }

  async saved(): Promise<SavedOffsets | null> {
    const sql =
      'SELECT server_uuid, file, position, gtid_set, last_gtid, last_commit_us ' +
      `FROM ${this.#offsets} WHERE name = ?`;
    const [row] = await this.#statements.use((session) =>
      session.rows('reading the checkpoint', sql, [this.#settings.relay.name]),
    );
    const file = (row as Row | undefined)?.['file'];
    if (typeof file !== 'string') return null;
    return {
      serverUuid: String(row['server_uuid']),
      checkpoint: {
        position: { file, offset: Number(row['position']) },
        gtidSet: textOrNull(row['gtid_set']),
        lastGtid: textOrNull(row['last_gtid']),
        lastCommitMicros: row['last_commit_us'] === null ? null : Number(row['last_commit_us']),
      },
    };
  }

  async saveFirst(leader: Leader, { position, gtidSet }: Checkpoint, serverUuid: string): Promise<void> {
    const sql = `UPDATE ${this.#offsets} SET server_uuid = ?, file = ?, position = ?, gtid_set = ?, high_file = ?,
       high_position = ?, updated_at = UTC_TIMESTAMP(6) WHERE name = ? AND epoch = ?`;
    const { matched } = await this.#statements.use((session) =>
      session.change('saving the first position', sql, [
        ...[serverUuid, position.file, position.offset, gtidSet, position.file, position.offset],
        ...[this.#settings.relay.name, leader.epoch],
      ]),
    );
    if (matched !== 1) throw fault('LEADERSHIP_LOST', 'renew', 'another relay leads');
  }

  async flush<C extends Checkpoint>(leader: Leader, request: FlushRequest<C>): Promise<C | null> {
    return this.#statements.use((session) => {
      if (leader.lost.aborted) throw fault('LEADERSHIP_LOST', 'renew', 'the leader lock is lost');
      this.#mustBeKnown(session);
      return this.#flush.run(session, leader, request);
    });
  }

  readRows(outbox: number, ids: readonly RowId[], dueBeforeMs: number): Promise<FoundRows> {
    return this.#reading.use((session) => {
      this.#mustBeKnown(session);
      return this.#selects[outbox].read(session, ids, dueBeforeMs);
    });
  }

  async outboxRows(outbox: number): Promise<{ any: boolean; pending: number | null }> {
    const { schema, table, columns } = this.#settings.outboxes[outbox];
    const name = quoteTable(schema, table);
    const doing = `looking at ${name}`;
    return this.#statements.use(async (session) => {
      const any = (await session.rows(doing, `SELECT 1 FROM ${name} LIMIT 1`)).length > 0;
      if (columns.status === null) return { any, pending: null };
      const sql = `SELECT COUNT(*) AS pending FROM ${name} WHERE ${quoteIdentifier(columns.status)} = 'pending'`;
      const [row] = await session.rows(doing, sql);
      return { any, pending: Number(row['pending']) };
    });
  }

  close(): Promise<void> {
    this.#statements.close();
    this.#reading.close();
    return Promise.resolve();
  }

  /** The ids in hand are another server's: marking them here would lose this server's rows. */
  #mustBeKnown(session: Session): void {
    if (this.#facts === null || session.serverUuid === this.#facts.serverUuid) return;
    throw fault('MYSQL_FOREIGN_SERVER', 'renew', 'the address answers as another server than at the start');
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
