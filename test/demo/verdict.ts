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
  const tone = isGood(audit) ? 'good' : 'bad';
  const quiet = quietLatencies(ledger, spans);
  const plain = (text: string): ResultLine => ({ text, tone: 'plain' });
  const mustBeNone = (name: string, value: number, note: string): ResultLine => ({
    text: `${name.padEnd(12)}${count(value)}${note}`,
    tone: value === 0 ? 'plain' : 'bad',
  });
  return [
    plain(`committed   ${counted(committed, 'event')}; ${count(ledger.rolledBack)} more were rolled back`),
    plain(`delivered   ${count(delivered)} of them, each compared with its row in MySQL`),
    mustBeNone('lost', lost, ''),
    mustBeNone('reordered', reordered, ' (first deliveries of each order against its commits)'),
    mustBeNone('altered', altered, ' (key, value, headers and time, byte for byte)'),
    ...duplicateLines(audit, spans).map(plain),
    plain(
      `latency     p50 ${duration(percentile(quiet, 0.5))}, p99 ${duration(percentile(quiet, 0.99))} ` +
        'from commit to consumer, outside the faults',
    ),
    ...(unmarked === 0 ? [] : [plain(`unmarked    ${counted(unmarked, 'row')} not marked as published in MySQL`)]),
    plain(''),
    ...sentence(isGood(audit)).map((text) => ({ text, tone }) as const),
    plain(''),
    { text: auditLine(audit), tone },
  ];
}

function duplicateLines({ duplicates }: Audit, spans: readonly FaultSpan[]): string[] {
  if (duplicates.length === 0) return ['duplicates  0'];
  const causes = new Map<string, number>();
  for (const { receivedMs } of duplicates) {
    const span = spans.findLast(({ fromMs, toMs }) => receivedMs >= fromMs && receivedMs <= toMs + REPEATS_UNTIL_MS);
    const cause = span === undefined ? 'WITHOUT A FAULT' : `after ${span.name}`;
    causes.set(cause, (causes.get(cause) ?? 0) + 1);
  }
  return [
    `duplicates  ${count(duplicates.length)}: ${[...causes].map(([cause, times]) => `${count(times)} ${cause}`).join(', ')}`,
    '            What the relay had sent and not yet noted in MySQL when the fault came',
    '            is sent again, with the same header "id": a consumer can pass over it.',
  ];
}

function quietLatencies(ledger: Ledger, spans: readonly FaultSpan[]): number[] {
  return ledger.samples
    .filter(({ committedMs, receivedMs }) =>
      spans.every(({ fromMs, toMs }) => receivedMs < fromMs || committedMs > toMs),
    )
    .map(({ latencyMs }) => latencyMs);
}

function sentence(good: boolean): string[] {
  return good
    ? [
        'Everything that the shop committed reached Kafka, in order and unchanged, and nothing',
        'else did, although the relay was killed twice and Kafka was stopped under it.',
      ]
    : ['This must not happen: what reached Kafka is not what the shop committed.'];
}
