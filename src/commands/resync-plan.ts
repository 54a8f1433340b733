import type { ReplayFilter, ResyncFrom } from '../model/job.ts';
import type { RowId } from '../model/row-ids.ts';
import type { Settings } from '../model/settings.ts';
import type { Log } from '../model/log.ts';
import { systemClock } from '../model/clock.ts';
import { pairHash } from '../relay/replay.ts';
import { MysqlJobs } from '../store/jobs.ts';
import { JobsSelect } from '../store/jobs-select.ts';
import { JobsTable } from '../store/jobs-table.ts';
import type { Session } from '../store/session.ts';
import type { Progress } from './progress.ts';
import { EXACT_AGGREGATES, filterText, reconcileText, type ResyncPlan, utc } from './resync-report.ts';

/** Where nobody has measured it. */
const ASSUMED_ROWS_PER_SECOND = 5_000;
/** Rows whose sizes are looked at, of each page. */
const SAMPLED_ROWS = 10;
/** Jobs whose rates are looked at. */
const LAST_JOBS = 50;

export async function planReconcile(settings: Settings, log: Log, from: ResyncFrom): Promise<ResyncPlan> {
  const jobs = new MysqlJobs(settings, systemClock, log);
  try {
    const rows = await jobs.pendingRows();
    return { ...NOTHING, kind: 'reconcile', what: reconcileText(from), rows };
  } finally {
    jobs.close();
  }
}

/** Walks the outboxes by their primary keys, as the job will. Throws a `RelayError`. */
export async function planRepublish(
  session: Session,
  settings: Settings,
  filter: ReplayFilter,
  progress: Progress,
): Promise<ResyncPlan> {
  const topics = new Map<string, number>();
  const pairs = new Pairs();
  let rows = 0;
  let looked = 0;
  const sample = { rows: 0, bytes: 0 };
  const times: string[] = [];
  for (const [index, outbox] of settings.outboxes.entries()) {
    if (outbox.retire === 'delete') continue;
    const select = new JobsSelect(index, outbox);
    const last = await select.lastId(session);
    let after: RowId | null = null;
    const ends: RowId[] = [];
    do {
      const page = await select.page(session, filter, after, last);
      rows += page.rows.length;
      looked += page.looked;
      for (const { topic, key } of page.rows) {
        const name = topic?.toString() ?? '';
        topics.set(name, (topics.get(name) ?? 0) + 1);
        pairs.add(pairHash(topic, key));
      }
      if (page.rows.length > 0) {
        ends.splice(1, 1, page.rows[page.rows.length - 1].id);
        if (ends.length === 1) ends.unshift(page.rows[0].id);
        const step = Math.max(1, Math.floor(page.rows.length / SAMPLED_ROWS));
        const ids = page.rows.filter((_, i) => i % step === 0).map(({ id }) => id);
        for (const { bytes } of await select.keys(session, ids)) {
          sample.rows++;
          sample.bytes += bytes;
        }
      }
      progress.update(null, looked);
      after = page.next;
    } while (after !== null);
    for (const id of ends) {
      const created = await select.createdAt(session, id);
      if (created !== null) times.push(utc(created));
    }
  }
  times.sort();
  const measured = await measuredRate(session, settings);
  const rowsPerSecond = measured ?? ASSUMED_ROWS_PER_SECOND;
  return {
    ...NOTHING,
    what: filterText(filter),
    rows,
    topics: [...topics].map(([topic, count]) => ({ topic, rows: count })).sort((a, b) => b.rows - a.rows),
    aggregates: pairs.count,
    oldest: times.at(0) ?? null,
    newest: times.at(-1) ?? null,
    estimatedBytes: sample.rows === 0 ? 0 : Math.round((rows * sample.bytes) / sample.rows),
    estimatedMs: Math.round((rows * 1000) / rowsPerSecond),
    rowsPerSecond,
    isMeasured: measured !== null,
  };
}

const NOTHING: ResyncPlan = {
  ...{ version: 1, kind: 'republish', what: '', rows: 0, topics: [], aggregates: 0, oldest: null, newest: null },
  ...{ estimatedBytes: 0, estimatedMs: 0, rowsPerSecond: ASSUMED_ROWS_PER_SECOND, isMeasured: false },
};

/** Of the last job that has sent enough to tell. */
async function measuredRate(session: Session, settings: Settings): Promise<number | null> {
  for (const { progress } of await new JobsTable(settings).list(session, LAST_JOBS)) {
    if (progress === null || !('sent' in progress) || progress.sent < 1_000 || progress.sendingMs === 0) continue;
    return Math.max(1, Math.round((progress.sent * 1000) / progress.sendingMs));
  }
  return null;
}

/** How many different hashes: exact up to a million, then by linear counting over a bitmap of 2^24 bits. */
class Pairs {
  readonly #exact = new Set<number>();
  readonly #bits = new Uint32Array(2 ** 19);
  #ones = 0;

  add(hash: number): void {
    if (this.#exact.size <= EXACT_AGGREGATES) this.#exact.add(hash);
    const bit = hash >>> 8;
    const mask = 1 << (bit & 31);
    if ((this.#bits[bit >>> 5] & mask) !== 0) return;
    this.#bits[bit >>> 5] |= mask;
    this.#ones++;
  }

  get count(): number {
    if (this.#exact.size <= EXACT_AGGREGATES) return this.#exact.size;
    const bits = 2 ** 24;
    return Math.round(-bits * Math.log(Math.max(1, bits - this.#ones) / bits));
  }
}
