import { type Clock } from '../model/clock.ts';
import { fault } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
import type { Checkpoint } from '../model/position.ts';
import type { Settings } from '../model/settings.ts';
import type { FlushRequest, Leader, SavedOffsets, ServerFacts, Store } from '../model/store.ts';
import { Flush } from './flush.ts';
import { lead } from './leadership.ts';
import { readHead, readServerFacts } from './server.ts';
import { type Row, Session } from './session.ts';

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
  #session: Session | null = null;
  #uses = 0;
  #cancelClosing: (() => void) | null = null;
  #facts: ServerFacts | null = null;

  constructor(settings: Settings, clock: Clock, log: Log) {
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    this.#offsets = quoteTable(settings.mysql.database, 'cdc_relay_offsets');
    this.#flush = new Flush(settings);
  }

  async serverFacts(): Promise<ServerFacts> {
    const facts = await this.#use(readServerFacts);
    this.#facts = facts;
    return facts;
  }

  async head(): Promise<Checkpoint> {
    const facts = this.#facts ?? (await this.serverFacts());
    return this.#use((session) => readHead(session, facts));
  }

  async lead(signal: AbortSignal, onStandby: () => void): Promise<Leader> {
    const { mysql, relay } = this.#settings;
    const leader = await lead(mysql, relay, this.#clock, this.#log, signal, onStandby);
    // A flush of the term before may still be under way: its statements must not fall into this term's transactions.
    this.#session?.destroy();
    return leader;
  }

  async saved(): Promise<SavedOffsets | null> {
    const sql =
      'SELECT server_uuid, file, position, gtid_set, last_gtid, last_commit_us ' +
      `FROM ${this.#offsets} WHERE name = ?`;
    const [row] = await this.#use((session) =>
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
    const { matched } = await this.#use((session) =>
      session.change('saving the first position', sql, [
        ...[serverUuid, position.file, position.offset, gtidSet, position.file, position.offset],
        ...[this.#settings.relay.name, leader.epoch],
      ]),
    );
    if (matched !== 1) throw fault('LEADERSHIP_LOST', 'renew', 'another relay leads');
  }

  async flush<C extends Checkpoint>(leader: Leader, request: FlushRequest<C>): Promise<C | null> {
    return this.#use((session) => {
      if (leader.lost.aborted) throw fault('LEADERSHIP_LOST', 'renew', 'the leader lock is lost');
      if (this.#facts !== null && session.serverUuid !== this.#facts.serverUuid) {
        // The ids in hand are another server's: marking them here would lose this server's rows.
        throw fault('MYSQL_FOREIGN_SERVER', 'renew', 'the address answers as another server than at the start');
      }
      return this.#flush.run(session, leader, request);
    });
  }

  async outboxRows(outbox: number): Promise<{ any: boolean; pending: number | null }> {
    const { schema, table, columns } = this.#settings.outboxes[outbox];
    const name = quoteTable(schema, table);
    const doing = `looking at ${name}`;
    return this.#use(async (session) => {
      const any = (await session.rows(doing, `SELECT 1 FROM ${name} LIMIT 1`)).length > 0;
      if (columns.status === null) return { any, pending: null };
      const sql = `SELECT COUNT(*) AS pending FROM ${name} WHERE ${quoteIdentifier(columns.status)} = 'pending'`;
      const [row] = await session.rows(doing, sql);
      return { any, pending: Number(row['pending']) };
    });
  }

  close(): Promise<void> {
    this.#cancelClosing?.();
    this.#session?.destroy();
    return Promise.resolve();
  }

  async #use<T>(work: (session: Session) => T | Promise<T>): Promise<T> {
    this.#cancelClosing?.();
    this.#uses++;
    try {
      return await work(await this.#open());
    } finally {
      this.#uses--;
      // We close it before the server does: that would come with an error that nobody has asked for.
      const idleMs = this.#settings.relay.takeOverMs / 2;
      if (this.#uses === 0) this.#cancelClosing = this.#clock.after(idleMs, () => this.#session?.destroy());
    }
  }

  async #open(): Promise<Session> {
    const current = this.#usable();
    if (current !== null) return current;
    const opened = await Session.open(this.#settings.mysql, this.#log);
    await opened.endWhenSilentFor(this.#settings.relay.takeOverMs);
    // Somebody else may have been as quick: one connection is enough.
    const meanwhile = this.#usable();
    if (meanwhile === null) this.#session = opened;
    else opened.destroy();
    return meanwhile ?? opened;
  }

  #usable(): Session | null {
    return this.#session?.isUsable === true ? this.#session : null;
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
