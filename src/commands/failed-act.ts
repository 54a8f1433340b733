import type { FailedActionReport } from '../http/failed-view.ts';
import type { RowId } from '../model/row-ids.ts';
import type { Settings } from '../model/settings.ts';
import type { FailedAction } from '../store/failed-actions.ts';
import { type FailedRow, FailedRows, LATER_ROWS } from '../store/failed-rows.ts';
import { Session } from '../store/session.ts';
import type { CommandBody, CommandContext } from './command.ts';
import { confirmed } from './confirm.ts';
import { ExitCode } from './exit-codes.ts';
import { filterOf, isUnfiltered } from './failed-filter.ts';
import { actedRow, carryOut, laterPublished, namedRows, type Plan, SHOWN_ROWS } from './failed-plan.ts';
import { pairText, reportedRow } from './failed-report.ts';
import { oneOutbox, type Options, outboxesWithStatus, outboxName } from './option-values.ts';
import { usageError } from './problem.ts';
import { countText, escapedText, rowsText } from './text.ts';
import { whoAsks } from './who.ts';

/** Rows of one run; the rest by another. */
const RUN_ROWS = 100_000;
const PAGE_ROWS = 1_000;

export const failedRetry: CommandBody = (context) => act('retry', context);
export const failedDiscard: CommandBody = (context) => act('discard', context);

async function act(action: FailedAction, context: CommandContext): Promise<ExitCode> {
  const { settings, log, options, args } = context;
  checkUsage(args, options);
  const dryRun = options['dryRun'] === true;
  const session = await Session.open(settings.mysql, log);
  try {
    const plans =
      args.length > 0
        ? [await namedRows(session, oneOutbox(settings, options), args)]
        : await matching(session, settings, options);
    const count = plans.reduce((sum, { rows }) => sum + rows.length, 0);
    const report: FailedActionReport = {
      version: 1,
      action,
      dryRun,
      laterPublished: action === 'retry' ? await laterPublished(plans) : null,
      rows: [],
      more: plans.some(({ more }) => more),
    };
    tell(report, plans, count, context);
    if (!dryRun && count > 1 && !(await confirmed(options, `${action} ${rowsText(count)}`))) {
      context.note('nothing was done');
      return ExitCode.Failure;
    }
    for (const plan of plans) {
      if (dryRun) for (const row of plan.rows) tellRow(report, plan, row.id, row, 'would', context);
      else {
        await carryOut(session, plan, { action, settings, who: whoAsks() }, (id, row, outcome) =>
          tellRow(report, plan, id, row, outcome, context),
        );
      }
      for (const id of plan.notFailed) tellRow(report, plan, id, null, 'not-failed', context);
    }
    if (options['json'] === true) context.print(JSON.stringify(report));
    return report.rows.every(({ outcome }) => outcome === 'done' || outcome === 'would')
      ? ExitCode.Good
      : ExitCode.Failure;
  } finally {
    session.destroy();
  }
}

function checkUsage(args: readonly string[], options: Options): void {
  const byFilter = options['all'] === true || !isUnfiltered(filterOf(options));
  if (args.length === 0 && !byFilter) {
    throw usageError('which rows?', 'ids, or --all, or some of --topic, --since, --reason');
  }
  if (args.length > 0 && byFilter) throw usageError('ids go without --all, --topic, --since and --reason');
}

async function matching(session: Session, settings: Settings, options: Options): Promise<Plan[]> {
  const filter = filterOf(options);
  const plans: Plan[] = [];
  for (const outbox of outboxesWithStatus(settings, options)) {
    const failed = await FailedRows.open(session, outbox);
    const rows: FailedRow[] = [];
    let page = await failed.page(filter, null, PAGE_ROWS);
    rows.push(...page.rows);
    while (page.next !== null && rows.length < RUN_ROWS) {
      page = await failed.page(filter, page.next, PAGE_ROWS);
      rows.push(...page.rows);
    }
    // Oldest first: what has one aggregate is written in the order in which it came.
    plans.push({ outbox, failed, rows: rows.reverse(), notFailed: [], more: page.next !== null });
  }
  return plans;
}

/** What will be done, before it is asked for. */
function tell(report: FailedActionReport, plans: readonly Plan[], count: number, { note }: CommandContext): void {
  const { action, laterPublished: later } = report;
  if (count === 0) {
    note('no failed row of these');
    return;
  }
  for (const { outbox, failed, rows, more } of plans) {
    if (rows.length === 0) continue;
    note(`${action} ${rowsText(rows.length)} of ${escapedText(outboxName(outbox))}`);
    for (const row of rows.slice(0, SHOWN_ROWS)) {
      const { id, topic, key, error } = reportedRow('', failed.kind, row);
      note(`  ${escapedText(id)}  ${pairText({ topic, key })}  ${escapedText(error ?? '')}`);
    }
    if (rows.length > SHOWN_ROWS) note(`  ... and ${countText(rows.length - SHOWN_ROWS)} more`);
    if (more) note(`  more match; ${countText(RUN_ROWS)} at most at once: run it again for the rest`);
  }
  if (action === 'discard') {
    note('effect  they are deleted and never delivered; later events of an aggregate that is blocked go on');
  } else if (later === null) {
    note('order   whether later events of their aggregates are published already is not known');
  } else {
    const looked = `among ${countText(LATER_ROWS)} rows behind each${count > SHOWN_ROWS ? ` of the first ${SHOWN_ROWS}` : ''}`;
    note(
      later === 0
        ? `order   no later event of their aggregates is published yet (${looked})`
        : `order   ${countText(later)} later events of their aggregates are published already (${looked}): consumers see these rows after them`,
    );
  }
}

const WORDS = {
  retry: { done: 'pending again', would: 'would be pending again' },
  discard: { done: 'deleted', would: 'would be deleted' },
} as const;

function tellRow(
  report: FailedActionReport,
  plan: Plan,
  id: RowId,
  row: FailedRow | null,
  outcome: FailedActionReport['rows'][number]['outcome'],
  { options, print }: CommandContext,
): void {
  const acted = actedRow(plan, id, row, outcome);
  report.rows.push(acted);
  if (options['json'] === true) return;
  const became =
    outcome === 'held'
      ? 'left: another transaction holds it; run it again'
      : outcome === 'not-failed'
        ? 'left: not there, or not failed'
        : WORDS[report.action][outcome];
  const { error } = acted;
  const pair =
    row === null
      ? ''
      : `  ${pairText(reportedRow('', plan.failed.kind, row))}${error === null ? '' : `  (${escapedText(error)})`}`;
  print(`${escapedText(acted.outbox)} ${escapedText(acted.id)}  ${became}${pair}`);
}
