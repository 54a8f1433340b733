import { setTimeout as sleep } from 'node:timers/promises';
import { askToPause, readFollower } from '../store/pause.ts';
import { Session } from '../store/session.ts';
import type { CommandBody } from './command.ts';
import { ExitCode } from './exit-codes.ts';
import { pausedText, type PauseReport, readPurge } from './pause-report.ts';
import { escapedText } from './text.ts';
import { whoAsks } from './who.ts';

/** The leader asks once a second and settles what is on its way for 15 s; what Kafka does not answer ends some seconds later. */
const WITHIN_MS = 30_000;
const EVERY_MS = 100;

/** Exit 1 when the leader has not come to rest in time: it still does, and then stays so. */
export const pause: CommandBody = async ({ settings, log, options, print, note }) => {
  const session = await Session.open(settings.mysql, log);
  try {
    const asked = await askToPause(session, settings, whoAsks());
    let followed = (await readFollower(session, settings)).isResting;
    if (followed === false) note('waiting for the leader to settle what is on its way');
    for (const endMs = performance.now() + WITHIN_MS; followed === false && performance.now() < endMs;) {
      await sleep(EVERY_MS);
      followed = (await readFollower(session, settings)).isResting;
    }
    const { changed, ...held } = asked;
    const report: PauseReport = {
      ...{ version: 1, name: settings.relay.name, paused: true, changed, pause: held, followed },
      purge: await readPurge(session, settings),
    };
    print(options['json'] === true ? JSON.stringify(report) : pausedText(report, escapedText(held.by)));
    return followed === false ? ExitCode.Failure : ExitCode.Good;
  } finally {
    session.destroy();
  }
};
