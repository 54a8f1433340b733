import type { Clock } from '../model/clock.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { Job, JobProgress, Jobs, ReplayFilter, ReplayKey, ReplayPage } from '../model/job.ts';
import type { Log } from '../model/log.ts';
import { COUNTED_ROWS } from '../model/progress.ts';
import type { RowCursor } from '../model/row.ts';
import type { RowId } from '../model/row-ids.ts';
import { ConnectionCounts } from '../model/server-counts.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import type { Leader } from '../model/store.ts';
import { JobsSelect } from './jobs-select.ts';
import { JobsTable } from './jobs-table.ts';
import { OffsetsRow } from './offsets-row.ts';
import { relayTransaction } from './relay-transaction.ts';
import type { Session } from './session.ts';
import { SessionSlot } from './session-slot.ts';

/** Over a connection of its own: long reads must not be in the way of a flush or of the sweep. */
export class MysqlJobs implements Jobs {
  readonly #settings: Settings;
  readonly #slot: SessionSlot;
  readonly #table: JobsTable;
  readonly #offsets: OffsetsRow;
  readonly #selects: readonly JobsSelect[];

  constructor(settings: Settings, clock: Clock, log: Log, counts = new ConnectionCounts()) {
    this.#settings = settings;
    const { mysql, relay } = settings;
    this.#slot = new SessionSlot({ mysql, takeOverMs: relay.takeOverMs, clock, log, counts });
    this.#table = new JobsTable(settings);
    this.#offsets = new OffsetsRow(settings);
    this.#selects = settings.outboxes.map((outbox, index) => new JobsSelect(index, outbox));
  }

  next(): Promise<Job | null> {
    return this.#slot.use((session) => this.#table.next(session));
  }

  start(leader: Leader, id: bigint): Promise<boolean> {
    return this.#write(leader, (session) => this.#table.start(session, id));
  }

  save(leader: Leader, id: bigint, progress: JobProgress): Promise<boolean> {
    return this.#write(leader, (session) => this.#table.save(session, id, progress));
  }

  async finish(leader: Leader, id: bigint, state: 'done' | 'failed', error: string | null): Promise<void> {
    await this.#write(leader, (session) => this.#table.finish(session, id, state, error));
  }

  pendingRows(): Promise<number> {
    return this.#slot.use(async (session) => {
      let pending = 0;
      for (const outbox of this.#settings.outboxes) pending += await pendingIn(session, outbox);
      return pending;
    });
  }

  lastId(outbox: number): Promise<bigint | null> {
    return this.#slot.use((session) => this.#selects[outbox].lastId(session));
  }

  replayPage(outbox: number, filter: ReplayFilter, after: RowId | null, last: bigint | null): Promise<ReplayPage> {
    return this.#slot.use((session) => this.#selects[outbox].page(session, filter, after, last));
  }

  replayKeys(outbox: number, ids: readonly RowId[]): Promise<readonly ReplayKey[]> {
    return this.#slot.use((session) => this.#selects[outbox].keys(session, ids));
  }

  replayRows(outbox: number, ids: readonly RowId[]): Promise<RowCursor> {
    return this.#slot.use((session) => this.#selects[outbox].rows(session, ids));
  }

  close(): void {
    this.#slot.close();
  }

  /** A transaction of the relay, by which its own tail knows it. */
  async #write(leader: Leader, work: (session: Session) => Promise<boolean>): Promise<boolean> {
    const isWritten = await this.#slot.use((session) =>
      relayTransaction(session, this.#offsets, leader, 'writing the job', async () =>
        (await work(session)) ? true : null,
      ),
    );
    return isWritten === true;
  }
}

/** Of an outbox whose rows say so. */
async function pendingIn(session: Session, { schema, table, columns, retire }: OutboxSettings): Promise<number> {
  const { status, availableAt } = columns;
  if (retire === 'keep' || status === null) return 0;
  const due = availableAt === null ? '' : ` AND ${quoteIdentifier(availableAt)} <= UTC_TIMESTAMP(6)`;
  const isWaiting = `${quoteIdentifier(status)} = 'pending'${due}`;
  const [row] = await session.rows(
    `counting rows of ${schema}.${table}`,
    `SELECT COUNT(*) AS pending FROM (SELECT 1 FROM ${quoteTable(schema, table)} WHERE ${isWaiting}
     LIMIT ${COUNTED_ROWS}) AS counted`,
  );
  return Number(row['pending']);
}
