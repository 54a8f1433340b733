import { type Audit, auditLine, isGood } from './audit.ts';
import type { FaultSpan } from './faults.ts';
import { count, counted, duration } from './format.ts';
import type { Ledger } from './ledger.ts';
import { percentile } from './percentile.ts';
import type { ResultLine } from './screen.ts';

/** A repeat may reach the consumer a little later than the last of what had waited. */
const REPEATS_UNTIL_MS = 1000;

/** What the audit found, for somebody who sees all this for the first time. The last line is for scripts. */
export function verdict(audit: Audit, ledger: Ledger, spans: readonly FaultSpan[]): ResultLine[] {
  const { committed, delivered, lost, reordered, altered, unmarked } = audit;
  const good = isGood(audit);
  const tone = good ? 'good' : 'bad';
  const quiet = quietLatencies(ledger, spans);
  const line = (text: string): ResultLine => ({ text, tone: 'plain' });
  return [
    line(`committed   ${counted(committed, 'event')}; ${count(ledger.rolledBack)} more were rolled back`),
    line(`delivered   ${count(delivered)} of them, each compared with its row: key, value, headers, time, order`),
    { text: `lost        ${count(lost)}`, tone: lost === 0 ? 'plain' : 'bad' },
    { text: `reordered   ${count(reordered)}`, tone: reordered === 0 ? 'plain' : 'bad' },
    { text: `altered     ${count(altered)}`, tone: altered === 0 ? 'plain' : 'bad' },
    ...duplicateLines(audit, spans).map(line),
    line(
      `latency     p50 ${duration(percentile(quiet, 0.5))}, p99 ${duration(percentile(quiet, 0.99))} from the commit ` +
        `to the consumer, outside the faults (${counted(quiet.length, 'event')})`,
    ),
    ...(unmarked === 0 ? [] : [line(`unmarked    ${counted(unmarked, 'row')} not marked as published in MySQL`)]),
    line(''),
    { text: sentence(good, spans), tone },
    line(''),
    { text: auditLine(audit), tone },
  ];
}

function duplicateLines({ duplicates }: Audit, spans: readonly FaultSpan[]): string[] {
  if (duplicates.length === 0) return ['duplicates  0'];
  const causes = spans.map(({ name, fromMs, toMs }) => {
    const within = duplicates.filter(
      ({ receivedMs }) => receivedMs >= fromMs && receivedMs <= toMs + REPEATS_UNTIL_MS,
    ).length;
    return { name, within };
  });
  const outside = duplicates.length - causes.reduce((sum, { within }) => sum + within, 0);
  const told = causes.filter(({ within }) => within > 0).map(({ name, within }) => `${count(within)} after ${name}`);
  if (outside > 0) told.push(`${count(outside)} WITHOUT A FAULT`);
  return [
    `duplicates  ${count(duplicates.length)}: ${told.join(', ')}`,
    '            (what a killed relay had sent but not yet noted in MySQL is sent again; the header "id" of both is the same)',
  ];
}

function quietLatencies(ledger: Ledger, spans: readonly FaultSpan[]): number[] {
  return ledger.samples
    .filter(({ committedMs, receivedMs }) =>
      spans.every(({ fromMs, toMs }) => receivedMs < fromMs || committedMs > toMs),
    )
    .map(({ latencyMs }) => latencyMs);
}

function sentence(good: boolean, spans: readonly FaultSpan[]): string {
  const kills = spans.filter(({ name }) => name.includes('kill')).length;
  const story = `the relay was killed ${kills === 2 ? 'twice' : `${kills} times`} and Kafka was stopped`;
  return good
    ? `Everything the shop committed reached Kafka, in order and unchanged, although ${story}. Nothing else did.`
    : `This must not happen: ${story}, and not everything the shop committed reached Kafka as it was.`;
}
