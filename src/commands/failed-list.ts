import type { FailedList, ReportedRow } from '../http/failed-view.ts';
import type { OutboxSettings } from '../model/settings.ts';
import { type FailedFilter, FailedRows } from '../store/failed-rows.ts';
import { Session } from '../store/session.ts';
import type { CommandBody } from './command.ts';
import { ExitCode } from './exit-codes.ts';
import { filterOf } from './failed-filter.ts';
import { listText, reportedRow } from './failed-report.ts';
import { countOption, outboxesWithStatus, outboxName } from './option-values.ts';

const DEFAULT_LIMIT = 50;

/** Failed rows, those due last first; never a payload. */
export const failedList: CommandBody = async ({ settings, log, options, print }) => {
  const filter = filterOf(options);
  const limit = countOption(options, 'limit', 10_000) ?? DEFAULT_LIMIT;
  const outboxes = outboxesWithStatus(settings, options);
  const session = await Session.open(settings.mysql, log);
  try {
    const report = await listFailed(session, outboxes, filter, limit);
    print(
      options['json'] === true
        ? JSON.stringify(report)
        : listText(report.rows, report.more, process.stdout.isTTY ? process.stdout.columns : undefined),
    );
    return ExitCode.Good;
  } finally {
    session.destroy();
  }
};

/** From all of the outboxes together. */
export async function listFailed(
  session: Session,
  outboxes: readonly OutboxSettings[],
  filter: FailedFilter,
  limit: number,
): Promise<FailedList> {
  const rows: ReportedRow[] = [];
  let more = false;
  for (const outbox of outboxes) {
    const failed = await FailedRows.open(session, outbox);
    const page = await failed.page(filter, null, limit);
    rows.push(...page.rows.map((row) => reportedRow(outboxName(outbox), failed.kind, row)));
    more ||= page.next !== null;
  }
  rows.sort((a, b) => (b.availableAt ?? '').localeCompare(a.availableAt ?? ''));
  return { version: 1, rows: rows.slice(0, limit), more: more || rows.length > limit };
}
