import type { Settings } from '../model/settings.ts';
import type { Asked } from './asked.ts';
import { type Finding, findingsOf } from './finding.ts';
import { periodText } from './log-settings.ts';
import { type FutureRow, MOST_COUNTED, type RowFacts } from './row-facts.ts';

const QUARTER_HOUR_SECONDS = 900;
/** From the wide end of the zones to the other. */
const WIDEST_ZONE_SECONDS = 14 * 3_600;
/** Between the two defaults of one INSERT, and what an application may take for its own clock. */
const SLACK_SECONDS = 5;
const FAR_SECONDS = 30 * 86_400;

/** What waits, and whether it waits for a reason. Pure. */
export function outboxRowFindings(
  rows: readonly Asked<RowFacts>[],
  hasPosition: boolean,
  settings: Settings,
): Finding[] {
  return settings.outboxes.flatMap(({ schema, table, retire }, index) => {
    const name = `${schema}.${table}`;
    const facts = rows[index];
    if (!facts.known) {
      const fact = `rows of ${name} could not be looked at: ${facts.why.detail} (${facts.why.code})`;
      return [findingsOf('rows', 'waiting-rows').unknown({ fact })];
    }
    const { start: chosen } = settings.relay;
    const isFirstStart = !hasPosition && !facts.value.isEmpty;
    const isLeftOut = isFirstStart && chosen?.kind === 'head' && (facts.value.pending ?? 0) > 0;
    return [
      ...counts(facts.value, name, retire === 'keep'),
      ...(isFirstStart && chosen === null ? [start(facts.value, name)] : []),
      ...(isLeftOut ? [leftOut(facts.value, name)] : []),
      ...future(facts.value.future, name),
    ];
  });
}

function counts({ pending, rowsEstimate, isEmpty }: RowFacts, name: string, isKept: boolean): Finding[] {
  const check = findingsOf('rows', 'waiting-rows');
  if (isEmpty) return [check.good(`${name} is empty`)];
  const all = `~${rowsEstimate.toLocaleString('en-US')} rows`;
  if (isKept || pending === null) return [check.good(`${name} has ${all}`)];
  const isMore = pending >= MOST_COUNTED;
  const waiting = `${isMore ? 'more than ' : ''}${pending.toLocaleString('en-US')} of them pending`;
  return [check.good(`${name} has ${all}, ${waiting}`)];
}

function start({ pending }: RowFacts, name: string): Finding {
  return findingsOf('rows', 'start').error({
    fact: `it would be the first start, ${name} has rows already${pending === null ? '' : ` (${pending.toLocaleString('en-US')} pending)`}, and start is not set`,
    effect: 'run refuses: history must be neither sent nor left out by chance',
    fix: 'start: head      (what is there counts as published)\nstart: pending   (what is pending is sent)',
    stopsTail: true,
  });
}

function leftOut({ pending }: RowFacts, name: string): Finding {
  return findingsOf('rows', 'start').warning({
    fact: `it would be the first start, with start: head, and ${name} has ${pending!.toLocaleString('en-US')} pending ${pending === 1 ? 'row' : 'rows'}`,
    effect: 'they count as published: nobody sends them',
    fix: 'start: pending, if they are to be sent; nothing to do if another relay has sent them',
  });
}

/** S34. A delay that was meant cannot be told from a time zone: it is only a warning. */
function future(rows: readonly FutureRow[], name: string): Finding[] {
  const check = findingsOf('rows', 'future-rows');
  if (rows.length === 0) return [check.good(`no pending row of ${name} is due in the future`)];
  const zoned = rows.filter(looksLikeZone);
  const farthest = rows[0].aheadSeconds;
  const list = `${rows.length.toLocaleString('en-US')} pending ${rows.length === 1 ? 'row' : 'rows'} of ${name} (of the farthest 1,000)`;
  if (zoned.length > 0) {
    return [
      check.warning({
        fact: `${zoned.length.toLocaleString('en-US')} of ${list} look like local time: due in ${periodText(zoned[0].aheadSeconds)}`,
        effect: 'an application that writes NOW() of its own zone delays each row by the difference to UTC',
        fix: 'leave available_at to its default, or write UTC_TIMESTAMP(6); nothing to do if the delay is meant',
      }),
    ];
  }
  if (farthest < FAR_SECONDS) return [check.good(`${list} are due later, the last in ${periodText(farthest)}`)];
  return [
    check.warning({
      fact: `${list} are due later, the last in ${periodText(farthest)}`,
      effect: 'they are sent then, not before',
      fix: 'nothing to do if that is meant',
    }),
  ];
}

/** Whole quarters of an hour after the row was made, or made in the future itself. */
function looksLikeZone({ delaySeconds, createdAheadSeconds }: FutureRow): boolean {
  const isZone = (seconds: number): boolean => {
    const off = Math.abs(seconds - Math.round(seconds / QUARTER_HOUR_SECONDS) * QUARTER_HOUR_SECONDS);
    return (
      seconds >= QUARTER_HOUR_SECONDS - SLACK_SECONDS &&
      seconds <= WIDEST_ZONE_SECONDS + SLACK_SECONDS &&
      off <= SLACK_SECONDS
    );
  };
  if (createdAheadSeconds !== null && createdAheadSeconds > QUARTER_HOUR_SECONDS / 2) return true;
  return delaySeconds !== null && isZone(delaySeconds);
}
