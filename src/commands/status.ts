import { RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import { Session } from '../store/session.ts';
import { readStatus, type StatusFacts } from '../store/status.ts';
import type { CommandBody } from './command.ts';
import { ExitCode, exitCodeOf } from './exit-codes.ts';
import { problemOf } from './problem.ts';
import { askRelay } from './relay-answer.ts';
import { statusReport, type StatusReport } from './status-report.ts';
import { statusText, type TextStyle } from './status-text.ts';
import { needsSomebody, passedThresholds, type Thresholds, thresholdsOf } from './status-thresholds.ts';
import { watchStatus } from './status-watch.ts';

/**
 * What the database says, and beside it the relay that listens where the configuration says. Right when the relay is
 * dead. Exit 1 when a threshold is passed, when nothing moves, or when rows wait and nobody leads.
 */
export const status: CommandBody = async (context) => {
  const { settings, log, options, print } = context;
  const thresholds = thresholdsOf(options);
  const looker = new StatusLooker(settings, log, thresholds);
  try {
    if (options['watch'] === true) return await watchStatus(context, () => looker.look());
    const { report, fault } = await looker.look();
    print(options['json'] === true ? JSON.stringify(report) : statusText(report, terminalStyle()));
    if (fault !== null) return problemOf(fault, settings);
    return needsSomebody(report, thresholds) ? ExitCode.Failure : ExitCode.Good;
  } finally {
    looker.close();
  }
};

export function terminalStyle(): TextStyle {
  return { ascii: !process.stdout.isTTY, columns: process.stdout.isTTY ? process.stdout.columns : undefined };
}

/** Looks, over one connection for as long as it lives. */
class StatusLooker {
  readonly #settings: Settings;
  readonly #log: Log;
  readonly #thresholds: Thresholds;
  #session: Session | null = null;

  constructor(settings: Settings, log: Log, thresholds: Thresholds) {
    this.#settings = settings;
    this.#log = log;
    this.#thresholds = thresholds;
  }

  /** `fault`: why the database could not be asked. Throws a `RelayError` where it was reached and said no. */
  async look(): Promise<{ report: StatusReport; fault: RelayError['fault'] | null }> {
    const [facts, answer] = await Promise.all([
      this.#facts(),
      askRelay(this.#settings.http, this.#settings.relay.name),
    ]);
    const fault = facts instanceof RelayError ? facts.fault : null;
    const report = statusReport(facts instanceof RelayError ? null : facts, answer, this.#settings);
    return { report: { ...report, passed: passedThresholds(report, this.#thresholds) }, fault };
  }

  close(): void {
    this.#session?.destroy();
  }

  async #facts(): Promise<StatusFacts | RelayError> {
    try {
      if (this.#session?.isUsable !== true) this.#session = await Session.open(this.#settings.mysql, this.#log);
      return await readStatus(this.#session, this.#settings);
    } catch (error) {
      if (error instanceof RelayError && exitCodeOf(error.fault.code) === ExitCode.Unreachable) return error;
      throw error;
    }
  }
}
