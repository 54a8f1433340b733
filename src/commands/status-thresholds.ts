import { ageOption, type Options, textOption } from './option-values.ts';
import { usageError } from './problem.ts';
import { isMost, type StatusReport } from './status-report.ts';
import { ageText, countText } from './text.ts';

/** What the command line allows; null: it does not say. */
export interface Thresholds {
  readonly maxLagMs: number | null;
  readonly maxFailed: number | null;
  readonly maxParked: number | null;
  readonly minHeadroomMs: number | null;
}

/** `--max-lag 60s --max-failed 0 --max-parked 0 --min-headroom 1d`. */
export function thresholdsOf(options: Options): Thresholds {
  return {
    maxLagMs: ageOption(options, 'maxLag', '--max-lag'),
    maxFailed: countOf(options, 'maxFailed', '--max-failed'),
    maxParked: countOf(options, 'maxParked', '--max-parked'),
    minHeadroomMs: ageOption(options, 'minHeadroom', '--min-headroom'),
  };
}

function countOf(options: Options, name: string, flag: string): number | null {
  const text = textOption(options, name);
  if (text === null) return null;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw usageError(`${flag}: expected a whole number`);
}

/** Those that are passed, in words. What is not known passes: a probe must not be green because nobody can see. */
export function passedThresholds(report: StatusReport, thresholds: Thresholds): string[] {
  const { maxLagMs, maxFailed, maxParked, minHeadroomMs } = thresholds;
  const { lagMs, outboxes, parked, purge } = report;
  const passed: string[] = [];
  if (maxLagMs !== null && !(lagMs !== null && lagMs <= maxLagMs)) {
    passed.push(`lag ${lagMs === null ? 'unknown' : ageText(lagMs)}, allowed ${ageText(maxLagMs)} (--max-lag)`);
  }
  const failed = outboxes.reduce((sum, { waiting }) => sum + (waiting?.failed ?? 0), 0);
  if (maxFailed !== null && failed > maxFailed) {
    const most = outboxes.some(({ waiting }) => isMost(waiting?.failed ?? 0)) ? '+' : '';
    passed.push(`${countText(failed)}${most} failed, allowed ${countText(maxFailed)} (--max-failed)`);
  }
  if (maxParked !== null && parked.total > maxParked) {
    passed.push(`${countText(parked.total)} parked, allowed ${countText(maxParked)} (--max-parked)`);
  }
  // Without an age that ends it a binlog stays.
  const headroomMs = purge === null ? null : purge.expireMs === null && purge.inMs === null ? Infinity : purge.inMs;
  if (minHeadroomMs !== null && !(headroomMs !== null && headroomMs >= minHeadroomMs)) {
    const room = headroomMs === null ? 'unknown' : ageText(headroomMs);
    passed.push(`purge headroom ${room}, wanted ${ageText(minHeadroomMs)} (--min-headroom)`);
  }
  return passed;
}

/** Whether something is to be done: a threshold is passed, nothing moves, or rows wait and nobody is there. */
export function needsSomebody(report: StatusReport, { maxLagMs }: Thresholds): boolean {
  const { state, outboxes, passed } = report;
  if (passed.length > 0 || state === 'STUCK') return true;
  const isWaiting = outboxes.some(({ waiting }) => (waiting?.pending ?? 0) + (waiting?.processing ?? 0) > 0);
  // How long rows may wait for a relay that is being started, `--max-lag` says.
  return state === 'STOPPED' && isWaiting && maxLagMs === null;
}
