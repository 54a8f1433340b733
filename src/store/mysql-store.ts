import { type Clock } from '../model/clock.ts';
import { type Fault, fault, RelayError } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
import type { ParkedEntry } from '../model/parked.ts';
import type { Checkpoint, Position } from '../model/position.ts';
import type { Field, RowCursor } from '../model/row.ts';
import { type MysqlCounts, newMysqlCounts } from '../model/server-counts.ts';
import type { RowId, RowIds } from '../model/row-ids.ts';
import type { Settings } from '../model/settings.ts';
import type {
  Candidate,
  FlushRequest,
  FoundRows,
  Leader,
  NewBeginning,
  Outcome,
  ReleasedClaims,
  RowFailure,
  SavedOffsets,
  ServerFacts,
  Store,
  SweepCursor,
  SweepPage,
} from '../model/store.ts';
import { Flush } from './flush.ts';
import { leaveHistory } from './history.ts';
import { KeySelect } from './key-select.ts';
import { lead } from './leadership.ts';
import { OffsetsRow } from './offsets-row.ts';
import { OutboxSelect } from './outbox-select.ts';
import { ParkedTable } from './parked-table.ts';
import { isPaused } from './pause.ts';
import { positionFault } from './position-check.ts';
import { relayTransaction } from './relay-transaction.ts';
import { writeFailures } from './row-failures.ts';
import { readHead, readLogEnd, readServerFacts } from './server.ts';
import { Session } from './session.ts';
import { SessionSlot } from './session-slot.ts';
import { sweptOutbox, type SweptOutbox } from './swept-outbox.ts';

/** A snapshot is asked for the next page of history at least so often. */
const SNAPSHOT_SILENCE_MS = 120_000;

/**
 * The store over a few connections and the leader's own. Each is made when it is needed and closed when it is not;
 * like the leader's it ends with the take-over time: a frozen process must not keep the offsets row locked, in the
 * midst of a flush, from the one that takes over.
 */
export class MysqlStore implements Store {
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #counts: MysqlCounts;
  readonly #offsets: OffsetsRow;
  readonly #parked: ParkedTable;
  readonly #flush: Flush;
  readonly #selects: readonly OutboxSelect[];
  readonly #keys: readonly KeySelect[];
  readonly #swept: readonly (SweptOutbox | null)[];
  /** For flushes and all that is asked between them. */
  readonly #statements: SessionSlot;
  /** For rows: a flush on its way must neither wait for them nor hold their locks. */
  readonly #reading: SessionSlot;
  /** For what waits, and what fails: it must not wait for a flush that waits for somebody's row. */
  readonly #sweeping: SessionSlot;
  #facts: ServerFacts | null = null;
  #mayNotAskLog = false;
  /** Where the leader lock is held; null before the first. */
  #leaderServer: string | null = null;

  constructor(settings: Settings, clock: Clock, log: Log, counts: MysqlCounts = newMysqlCounts()) {
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    this.#counts = counts;
    this.#offsets = new OffsetsRow(settings);
    this.#parked = new ParkedTable(settings);
    this.#flush = new Flush(settings, this.#offsets, this.#parked);
    this.#selects = settings.outboxes.map((outbox, index) => new OutboxSelect(index, outbox));
    this.#keys = settings.outboxes.map((outbox) => new KeySelect(outbox));
    this.#swept = settings.outboxes.map((outbox, index) => sweptOutbox(index, outbox, this.#offsets));
    const options = { mysql: settings.mysql, takeOverMs: settings.relay.takeOverMs, clock, log };
    this.#statements = new SessionSlot({ ...options, counts: counts.flush });
    this.#reading = new SessionSlot({ ...options, counts: counts.rows });
    this.#sweeping = new SessionSlot({ ...options, counts: counts.sweep });
  }

