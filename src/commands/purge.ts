import { systemClock } from '../model/clock.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import { PublishedRows } from '../retention/published-rows.ts';
import { type Transaction, walk } from '../retention/purge.ts';
import { DEADLOCK_TRIES, isDeadlock, rollBack } from '../store/relay-transaction.ts';
import { Session } from '../store/session.ts';
import type { CommandBody, CommandContext } from './command.ts';
import { confirmed } from './confirm.ts';
import { ExitCode } from './exit-codes.ts';
import { ageOption, type Options, outboxesWithStatus, outboxName, textOption } from './option-values.ts';
import { usageError } from './problem.ts';
import { Progress } from './progress.ts';
import { type PurgeReport, purgeText } from './purge-report.ts';
import { escapedText } from './text.ts';

interface Job {
  readonly outbox: OutboxSettings;
  readonly afterMs: number;
}

/** Removes published rows beside the leader, by the same rule: never what the checkpoint has not passed. */
export const purge: CommandBody = async (context) => {
  const { settings, log, options, print, note } = context;
  const jobs = jobsOf(settings, options);
  const dryRun = options['dryRun'] === true;
  const stop = new AbortController();
  let ended: ExitCode = ExitCode.Good;
  const onSignal = (signal: NodeJS.Signals): void => {
    ended = signal === 'SIGINT' ? ExitCode.Interrupted : ExitCode.Terminated;
    if (stop.signal.aborted) process.exit(ended);
    stop.abort();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const session = await Session.open(settings.mysql, log);
  try {
    const outboxes: PurgeReport['outboxes'] = [];
    for (const job of jobs) {
      if (!stop.signal.aborted) outboxes.push(await purgeOne(session, job, context, dryRun, stop.signal));
    }
    const report: PurgeReport = { version: 1, dryRun, interrupted: stop.signal.aborted, outboxes };
    print(options['json'] === true ? JSON.stringify(report) : purgeText(report));
    return ended;
  } catch (error) {
    if (error instanceof Declined) {
      note('nothing was done');
      return ExitCode.Failure;
    }
    throw error;
  } finally {
    session.destroy();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
};

/** Somebody was asked and did not say yes. */
class Declined extends Error {}

function jobsOf(settings: Settings, options: Options): Job[] {
  const afterMs = ageOption(options, 'olderThan', '--older-than');
  const marked = outboxesWithStatus(settings, options).filter(({ retire }) => retire === 'mark');
  if (marked.length === 0)
    throw usageError('published rows are deleted at once (retire: delete): there is nothing to purge');
  const jobs = marked.flatMap((outbox) => {
    const age = afterMs ?? outbox.retention?.afterMs;
    return age === undefined ? [] : [{ outbox, afterMs: age }];
  });
  if (jobs.length > 0) return jobs;
  const named = textOption(options, 'outbox') === null ? 'no outbox has' : 'this outbox has no';
  throw usageError(`how old? ${named} outboxes[].retention`, '--older-than 7d');
}

async function purgeOne(
  session: Session,
  { outbox, afterMs }: Job,
  { settings, options, note }: CommandContext,
  dryRun: boolean,
  signal: AbortSignal,
): Promise<PurgeReport['outboxes'][number]> {
  const rows = new PublishedRows(settings, outbox);
  const name = outboxName(outbox);
  const archive = outbox.retention?.archive ?? null;
  const done = { outbox: name, rows: 0, held: 0, archive: archive === null ? null : outboxName(archive) };
  const before = await rows.before(session, afterMs);
  if (before === null) return { ...done, before: null };
  const told = `${before.replace(' ', 'T')}Z`;
  const what = `${done.archive === null ? 'delete' : `move to ${escapedText(done.archive)}`} rows of ${escapedText(name)} published before ${told}`;
  if (!dryRun && !(await confirmed(options, what))) throw new Declined();
  const range = await rows.idRange(session);
  const progress = new Progress(note, options['quiet'] === true);
  try {
    const use = <T>(work: (session: Session) => Promise<T>): Promise<T> => work(session);
    const transaction = dryRun ? null : plainTransaction;
    for await (const step of walk(use, { rows, from: null, transaction, afterMs, clock: systemClock, signal })) {
      done.rows += step.removed;
      done.held += step.held;
      progress.update(step.last === null ? 1 : share(range, step.last), done.rows);
      // What comes in meanwhile is too young.
      if (range !== null && typeof step.last === 'bigint' && step.last >= range.to) break;
    }
  } finally {
    progress.stop();
  }
  return { ...done, before: told };
}

function share(range: { readonly from: bigint; readonly to: bigint } | null, at: bigint | string): number | null {
  if (range === null || typeof at !== 'bigint') return null;
  return Math.min(1, Number(at - range.from) / Math.max(1, Number(range.to - range.from)));
}

/** Not the leader's: no compare-and-set, so the offsets row is not held, and the relay is not in the way. */
const plainTransaction: Transaction = async (session, work) => {
  const doing = 'removing published rows';
  for (let tries = 1; ; tries++) {
    try {
      await session.change(doing, 'START TRANSACTION');
      const done = await work();
      await session.change(doing, done === null ? 'ROLLBACK' : 'COMMIT');
      return done;
    } catch (error) {
      await rollBack(session);
      if (!isDeadlock(error) || tries === DEADLOCK_TRIES) throw error;
    }
  }
};
