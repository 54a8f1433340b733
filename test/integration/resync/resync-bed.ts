import { type ReportedJob, resyncJobSchema } from '../../../src/commands/resync-report.ts';
import { type ReadRecord, readRecords } from '../../stack/read-records.ts';
import type { RelayBed } from '../../stack/relay-bed.ts';
import { startCli } from '../../stack/relay-process.ts';
import { until } from '../../stack/until.ts';

const REPLAY_HEADER = 'cdc-relay-replay';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command on the bed's configuration, to its end. */
export async function command(bed: RelayBed, ...args: string[]): Promise<Ended> {
  await using process = await startCli(args, { config: bed.config() });
  const { code } = await process.exited;
  return { code, stdout: process.stdout(), stderr: process.stderr() };
}

/** `resync … --yes --json` to its end: the job as it was told last. */
export async function resynced(bed: RelayBed, ...args: string[]): Promise<ReportedJob> {
  const { code, stdout, stderr } = await command(bed, 'resync', ...args, '--yes', '--json');
  const told = stdout.trim().split('\n').at(-1)!;
  if (told === '') throw new Error(`resync ${args.join(' ')} ended with ${code}:\n${stderr}`);
  const { job } = resyncJobSchema.parse(JSON.parse(told));
  if (code !== (job.state === 'done' ? 0 : 1)) throw new Error(`resync ended with ${code}: ${told}\n${stderr}`);
  return job;
}

/** Asks for a job without anybody who watches it. */
export async function ask(bed: RelayBed, spec: object): Promise<number> {
  const kind = String((spec as { kind: unknown }).kind);
  await bed.sql('INSERT INTO cdc_relay_jobs (relay, kind, spec) VALUES (?, ?, ?)', [
    bed.servers.database,
    kind,
    JSON.stringify(spec),
  ]);
  const [row] = await bed.sql('SELECT MAX(id) AS id FROM cdc_relay_jobs');
  return Number(row['id']);
}

export const ALL = { outbox: null, ids: null, aggregate: null, topic: null, sinceMs: null, untilMs: null };

export async function stateOf(
  bed: RelayBed,
  job: number,
): Promise<{ state: string; progress: Record<string, unknown> }> {
  const [row] = await bed.sql('SELECT state, CAST(progress AS CHAR) AS progress FROM cdc_relay_jobs WHERE id = ?', [
    job,
  ]);
  return {
    state: String(row['state']),
    progress: (row['progress'] === null ? {} : JSON.parse(String(row['progress']))) as Record<string, unknown>,
  };
}

export function ended(bed: RelayBed, job: number, withinMs = 90_000): Promise<string> {
  const look = async (): Promise<string | false> => {
    const { state } = await stateOf(bed, job);
    return state !== 'queued' && state !== 'running' && state;
  };
  return bed.orTail(() => until(look, { withinMs, what: `the end of job ${job}` }));
}

export interface Told {
  readonly id: string;
  readonly key: string;
  readonly topic: string;
  readonly partition: number;
  /** Job that sent it again; null: a first delivery, or a repetition of it. */
  readonly job: string | null;
  readonly record: ReadRecord;
}

/** All records of the bed's topics, each partition's in order. */
export async function told(bed: RelayBed): Promise<Told[]> {
  const records = await readRecords(bed.servers.kafka, bed.topics);
  return records.map((record) => ({
    id: String(record.headers['id']),
    key: String(record.key),
    topic: record.topic,
    partition: record.partition,
    job: record.headers[REPLAY_HEADER] === undefined ? null : String(record.headers[REPLAY_HEADER]),
    record,
  }));
}

/** A record but for its place, and for the header that tells of the job. */
export function contentOf({ record }: Told): object {
  const headers = Object.fromEntries(Object.entries(record.headers).filter(([name]) => name !== REPLAY_HEADER));
  const { key, value, timestampMs, topic, partition } = record;
  return { key, value, timestampMs, topic, partition, headers };
}

/** Numbers in the table (ids) by header id. */
export async function rowIds(bed: RelayBed, table = 'outbox'): Promise<Map<string, number>> {
  const rows = await bed.sql(`SELECT id, BIN_TO_UUID(idempotency_key) AS header FROM ${table}`);
  return new Map(rows.map((row) => [String(row['header']), Number(row['id'])]));
}