  async serverFacts(): Promise<ServerFacts> {
    const facts = await this.#statements.use(readServerFacts);
    if (this.#leaderServer !== null && facts.serverUuid !== this.#leaderServer) throw foreignServer();
    this.#facts = facts;
    return facts;
  }

  async head(): Promise<Checkpoint> {
    const facts = this.#facts ?? (await this.serverFacts());
    return this.#statements.use((session) => readHead(session, facts));
  }

  async lead(signal: AbortSignal, onStandby: () => void): Promise<Leader> {
    const { mysql, relay } = this.#settings;
    const leader = await lead(mysql, relay, this.#clock, this.#log, signal, onStandby, this.#counts.leader);
    // A write of the term before may still be under way: its statements must not fall into this term's transactions.
    // And none of them may go to the server that was behind the address then.
    this.#dropSessions();
    this.#facts = null;
    this.#leaderServer = leader.serverUuid;
    // What its term still asks for is of no use, and may take long to be given up: the next term waits for that.
    leader.lost.addEventListener('abort', () => this.#dropSessions(), { once: true });
    return leader;
  }

  isPaused(): Promise<boolean | null> {
    return this.#read((session) => isPaused(session, this.#settings));
  }

  async rested(leader: Leader): Promise<void> {
    await this.#write(this.#statements, leader, (session) => this.#offsets.rested(session, leader));
  }

  saved(): Promise<SavedOffsets | null> {
    return this.#statements.use((session) => this.#offsets.read(session));
  }

  async positionFault(checkpoint: Checkpoint): Promise<Fault | null> {
    const facts = this.#facts ?? (await this.serverFacts());
    return this.#statements.use((session) => {
      this.#mustBeKnown(session);
      return positionFault(session, facts, checkpoint);
    });
  }

  parked(): Promise<readonly ParkedEntry[]> {
    return this.#statements.use((session) => this.#parked.read(session));
  }

  async begin(leader: Leader, beginning: NewBeginning): Promise<void> {
    const { parkEverything: reason } = beginning;
    await this.#write(this.#statements, leader, (session) =>
      relayTransaction(session, this.#offsets, leader, 'saving where to begin', async () => {
        await this.#offsets.begin(session, leader, beginning);
        if (reason !== null) await this.#parked.write(session, { put: [everything(reason)], remove: [] });
        return true;
      }),
    );
  }

  async leaveHistory(leader: Leader, outbox: number): Promise<number> {
    const swept = this.#swept[outbox];
    if (swept === null) return 0;
    const snapshot = await Session.open(this.#settings.mysql, this.#log, this.#counts.history);
    try {
      await snapshot.endWhenSilentFor(SNAPSHOT_SILENCE_MS);
      return await this.#write(this.#sweeping, leader, (session) =>
        leaveHistory(snapshot, session, this.#offsets, leader, swept),
      );
    } finally {
      snapshot.destroy();
    }
  }

  flush<C extends Checkpoint>(leader: Leader, request: FlushRequest<C>): Promise<C | null> {
    return this.#write(this.#statements, leader, (session) => this.#flush.run(session, leader, request));
  }

  readRows(outbox: number, ids: readonly RowId[], dueBeforeMs: number): Promise<FoundRows> {
    return this.#reading.use((session) => {
      this.#mustBeKnown(session);
      return this.#selects[outbox].read(session, ids, dueBeforeMs);
    });
  }

  idempotencyKeys(outbox: number, ids: RowIds): Promise<ReadonlyMap<RowId, Field>> {
    return this.#reading.use((session) => {
      this.#mustBeKnown(session);
      return this.#keys[outbox].read(session, ids);
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

  async barrier(leader: Leader, high: Position | null): Promise<void> {
    await this.#write(this.#sweeping, leader, (session) =>
      relayTransaction(session, this.#offsets, leader, 'setting a barrier', async () => {
        if (high !== null) await this.#offsets.raiseHigh(session, leader, high);
        return true;
      }),
    );
  }

  fail(leader: Leader, failures: readonly RowFailure[]): Promise<readonly RowFailure[]> {
    return this.#write(this.#sweeping, leader, (session) =>
      writeFailures(session, this.#offsets, leader, failures, (outbox) => this.#sweptOf(outbox)),
    );
  }

  async logEnd(): Promise<Position | null> {
    if (this.#mayNotAskLog) return null;
    const facts = this.#facts ?? (await this.serverFacts());
    try {
      return await this.#read((session) => readLogEnd(session, facts));
    } catch (error) {
      const isDenied = error instanceof RelayError && error.fault.code === 'MYSQL_ACCESS_DENIED';
      // Who never reads the log may do without the right to ask for its end.
      if (!isDenied || this.#settings.sweep.mode !== 'sweep') throw error;
      this.#mayNotAskLog = true;
      return null;
    }
  }

  async dueRows(outbox: number, after: SweepCursor | null, limit: number): Promise<SweepPage> {
    const swept = this.#swept[outbox];
    if (swept === null) return { rows: [], next: null };
    return this.#read((session) => swept.select.dueRows(session, after, limit));
  }

  async dueIds(
    outbox: number,
    after: SweepCursor | null,
    limit: number,
    key: Buffer | null,
  ): Promise<{ ids: readonly RowId[]; next: SweepCursor | null }> {
    const swept = this.#swept[outbox];
    if (swept === null) return { ids: [], next: null };
    return this.#read((session) => swept.select.dueIds(session, after, limit, key));
  }

  candidates(outbox: number, ids: readonly RowId[]): Promise<readonly Candidate[]> {
    return this.#read((session) => this.#sweptOf(outbox).select.candidates(session, ids));
  }

  async nextDueMs(outbox: number): Promise<number | null> {
    const swept = this.#swept[outbox];
    return swept === null ? null : this.#read((session) => swept.select.nextDueMs(session));
  }

  claim(
    leader: Leader,
    outbox: number,
    ids: readonly RowId[],
  ): Promise<{ claimed: readonly RowId[]; locked: readonly RowId[] }> {
    return this.#write(this.#sweeping, leader, (session) => this.#sweptOf(outbox).claims.claim(session, leader, ids));
  }

  claimedRows(leader: Leader, outbox: number, ids: readonly RowId[]): Promise<RowCursor> {
    return this.#read((session) =>
      this.#selects[outbox].readWhere(session, ids, this.#sweptOf(outbox).claims.ours(leader)),
    );
  }

  writeBack(leader: Leader, outbox: number, outcome: Outcome): Promise<Outcome> {
    return this.#write(this.#sweeping, leader, (session) =>
      this.#sweptOf(outbox).claims.writeBack(session, leader, outcome),
    );
  }

  releaseClaims(leader: Leader, only: readonly Candidate[] | null): Promise<ReleasedClaims> {
    return this.#write(this.#sweeping, leader, async (session) => {
      const all = { released: 0, held: [] as Candidate[] };
      for (const [outbox, swept] of this.#swept.entries()) {
        if (swept === null) continue;
        const { select, claims } = swept;
        const ids = only?.filter((row) => row.outbox === outbox).map(({ id }) => id) ?? null;
        const { released, held } = await claims.releaseOthers(session, leader, ids);
        all.released += released;
        // Who held a row may have settled it meanwhile.
        all.held.push(...(await select.candidates(session, held, claims.others(leader))));
      }
      return all;
    });
  }

  isFailed(outbox: number, id: RowId): Promise<boolean> {
    return this.#read((session) => this.#sweptOf(outbox).select.isFailed(session, id));
  }

  close(): Promise<void> {
    for (const slot of [this.#statements, this.#reading, this.#sweeping]) slot.close();
    return Promise.resolve();
  }

  #dropSessions(): void {
    for (const slot of [this.#statements, this.#reading, this.#sweeping]) slot.destroy();
  }

  #read<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#sweeping.use((session) => {
      this.#mustBeKnown(session);
      return work(session);
    });
  }

  #write<T>(slot: SessionSlot, leader: Leader, work: (session: Session) => Promise<T>): Promise<T> {
    return slot.use((session) => {
      if (leader.lost.aborted) throw fault('LEADERSHIP_LOST', 'renew', 'the leader lock is lost');
      this.#mustBeKnown(session);
      return work(session);
    });
  }

  /** The ids in hand are another server's: marking them here would lose this server's rows. */
  #mustBeKnown(session: Session): void {
    if (this.#facts === null || session.serverUuid === this.#facts.serverUuid) return;
    throw foreignServer();
  }

  #sweptOf(outbox: number): SweptOutbox {
    const swept = this.#swept[outbox];
    if (swept !== null) return swept;
    const { schema, table } = this.#settings.outboxes[outbox];
    throw fault('INTERNAL', 'halt', `${schema}.${table} has no state of rows that could be written`);
  }
}

function foreignServer(): RelayError {
  return fault('MYSQL_FOREIGN_SERVER', 'renew', 'the address answers as another server than at the start');
}

function everything(reason: string): ParkedEntry {
  return { scope: { kind: 'everything' }, partitions: 0, dueInMs: 0, attempts: 0, reason, row: null };
}
