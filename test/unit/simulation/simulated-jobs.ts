import type {
  Job,
  JobProgress,
  Jobs,
  JobSpec,
  JobState,
  ReplayFilter,
  ReplayKey,
  ReplayPage,
} from '../../../src/model/job.ts';
import type { RowCursor } from '../../../src/model/row.ts';
import type { RowId } from '../../../src/model/row-ids.ts';
import type { Leader } from '../../../src/model/store.ts';
import type { Life } from './life.ts';
import type { Server } from './server.ts';
import { cursorOf, scopeKeyOf, type TableRow } from './table.ts';

/** One look along the primary key. */
const PAGE_ROWS = 3;

/** A job as its table has it. */
export interface AskedJob {
  readonly id: bigint;
  readonly spec: JobSpec;
  state: JobState;
  progress: JobProgress | null;
}

/** What people have asked for, as one process of the relay sees it: over a connection of its own. */
export class SimulatedJobs implements Jobs {
  readonly #server: Server;
  readonly #life: Life;

  constructor(server: Server, life: Life) {
    this.#server = server;
    this.#life = life;
  }

  next(): Promise<Job | null> {
    return this.#life.ask('jobs', () => {
      const first = (state: JobState): AskedJob | undefined => this.#server.jobs.find((job) => job.state === state);
      const job = first('running') ?? first('queued');
      return job === undefined ? null : { ...job };
    });
  }

  start(leader: Leader, id: bigint): Promise<boolean> {
    return this.#change(leader, id, 'queued', (job) => (job.state = 'running'));
  }

  save(leader: Leader, id: bigint, progress: JobProgress): Promise<boolean> {
    return this.#change(leader, id, 'running', (job) => (job.progress = progress));
  }

  async finish(leader: Leader, id: bigint, state: 'done' | 'failed'): Promise<void> {
    await this.#change(leader, id, 'running', (job) => (job.state = state));
  }

  pendingRows(): Promise<number> {
    return this.#life.ask('jobs', () => this.#server.rows.filter((row) => this.#server.isDue(row)).length);
  }

  lastId(): Promise<bigint | null> {
    return this.#life.ask('jobs', () => this.#byId().at(-1)?.id ?? null);
  }

  replayPage(_outbox: number, filter: ReplayFilter, after: RowId | null, last: bigint | null): Promise<ReplayPage> {
    return this.#life.ask('jobs', () => {
      const behind = this.#byId().filter(
        ({ id }) => (after === null || id > BigInt(after)) && last !== null && id <= last,
      );
      const looked = behind.slice(0, PAGE_ROWS);
      const rows = looked.filter((row) => row.status === 'published' && isNamed(filter, row)).map(keyOf);
      return { rows, looked: looked.length, next: looked.length < PAGE_ROWS ? null : looked.at(-1)!.id };
    });
  }

  replayKeys(_outbox: number, ids: readonly RowId[]): Promise<readonly ReplayKey[]> {
    return this.#life.ask('jobs', () => this.#published(ids).map(keyOf));
  }

  replayRows(_outbox: number, ids: readonly RowId[]): Promise<RowCursor> {
    return this.#life.ask('jobs', () => cursorOf(this.#published(ids)));
  }

  close(): void {
    // Nothing is open.
  }

  #published(ids: readonly RowId[]): TableRow[] {
    return this.#server.rowsOf(ids).filter(({ status }) => status === 'published');
  }

  #byId(): TableRow[] {
    return this.#server.rows
      .filter((row) => row.entry.isVisible && this.#server.isThere(row))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  #change(leader: Leader, id: bigint, from: JobState, change: (job: AskedJob) => void): Promise<boolean> {
    return this.#server.transact(this.#life, leader, 'jobs', () => ({
      rows: [],
      apply: () => {
        const job = this.#server.jobs.find((asked) => asked.id === id);
        if (job?.state !== from) return false;
        change(job);
        return true;
      },
    }));
  }
}

/** Schedules name rows by their aggregate alone. */
export function isNamed({ aggregate }: ReplayFilter, { key }: TableRow): boolean {
  return aggregate === null || key === aggregate;
}

function keyOf(row: TableRow): ReplayKey {
  return { id: row.id, topic: Buffer.from(row.topic), key: scopeKeyOf(row), bytes: row.value.length };
}
