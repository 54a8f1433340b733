import { check as runChecks } from '../check/check.ts';
import { checkText } from './check-report.ts';
import type { CommandBody } from './command.ts';
import { ExitCode } from './exit-codes.ts';

/** Looks at every prerequisite and says what is wrong. Exit 1 with an error; a server that is not there is one. */
export const check: CommandBody = async ({ settings, log, options, print }) => {
  const report = await runChecks(settings, log);
  print(options['json'] === true ? JSON.stringify(report) : checkText(report, options['all'] === true));
  return report.counts.errors > 0 ? ExitCode.Failure : ExitCode.Good;
};
