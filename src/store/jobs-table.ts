import { fault } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { JobProgress, JobSpec, JobState } from '../model/job.ts';
import type { Settings } from '../model/settings.ts';
import { jobProgressSchema, jobSpecSchema } from './jobs-schema.ts';
import type { Row, Session } from './session.ts';

/** A job as the table has it. Times are UTC, as the server writes them. */
export interface JobRecord {
  readonly id: bigint;
  readonly spec: JobSpec;
  readonly state: JobState;
  readonly progress: JobProgress | null;
  readonly createdAt: string;
  readonly createdBy: string;
  readonly startedAt: string | null;
  readonly updatedAt: string;
  readonly finishedAt: string | null;
  readonly error: string | null;
  /** Since it was made, since it was started, and since the last word of it, by the server's clock. */
  readonly ageMs: number;
  readonly startedMsAgo: number | null;
  readonly updatedMsAgo: number;
}

const COLUMNS = `id, CAST(spec AS CHAR) AS spec, state, CAST(progress AS CHAR) AS progress, created_at, created_by,
  started_at, updated_at, finished_at, error,
  TIMESTAMPDIFF(MICROSECOND, created_at, UTC_TIMESTAMP(6)) DIV 1000 AS age_ms,
  TIMESTAMPDIFF(MICROSECOND, started_at, UTC_TIMESTAMP(6)) DIV 1000 AS started_ms_ago,
  TIMESTAMPDIFF(MICROSECOND, updated_at, UTC_TIMESTAMP(6)) DIV 1000 AS updated_ms_ago`;
/** As long as its column. */
const ERROR_CHARACTERS = 1_000;

/** The jobs of this relay. All methods throw a `RelayError`; MYSQL_SCHEMA where the table has not been made yet. */
export class JobsTable {
  readonly #table: string;
  readonly #relay: string;

  constructor(settings: Settings) {
    this.#table = quoteTable(settings.mysql.database, 'cdc_relay_jobs');
    this.#relay = settings.relay.name;
  }

  /** `who`: user and host of the operating system. */
  async insert(session: Session, spec: JobSpec, who: string): Promise<bigint> {
    const doing = 'asking for a job';
    await session.change(doing, `INSERT INTO ${this.#table} (relay, kind, spec, created_by) VALUES (?, ?, ?, ?)`, [
      this.#relay,
      spec.kind,
      JSON.stringify(spec),
      who,
    ]);
    const [row] = await session.rows(doing, 'SELECT LAST_INSERT_ID() AS id');
    return BigInt(String(row['id']));
  }

  /** By the index (relay, state, id): what has been done is not looked at. */
  async next(session: Session): Promise<JobRecord | null> {
    const one = (state: JobState): string => `(SELECT id FROM ${this.#table} FORCE INDEX (waiting)
      WHERE relay = ? AND state = '${state}' ORDER BY id LIMIT 1)`;
    const [row] = (await session.rows(
      'looking for jobs',
      `SELECT ${COLUMNS} FROM ${this.#table} WHERE id = COALESCE(${one('running')}, ${one('queued')})`,
      [this.#relay, this.#relay],
    )) as (Row | undefined)[];
    return row === undefined ? null : recordOf(row);
  }

  async find(session: Session, id: bigint): Promise<JobRecord | null> {
    const [row] = (await session.rows(
      'looking for the job',
      `SELECT ${COLUMNS} FROM ${this.#table} WHERE id = ? AND relay = ?`,
      [id, this.#relay],
    )) as (Row | undefined)[];
    return row === undefined ? null : recordOf(row);
  }

  /** The last ones first. */
  async list(session: Session, limit: number): Promise<JobRecord[]> {
    const sql = `SELECT ${COLUMNS} FROM ${this.#table} WHERE relay = ? ORDER BY id DESC LIMIT ${limit}`;
    return (await session.rows('listing the jobs', sql, [this.#relay])).map(recordOf);
  }

  start(session: Session, id: bigint): Promise<boolean> {
    return this.#change(session, id, "state = 'running', started_at = UTC_TIMESTAMP(6)", [], ['queued']);
  }

  save(session: Session, id: bigint, progress: JobProgress): Promise<boolean> {
    return this.#change(session, id, 'progress = ?', [JSON.stringify(progress)], ['running']);
  }

  finish(session: Session, id: bigint, state: 'done' | 'failed', error: string | null): Promise<boolean> {
    const text = error?.slice(0, ERROR_CHARACTERS) ?? null;
    return this.#change(session, id, `${ended(state)}, error = ?`, [text], ['running']);
  }

  /** False: it has ended already, or there is none. */
  cancel(session: Session, id: bigint): Promise<boolean> {
    return this.#change(session, id, ended('cancelled'), [], ['queued', 'running']);
  }

  async #change(
    session: Session,
    id: bigint,
    changes: string,
    values: readonly unknown[],
    from: readonly JobState[],
  ): Promise<boolean> {
    const states = from.map((state) => `'${state}'`).join(', ');
    const { matched } = await session.change(
      'writing the job',
      `UPDATE ${this.#table} FORCE INDEX (PRIMARY) SET ${changes}, updated_at = UTC_TIMESTAMP(6)
       WHERE id = ? AND relay = ? AND state IN (${states})`,
      [...values, id, this.#relay],
    );
    return matched === 1;
  }
}

function ended(state: JobState): string {
  return `state = '${state}', finished_at = UTC_TIMESTAMP(6)`;
}

function recordOf(row: Row): JobRecord {
  const spec = jobSpecSchema.safeParse(JSON.parse(String(row['spec'])));
  const id = BigInt(String(row['id']));
  if (!spec.success) throw fault('MYSQL_SCHEMA', 'halt', `job ${id} of cdc_relay_jobs is of another version`);
  const progress = row['progress'];
  return {
    id,
    spec: spec.data,
    state: row['state'] as JobState,
    // Another version's: it is begun again.
    progress: typeof progress === 'string' ? (jobProgressSchema.safeParse(JSON.parse(progress)).data ?? null) : null,
    createdAt: String(row['created_at']),
    createdBy: String(row['created_by']),
    startedAt: textOrNull(row['started_at']),
    updatedAt: String(row['updated_at']),
    finishedAt: textOrNull(row['finished_at']),
    error: textOrNull(row['error']),
    ageMs: Number(row['age_ms']),
    startedMsAgo: row['started_ms_ago'] === null ? null : Number(row['started_ms_ago']),
    updatedMsAgo: Number(row['updated_ms_ago']),
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
