import { Command, CommanderError, Option } from 'commander';
import { loadConfig } from '../config/load.ts';
import { RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import { terminalText } from '../model/terminal-text.ts';
import { createLog } from '../observability/log.ts';
import { ExitCode } from './exit-codes.ts';
import { type Problem, ProblemError, problemOf, problemText } from './problem.ts';
import { endOnSignals } from './signals.ts';

/** A command of the relay: what help shows, and where its body is. */
export interface RelayCommand {
  /** `status`, or with its group before it: `failed list`. */
  readonly name: string;
  readonly summary: string;
  /** Such as `<id>` or `[ids...]`, and what help says about it. */
  readonly argument?: readonly [syntax: string, description: string];
  readonly options?: readonly (readonly [flags: string, description: string])[];
  readonly examples: readonly string[];
  /** The body listens for SIGINT and SIGTERM; the others end at once. */
  readonly handlesSignals?: boolean;
  /** What Ctrl-C leaves, and how to go on, where the body does not listen for it. */
  readonly whenInterrupted?: string;
  /** Loaded when it is its turn: a command starts without the libraries of the others. */
  readonly load: () => Promise<CommandBody>;
}

/** Does the work and says how it went. A `RelayError` or a `ProblemError` may be thrown. */
export type CommandBody = (context: CommandContext) => Promise<ExitCode | Problem>;

export interface CommandContext {
  readonly settings: Settings;
  /** Goes to stderr. */
  readonly log: Log;
  /** The command's own options and the global ones, as commander names them. */
  readonly options: Readonly<Record<string, unknown>>;
  /** What stands behind the command beside its options. */
  readonly args: readonly string[];
  /** The file that was read, if any, and all that holds, secrets blanked. */
  readonly config: { readonly file: string | null; readonly redacted: object };
  /** The result: a line to stdout. */
  readonly print: (text: string) => void;
  /** What a person likes to know beside it: a line to stderr, unless `--quiet`. */
  readonly note: (text: string) => void;
}

interface GlobalOptions {
  readonly config?: string;
  readonly set?: readonly string[];
  readonly logLevel?: string;
  readonly quiet?: boolean;
  readonly color: boolean;
}

/** Reads the command line and runs what it says; resolves with the exit code of the process. */
export async function runCommandLine(
  version: string,
  commands: readonly RelayCommand[],
  /** What help says about the first words of commands that have two. */
  groups: Readonly<Record<string, string>>,
  argv: string[],
): Promise<ExitCode> {
  let exitCode: ExitCode = ExitCode.Good;
  const program = describe(version);
  for (const command of commands) {
    const words = command.name.split(' ');
    const parent = words.length === 1 ? program : group(program, words[0], groups[words[0]]);
    const sub = parent.command(words.at(-1)!).description(command.summary);
    if (command.argument !== undefined) sub.argument(...command.argument);
    for (const [flags, description] of command.options ?? []) sub.option(flags, description);
    sub.addHelpText('after', `\nExamples:\n${command.examples.map((example) => `  ${example}`).join('\n')}`);
    sub.action(async () => {
      exitCode = await runCommand(command, sub.args, sub.optsWithGlobals());
    });
  }
  try {
    await program.parseAsync(argv);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version end this way too, with 0; help that nobody asked for is wrong usage.
    return error.exitCode === 0 ? ExitCode.Good : ExitCode.Usage;
  }
  return exitCode;
}

function group(program: Command, name: string, summary: string): Command {
  return program.commands.find((command) => command.name() === name) ?? program.command(name).description(summary);
}

function describe(version: string): Command {
  const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];
  return new Command('cdc-relay')
    .description('Moves outbox rows from a MySQL binary log to Kafka, in order, losing none.')
    .version(version)
    .option('-c, --config <file>', 'configuration (default: CDC_RELAY_CONFIG, else cdc-relay.yaml where it is)')
    .option('--set <key=value>', 'set a key of the configuration: mysql.host=db1; can be repeated', collect)
    .addOption(new Option('--log-level <level>', 'what the log tells').choices(['debug', 'info', 'warn', 'error']))
    .option('-q, --quiet', 'only results, warnings and errors')
    .option('--no-color', 'no colors; NO_COLOR in the environment works too')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(add --help for what there is)')
    .addHelpText('after', EXIT_CODES)
    .exitOverride();
}

const EXIT_CODES = `
Exit codes: 0 good; 1 a finding, or the work failed; 2 wrong usage or configuration; 3 a server could not be
reached; 4 not permitted; 130 interrupted.`;

async function runCommand(command: RelayCommand, args: readonly string[], options: GlobalOptions): Promise<ExitCode> {
  const quiet = options.quiet === true;
  const level = options.logLevel ?? (quiet ? 'warn' : undefined);
  const loaded = loadConfig({
    file: options.config ?? null,
    environment: process.env,
    sets: [...(options.set ?? []), ...(level === undefined ? [] : [`log.level=${level}`])],
  });
  if (!loaded.ok) {
    process.stderr.write(`${terminalText(loaded.report)}\n`);
    return ExitCode.Usage;
  }
  const log = await createLog(loaded.log, {
    secrets: loaded.secrets,
    isTerminal: process.stderr.isTTY,
    color: options.color && process.stderr.isTTY && (process.env['NO_COLOR'] ?? '') === '',
  });
  loaded.secrets.tellTo(log);
  process.on('SIGUSR2', () => log.toggleDebug());
  // Without a listener Node opens its debugger, to whoever is on this machine.
  process.on('SIGUSR1', () => undefined);
  // Node's own report of a crash would print whatever a driver has attached to its error.
  process.on('uncaughtException', (err) => {
    log.error('crashed', { err });
    process.exit(ExitCode.Failure);
  });
  const note = (text: string): void => {
    if (!quiet) process.stderr.write(`${terminalText(text)}\n`);
  };
  if (command.handlesSignals !== true)
    endOnSignals(() => command.whenInterrupted !== undefined && note(command.whenInterrupted));
  const body = await command.load();
  const outcome = await bodyOutcome(body, {
    settings: loaded.settings,
    log,
    options: { ...options },
    args,
    config: { file: loaded.file, redacted: loaded.redacted },
    print: (text) => process.stdout.write(`${terminalText(text)}\n`),
    note,
  });
  if (typeof outcome === 'number') return outcome;
  process.stderr.write(`${terminalText(problemText(outcome))}\n`);
  return outcome.exitCode;
}

async function bodyOutcome(body: CommandBody, context: CommandContext): Promise<ExitCode | Problem> {
  try {
    return await body(context);
  } catch (error) {
    if (error instanceof ProblemError) return error.problem;
    if (error instanceof RelayError) return problemOf(error.fault, context.settings);
    context.log.error('crashed', { err: error });
    return ExitCode.Failure;
  }
}
