import type { z } from 'zod';
import { FailedRows } from '../store/failed-rows.ts';
import { parseId } from '../store/people-ids.ts';
import { Session } from '../store/session.ts';
import type { CommandBody } from './command.ts';
import { ExitCode } from './exit-codes.ts';
import { type failedShowSchema, reportedRow, showText } from './failed-report.ts';
import { oneOutbox, outboxName } from './option-values.ts';
import { usageError } from './problem.ts';
import { escapedText } from './text.ts';

/** One row; its payload and headers by size and digest. Exit 1 when it has not failed. */
export const failedShow: CommandBody = async ({ settings, log, options, args, print }) => {
  const outbox = oneOutbox(settings, options);
  const session = await Session.open(settings.mysql, log);
  try {
    const failed = await FailedRows.open(session, outbox);
    const id = parseId(failed.kind, args[0]);
    if (id === null) throw usageError(`${escapedText(args[0])} is no id of ${outboxName(outbox)}`);
    const [row] = (await failed.byIds([id], false)) as (Awaited<ReturnType<typeof failed.byIds>>[number] | undefined)[];
    if (row === undefined) {
      return { exitCode: ExitCode.Failure, headline: `${outboxName(outbox)} has no row ${escapedText(args[0])}` };
    }
    const report: z.infer<typeof failedShowSchema> = {
      version: 1,
      row: reportedRow(outboxName(outbox), failed.kind, row),
      ...(await failed.hidden(id)),
    };
    print(options['json'] === true ? JSON.stringify(report) : showText(report));
    return row.status === 'failed' ? ExitCode.Good : ExitCode.Failure;
  } finally {
    session.destroy();
  }
};
