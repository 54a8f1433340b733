import { type Desk, Refusal } from '../http/desk.ts';
import type { Log } from '../model/log.ts';
import { RelayError } from '../model/fault.ts';
import type { ConnectionCounts } from '../model/server-counts.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import { JobsTable } from '../store/jobs-table.ts';
import { readParked } from '../store/parked-facts.ts';
import { askToPause, askToResume } from '../store/pause.ts';
import { Session } from '../store/session.ts';
import { listFailed } from './failed-list.ts';
import { actedRow, type ActedRow, carryOut, laterPublished, namedRows } from './failed-plan.ts';
import { outboxesWithStatus, outboxName } from './option-values.ts';
import { ProblemError, problemOf } from './problem.ts';

/** Whoever asks waits for the answer, and somebody may ask often: what the database takes is bounded. */
const WITHIN_MS = 5_000;
const AT_ONCE = 2;
const PARKED_SHOWN = 50;

/** Each request has a connection of its own: nothing that people ask for is in the way of rows. */
export function httpDesk(settings: Settings, log: Log, counts?: ConnectionCounts): Desk {
  const mysql = {
    ...settings.mysql,
    connectTimeoutMs: Math.min(settings.mysql.connectTimeoutMs, WITHIN_MS),
    queryTimeoutMs: Math.min(settings.mysql.queryTimeoutMs, WITHIN_MS),
  };
  let under = 0;
  const within = async <T>(work: (session: Session) => Promise<T>): Promise<T> => {
    if (under >= AT_ONCE) throw new Refusal(429, 'others are asking the database already', 'ask again in a second');
    under++;
    try {
      const session = await Session.open(mysql, log, counts);
      try {
        return await work(session);
      } finally {
        session.destroy();
      }
    } catch (error) {
      throw refusalOf(error, settings);
    } finally {
      under--;
    }
  };
  const nothing = { topic: null, reason: null, since: null };
  return {
    failed: (limit) => {
      const outboxes = withStatus(settings);
      if (outboxes.length === 0) return Promise.resolve({ version: 1, rows: [], more: false });
      return within((session) => listFailed(session, outboxes, nothing, limit));
    },
    parked: () =>
      within(async (session) => {
        const { parked, total } = await readParked(session, settings, PARKED_SHOWN);
        return { version: 1, parked: [...parked], more: total > parked.length };
      }),
    act: (action, name, ids, who) =>
      within(async (session) => {
        const outbox = withStatus(settings).find((each) => outboxName(each) === name);
        if (outbox === undefined) throw new Refusal(400, 'outbox: no outbox of that name keeps a status');
        const plan = await namedRows(session, outbox, ids);
        const later = action === 'retry' ? await laterPublished([plan]) : null;
        const rows: ActedRow[] = plan.notFailed.map((id) => actedRow(plan, id, null, 'not-failed'));
        await carryOut(session, plan, { action, settings, who }, (id, row, outcome) => {
          rows.push(actedRow(plan, id, row, outcome));
        });
        return { version: 1, action, dryRun: false, laterPublished: later, rows, more: false };
      }),
    pause: (who) =>
      within(async (session) => {
        await askToPause(session, settings, who);
        return true;
      }),
    resume: () =>
      within(async (session) => {
        await askToResume(session, settings);
        return false;
      }),
    cancel: (id) =>
      within(async (session) => {
        const table = new JobsTable(settings);
        const job = await table.find(session, id);
        if (job === null) throw new Refusal(404, `there is no job ${id}`);
        const { progress } = job;
        if (progress !== null && 'hasBegun' in progress && progress.hasBegun && job.state === 'running') {
          throw new Refusal(409, `job ${id} cannot be cancelled any more: everything waits already, and is delivered`);
        }
        if (!(await table.cancel(session, id))) throw new Refusal(409, `job ${id} has ended before`);
      }),
  };
}

function withStatus(settings: Settings): readonly OutboxSettings[] {
  try {
    return outboxesWithStatus(settings, {});
  } catch {
    return [];
  }
}

function refusalOf(error: unknown, settings: Settings): unknown {
  if (error instanceof ProblemError) return new Refusal(400, error.problem.headline, error.problem.fix);
  if (!(error instanceof RelayError)) return error;
  const { headline, fix } = problemOf(error.fault, settings);
  return new Refusal(503, headline, fix);
}
