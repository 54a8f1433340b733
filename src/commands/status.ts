import { Session } from '../store/session.ts';
import { readStatus } from '../store/status.ts';
import type { CommandBody } from './command.ts';
import { ExitCode } from './exit-codes.ts';
import { statusReport, statusText } from './status-report.ts';

/** Answers from the database alone, so also when the relay is dead. Exit 1 when rows wait and nothing moves them. */
export const status: CommandBody = async ({ settings, log, options, print }) => {
  const session = await Session.open(settings.mysql, log);
  try {
    const report = statusReport(await readStatus(session, settings), settings);
    print(options['json'] === true ? JSON.stringify(report) : statusText(report));
    return report.state === 'STUCK' || (report.state === 'STOPPED' && (report.lagMs ?? 0) > 0)
      ? ExitCode.Failure
      : ExitCode.Good;
  } finally {
    session.destroy();
  }
};
