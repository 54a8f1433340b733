import { setTimeout as sleep } from 'node:timers/promises';
import { askToResume, readFollower } from '../store/pause.ts';
import { Session } from '../store/session.ts';
import type { CommandBody } from './command.ts';
import { ExitCode } from './exit-codes.ts';
import { type PauseReport, readPurge, resumedText } from './pause-report.ts';
import { escapedText } from './text.ts';

/** The leader asks once a second; then it, or a standby, leads anew. */
const WITHIN_MS = 10_000;
const EVERY_MS = 100;

/** Exit 1 when nobody goes on in time. */
export const resume: CommandBody = async ({ settings, log, options, print }) => {
  const session = await Session.open(settings.mysql, log);
  try {
    const before = await readFollower(session, settings);
    const pause = await askToResume(session, settings);
    // Who has not come to rest yet goes on as it is, or leads anew a moment later.
    const isLeadAnew = async (): Promise<boolean> => (await readFollower(session, settings)).epoch > before.epoch;
    let followed = before.isResting === null ? null : pause === null || !before.isResting;
    for (const endMs = performance.now() + WITHIN_MS; followed === false && performance.now() < endMs;) {
      await sleep(EVERY_MS);
      followed = await isLeadAnew();
    }
    const report: PauseReport = {
      ...{ version: 1, name: settings.relay.name, paused: false, changed: pause !== null, pause, followed },
      purge: await readPurge(session, settings),
    };
    print(
      options['json'] === true
        ? JSON.stringify(report)
        : resumedText(report, pause === null ? '' : escapedText(pause.by)),
    );
    return followed === false ? ExitCode.Failure : ExitCode.Good;
  } finally {
    session.destroy();
  }
};
