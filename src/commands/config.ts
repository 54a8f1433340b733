import { configText } from '../config/print.ts';
import type { CommandBody } from './command.ts';
import { ExitCode } from './exit-codes.ts';

/** The configuration that holds, secrets blanked; with `--check` only the verdict. Its faults have been told before. */
export const config: CommandBody = ({ options, config: { file, redacted }, print }) => {
  if (options['check'] === true) print(`config: good (${file ?? 'environment and flags'})`);
  else if (options['json'] === true) print(JSON.stringify({ version: 1, file, config: redacted }));
  else print(configText(redacted));
  return Promise.resolve(ExitCode.Good);
};
