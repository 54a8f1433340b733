import { tmpdir } from 'node:os';
import { parseTableName } from '../config/table-name.ts';
import { TopicReader } from '../kafka/topic-reader.ts';
import type { Settings } from '../model/settings.ts';
import { idKind, isBackwards, parseId } from '../store/people-ids.ts';
import { Session } from '../store/session.ts';
import { SpillError } from '../verify/buckets.ts';
import { type AskedRange, verify as compareAll } from '../verify/verify.ts';
import type { CommandBody } from './command.ts';
import { ExitCode } from './exit-codes.ts';
import { type Options, outboxName, textOption } from './option-values.ts';
import { ProblemError, usageError } from './problem.ts';
import { Progress } from './progress.ts';
import { escapedText } from './text.ts';
import { timeRange } from './time-range.ts';
import { verifyReport, verifyText } from './verify-report.ts';

/** Findings of each kind that are kept. */
const KEPT_FINDINGS = 100;

/** Proves delivery: what the tables call published against what the topics hold. Reads only. */
export const verify: CommandBody = async ({ settings, log, options, print, note }) => {
  const { chosen, skipped } = outboxesOf(settings, options);
  const session = await Session.open(settings.mysql, log);
  const reader = new TopicReader(settings.kafka, log);
  const isQuiet = options['quiet'] === true;
  let progress: Progress | null = null;
  let shown = '';
  const show = (what: string, done: number | null, count: number): void => {
    if (what !== shown) {
      progress?.stop();
      note(what);
      progress = new Progress(note, isQuiet);
      shown = what;
    }
    progress?.update(done, count);
  };
  try {
    const range = await timesOf(session, options);
    const outboxes = [];
    for (const index of chosen) {
      outboxes.push({ index, range: { ...range, ...(await idsOf(session, settings, index, chosen.length, options)) } });
    }
    const verified = await compareAll({
      ...{ settings, session, reader, outboxes, limit: KEPT_FINDINGS },
      onlyTopic: textOption(options, 'topic'),
      onRows: (index, rows, done) => show(`reading ${escapedText(outboxName(settings.outboxes[index]))}`, done, rows),
      onRecords: (records, done) => show('reading the topics', done, records),
    });
    (progress as Progress | null)?.stop();
    progress = null;
    const report = verifyReport(verified, settings, skipped);
    print(options['json'] === true ? JSON.stringify(report) : verifyText(report));
    return report.ok ? ExitCode.Good : ExitCode.Failure;
  } catch (error) {
    if (!(error instanceof SpillError)) throw error;
    throw new ProblemError({
      exitCode: ExitCode.Failure,
      headline: `${error.message}: ${error.code} in ${tmpdir()}`,
      effect: 'nothing was compared to its end',
      fix: 'a directory with room (about 180 bytes a row) in TMPDIR; or a smaller range',
    });
  } finally {
    (progress as Progress | null)?.stop();
    reader.close();
    session.destroy();
  }
};

function outboxesOf(settings: Settings, options: Options): { chosen: number[]; skipped: string[] } {
  const named = textOption(options, 'outbox');
  const name = named === null ? null : parseTableName(named);
  const all = [...settings.outboxes.entries()].filter(([, { schema, table }]) => {
    if (named === null) return true;
    return table === name?.table && schema === (name.schema ?? settings.mysql.database);
  });
  if (all.length === 0) {
    throw usageError('--outbox: no outbox of that name', `one of ${settings.outboxes.map(outboxName).join(', ')}`);
  }
  const chosen = all.filter(([, { retire }]) => retire !== 'delete').map(([index]) => index);
  const skipped = all.filter(([, { retire }]) => retire === 'delete').map(([, outbox]) => outboxName(outbox));
  if (chosen.length === 0) {
    throw usageError(
      `${skipped.map((each) => escapedText(each)).join(', ')}: nothing is left to compare with: rows are deleted when they are sent`,
      'outboxes[].retire: mark (with retention) or keep leaves rows that can be verified',
    );
  }
  for (const index of chosen) {
    const { retire, columns } = settings.outboxes[index];
    if (retire === 'keep' && columns.createdAt === null) {
      throw usageError(
        `${escapedText(outboxName(settings.outboxes[index]))}: without status and createdAt nothing tells which rows were sent`,
        'outboxes[].columns.createdAt',
      );
    }
  }
  return { chosen, skipped };
}

async function idsOf(
  session: Session,
  settings: Settings,
  index: number,
  outboxes: number,
  options: Options,
): Promise<Pick<AskedRange, 'fromId' | 'toId'>> {
  const [from, to] = [textOption(options, 'fromId'), textOption(options, 'toId')];
  if (from === null && to === null) return { fromId: null, toId: null };
  const outbox = settings.outboxes[index];
  if (outboxes > 1) throw usageError('ids name rows of one outbox, and there are several', '--outbox schema.table');
  const kind = await idKind(session, outbox);
  const parse = (text: string | null, flag: string) => {
    if (text === null) return null;
    const id = parseId(kind, text);
    if (id === null) throw usageError(`${flag}: ${escapedText(text)} is no id of ${escapedText(outboxName(outbox))}`);
    return id;
  };
  const ids = { fromId: parse(from, '--from-id'), toId: parse(to, '--to-id') };
  if (ids.fromId !== null && ids.toId !== null && isBackwards(kind, ids.fromId, ids.toId)) {
    throw usageError('--to-id is before --from-id: no row is between them');
  }
  return ids;
}

async function timesOf(session: Session, options: Options): Promise<Pick<AskedRange, 'since' | 'until'>> {
  const { sinceMs, untilMs } = await timeRange(session, options);
  const text = (ms: number | null): string | null =>
    ms === null ? null : new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
  return { since: text(sinceMs), until: text(untilMs) };
}
