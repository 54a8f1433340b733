import { setTimeout as sleep } from 'node:timers/promises';
import { terminalText } from '../model/terminal-text.ts';
import type { CommandContext } from './command.ts';
import type { StatusReport } from './status-report.ts';
import { statusText } from './status-text.ts';
import { topOf } from './text.ts';

const EVERY_MS = 2_000;
/** In a pipe, where nothing has changed. */
const LINE_EVERY_MS = 10_000;

/**
 * Looks every two seconds until Ctrl-C ends the process: redraws on a terminal; elsewhere a line when the verdict
 * changes, and every ten seconds; JSON a line for each look.
 */
export async function watchStatus(
  { options, print }: Pick<CommandContext, 'options' | 'print'>,
  look: () => Promise<{ readonly report: StatusReport }>,
): Promise<never> {
  const json = (report: StatusReport): void => print(JSON.stringify(report));
  const show = options['json'] === true ? json : process.stdout.isTTY ? await redraw() : lines(print);
  for (;;) {
    show((await look()).report);
    await sleep(EVERY_MS);
  }
}

async function redraw(): Promise<(report: StatusReport) => void> {
  const { createLogUpdate } = await import('log-update');
  const draw = createLogUpdate(process.stdout);
  return (report) => {
    const { columns, rows } = process.stdout;
    // The row below the text is the cursor's.
    draw(topOf(terminalText(statusText(report, { ascii: false, columns })), columns, rows - 1));
  };
}

function lines(print: (text: string) => void): (report: StatusReport) => void {
  let told = '';
  let toldMs = -Infinity;
  return (report) => {
    const nowMs = performance.now();
    // Of what is passed only the flags: the figures always change.
    const verdict = [report.state, ...report.passed.map((passed) => passed.replace(/^.*\(/, ''))].join(' ');
    if (verdict === told && nowMs - toldMs < LINE_EVERY_MS) return;
    told = verdict;
    toldMs = nowMs;
    print(watchLine(report));
  };
}

/** The first lines of the whole text in one: verdict, what is passed or stuck, lag. */
function watchLine(report: StatusReport): string {
  const [verdict, ...facts] = statusText(report, { ascii: true, columns: undefined }).split('\n');
  const told = facts.filter((line) => /^(passed|stuck|paused|lag) /.test(line));
  return [new Date().toISOString(), verdict, ...told].map((line) => line.replaceAll(/ {2,}/g, ' ').trim()).join('   ');
}
