import type { JobSpec, ReplayFilter, ResyncFrom } from '../model/job.ts';
import type { Position } from '../model/position.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import { checkPlace, placeOfGtids } from '../store/log-places.ts';
import { JobsTable } from '../store/jobs-table.ts';
import { idKind, isBackwards, parseId } from '../store/people-ids.ts';
import { Session } from '../store/session.ts';
import { parseTableName } from '../config/table-name.ts';
import type { CommandBody, CommandContext } from './command.ts';
import { confirmed } from './confirm.ts';
import { ExitCode } from './exit-codes.ts';
import { type Options, outboxName, textOption } from './option-values.ts';
import { usageError } from './problem.ts';
import { Progress } from './progress.ts';
import { attach, isLeaderless } from './resync-attach.ts';
import { planReconcile, planRepublish } from './resync-plan.ts';
import { planText, type ResyncPlan } from './resync-report.ts';
import { endOnSignals } from './signals.ts';
import { timeRange } from './time-range.ts';
import { whoAsks } from './who.ts';

const FROM = { fromPosition: '--from-position', fromGtid: '--from-gtid', fromHead: '--from-head' } as const;
const FILTERS = ['outbox', 'id', 'aggregate', 'topic', 'since', 'until'] as const;

/** Puts a job into the table and watches it. */
export const resync: CommandBody = async (context) => {
  const { settings, log, options, note, print } = context;
  const isRepublish = options['republish'] === true;
  checkUsage(options, isRepublish);
  // Until there is a job, which is then watched.
  const ignoreSignals = endOnSignals(() => note('interrupted: no job was made; run it again'));
  const session = await Session.open(settings.mysql, log);
  let id: bigint;
  let wasLeaderless: boolean;
  try {
    const spec: JobSpec = isRepublish
      ? { kind: 'republish', filter: await filterOf(session, settings, options) }
      : { kind: 'reconcile', from: await fromOf(session, settings, options) };
    const dryRun = options['dryRun'] === true;
    // What is asked for without a question is counted by the relay alone.
    if (dryRun || options['yes'] !== true) {
      const plan = await planOf(session, spec, context);
      if (options['json'] === true && dryRun) print(JSON.stringify(plan));
      else (dryRun ? print : note)(planText(plan));
      if (dryRun) return ExitCode.Good;
      if (!(await confirmed(options, isRepublish ? 'send them again' : 'begin'))) {
        note('nothing was done');
        return ExitCode.Failure;
      }
    }
    wasLeaderless = await isLeaderless(session, settings);
    id = await new JobsTable(settings).insert(session, spec, whoAsks());
  } finally {
    session.destroy();
    ignoreSignals();
  }
  note(`job ${id}`);
  return attach(id, context, wasLeaderless);
};

function checkUsage(options: Options, isRepublish: boolean): void {
  const froms = Object.entries(FROM).filter(([name]) => options[name] !== undefined);
  const filters = FILTERS.filter((name) => options[name] !== undefined);
  if (isRepublish && froms.length > 0) throw usageError(`${froms[0][1]} goes without --republish`);
  if (!isRepublish && filters.length > 0) throw usageError(`--${filters[0]} goes with --republish`);
  if (froms.length > 1) throw usageError(`${froms.map(([, flag]) => flag).join(' and ')}: one of them`);
}

async function planOf(
  session: Session,
  spec: JobSpec,
  { settings, log, note, options }: CommandContext,
): Promise<ResyncPlan> {
  if (spec.kind === 'reconcile') return planReconcile(settings, log, spec.from);
  const progress = new Progress(note, options['quiet'] === true || options['json'] === true);
  try {
    return await planRepublish(session, settings, spec.filter, progress);
  } finally {
    progress.stop();
  }
}

async function fromOf(session: Session, settings: Settings, options: Options): Promise<ResyncFrom> {
  const place = textOption(options, 'fromPosition');
  const gtidSet = textOption(options, 'fromGtid');
  if (place !== null) {
    const position = positionOf(place);
    await checkPlace(session, position);
    return { at: 'position', ...position, gtidSet: null };
  }
  if (gtidSet !== null) {
    const set = gtidSet.replaceAll(/\s/g, '');
    // Such as a variable of the shell that is not there: it would lead to the beginning of the log.
    if (set === '') throw usageError('--from-gtid: the set is empty');
    return { at: 'position', ...(await placeOfGtids(session, set)), gtidSet: set };
  }
  const kept = settings.outboxes.filter(({ retire }) => retire === 'keep');
  if (options['fromHead'] !== true && kept.length > 0) {
    throw usageError(
      `${kept.map(outboxName).join(', ')} has retire: keep: its rows say nothing of their state, so nobody can say which are pending`,
      '--from-position <file:offset> sends its rows from there again; --from-head leaves out what has not been read yet',
    );
  }
  return { at: 'head' };
}

/** `binlog.000127:88213004`. */
function positionOf(text: string): Position {
  const match = /^(.+):(\d{1,15})$/.exec(text);
  if (match === null) throw usageError('--from-position: expected file:offset, such as binlog.000127:88213004');
  return { file: match[1], offset: Number(match[2]) };
}

async function filterOf(session: Session, settings: Settings, options: Options): Promise<ReplayFilter> {
  const outboxes = replayable(settings, textOption(options, 'outbox'));
  const named = textOption(options, 'outbox') === null ? null : outboxName(outboxes[0]);
  const times = await timeRange(session, options);
  const isTimed = times.sinceMs !== null || times.untilMs !== null;
  const untimed = outboxes.find(({ columns }) => isTimed && columns.createdAt === null);
  if (untimed !== undefined) {
    throw usageError(`${outboxName(untimed)} has no column that says when a row was made`, '--id, or --outbox another');
  }
  const { aggregate, topic } = { aggregate: textOption(options, 'aggregate'), topic: textOption(options, 'topic') };
  return { outbox: named, ids: await idsOf(session, outboxes, options), aggregate, topic, ...times };
}

/** Outboxes whose published rows are still there. */
function replayable(settings: Settings, named: string | null): OutboxSettings[] {
  const all = settings.outboxes.filter(({ retire }) => retire !== 'delete');
  if (all.length === 0) throw usageError('published rows are deleted at once (retire: delete): none can be sent again');
  if (named === null) return all;
  const name = parseTableName(named);
  const schema = name?.schema ?? settings.mysql.database;
  const found = all.filter((outbox) => outbox.schema === schema && outbox.table === name?.table);
  if (found.length > 0) return found;
  throw usageError(
    '--outbox: no outbox of that name whose published rows stay',
    `one of ${all.map(outboxName).join(', ')}`,
  );
}

/** `81..120`, or one id. */
async function idsOf(
  session: Session,
  outboxes: readonly OutboxSettings[],
  options: Options,
): Promise<ReplayFilter['ids']> {
  const text = textOption(options, 'id');
  if (text === null) return null;
  if (outboxes.length > 1) {
    throw usageError(
      'ids name rows of one outbox, and there are several',
      `--outbox ${outboxes.map(outboxName).join(' or ')}`,
    );
  }
  const [from, to = from] = text.split('..');
  const kind = await idKind(session, outboxes[0]);
  const [first, last] = [from, to].map((id) => parseId(kind, id));
  if (first === null || last === null || text.split('..').length > 2) {
    throw usageError('--id: expected an id, or a range A..B');
  }
  if (isBackwards(kind, first, last)) throw usageError('--id: the range ends before it begins: no row is in it');
  return { from, to };
}
