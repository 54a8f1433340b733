import { JobsTable } from '../store/jobs-table.ts';
import { Session } from '../store/session.ts';
import type { CommandBody, CommandContext } from './command.ts';
import { ExitCode } from './exit-codes.ts';
import { countOption } from './option-values.ts';
import { type Problem, usageError } from './problem.ts';
import { attach, noSuchJob } from './resync-attach.ts';
import { jobsText, jobText, reportedJob } from './resync-report.ts';

const LISTED = 20;
const MOST_LISTED = 10_000;

export const resyncList: CommandBody = async (context) => {
  const { options, print } = context;
  const limit = countOption(options, 'limit', MOST_LISTED) ?? LISTED;
  return withJobs(context, async (session, table) => {
    const jobs = await table.list(session, limit);
    print(options['json'] === true ? JSON.stringify({ version: 1, jobs: jobs.map(reportedJob) }) : jobsText(jobs));
    return ExitCode.Good;
  });
};

export const resyncShow: CommandBody = async (context) => {
  const { options, print } = context;
  const id = idOf(context);
  return withJobs(context, async (session, table) => {
    const job = await table.find(session, id);
    if (job === null) return noSuchJob(id);
    print(options['json'] === true ? JSON.stringify({ version: 1, job: reportedJob(job) }) : jobText(job));
    return ExitCode.Good;
  });
};

/** What has been sent stays sent. A reconciliation that has begun ends by itself. */
export const resyncCancel: CommandBody = async (context) => {
  const { options, print } = context;
  const id = idOf(context);
  return withJobs(context, async (session, table) => {
    const before = await table.find(session, id);
    if (before === null) return noSuchJob(id);
    const hasBegun = before.progress !== null && 'hasBegun' in before.progress && before.progress.hasBegun;
    const cancelled = !hasBegun && (await table.cancel(session, id));
    const job = (await table.find(session, id)) ?? before;
    if (options['json'] === true) print(JSON.stringify({ version: 1, cancelled, job: reportedJob(job) }));
    else if (cancelled) print(`job ${id} is cancelled; what has been sent stays sent`);
    else if (hasBegun && job.state === 'running')
      print(`job ${id} cannot be cancelled any more: everything waits already, and is delivered`);
    else print(`job ${id} has ended before: ${job.state}`);
    return cancelled ? ExitCode.Good : ExitCode.Failure;
  });
};

export const resyncAttach: CommandBody = (context) => attach(idOf(context), context);

function idOf({ args }: CommandContext): bigint {
  if (args.length === 1 && /^\d{1,19}$/.test(args[0])) return BigInt(args[0]);
  throw usageError('which job?', 'its number; cdc-relay resync list');
}

async function withJobs(
  { settings, log }: CommandContext,
  work: (session: Session, table: JobsTable) => Promise<ExitCode | Problem>,
): Promise<ExitCode | Problem> {
  const session = await Session.open(settings.mysql, log);
  try {
    return await work(session, new JobsTable(settings));
  } finally {
    session.destroy();
  }
}
