import type { CheckReport } from '../check/check.ts';
import { escapedText } from './text.ts';

const MARKS = { error: 'ERROR', warning: 'WARN', unknown: 'SKIP', good: 'good' } as const;
const LABEL_COLUMNS = 7;

/** The verdict, what was found, the worst first, and the canary. */
export function checkText({ name, server, counts, findings, canary }: CheckReport, all: boolean): string {
  const { errors, warnings, unknown, good } = counts;
  const parts = [countOf(errors, 'error'), countOf(warnings, 'warning')];
  if (unknown > 0) parts.push(`${unknown} not checked`);
  parts.push(`${good} good`);
  const lines = [`cdc-relay check: ${parts.join(', ')}${all || good === 0 ? '' : '   (--all shows the good ones)'}`];
  if (server !== null) {
    lines.push(
      `${escapedText(name)} on ${escapedText(server.address)} (${escapedText(server.version)}) as ${escapedText(server.account)}`,
    );
  }
  for (const { severity, fact, effect, fix } of findings) {
    if (severity === 'good' && !all) continue;
    lines.push(`${MARKS[severity].padEnd(LABEL_COLUMNS)}${escapedText(fact)}`);
    if (effect !== null) lines.push(`${' '.repeat(LABEL_COLUMNS)}why: ${escapedText(effect)}`);
    if (fix !== null) lines.push(`${' '.repeat(LABEL_COLUMNS)}fix: ${fixText(fix)}`);
  }
  if (canary !== null) {
    lines.push(
      `canary OK: a row written at ${canary.writtenAt.slice(11, 23)} came by after ${canary.afterMs.toFixed(1)} ms`,
    );
  }
  return lines.join('\n');
}

function fixText(fix: string): string {
  const lines = fix.split('\n').map((line) => escapedText(line));
  return lines.join(`\n${' '.repeat(LABEL_COLUMNS + 'fix: '.length)}`);
}

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
