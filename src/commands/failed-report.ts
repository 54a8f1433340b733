import Table from 'cli-table3';
import { z } from 'zod';
import { failedRowSchema, type ReportedRow } from '../http/failed-view.ts';
import type { FailedRow } from '../store/failed-rows.ts';
import { type IdKind, idText } from '../store/people-ids.ts';
import { ageText, countText, escapedText } from './text.ts';

const hiddenValue = z.object({ bytes: z.number(), sha256: z.string() }).nullable();

/** What `failed show --json` prints. Payload and headers by size and SHA-256 only. */
export const failedShowSchema = z.object({
  version: z.literal(1),
  row: failedRowSchema,
  payload: hiddenValue,
  headers: hiddenValue,
});

export function reportedRow(outbox: string, kind: IdKind, row: FailedRow): ReportedRow {
  const { topic, key, eventType, attempts, error, status, ageMs } = row;
  return {
    outbox,
    id: idText(kind, row.id),
    status,
    topic,
    key: key?.toString() ?? null,
    keyHex: key?.toString('hex') ?? null,
    eventType,
    attempts,
    error,
    createdAt: utc(row.createdAt),
    availableAt: utc(row.availableAt),
    ageMs,
  };
}

/** A DATETIME in UTC as ISO 8601. */
function utc(time: string | null): string | null {
  return time === null ? null : `${time.replace(' ', 'T')}Z`;
}

/** `orders / order-42` */
export function pairText({ topic, key }: { readonly topic: string | null; readonly key: string | null }): string {
  return `${topic === null ? '(no topic)' : escapedText(topic)} / ${key === null ? '(no aggregate)' : escapedText(key)}`;
}

/** The rows as a table; errors cut where the terminal ends, and never in a pipe. */
export function listText(rows: readonly ReportedRow[], more: boolean, columns: number | undefined): string {
  if (rows.length === 0) return 'no failed rows';
  const outboxes = new Set(rows.map(({ outbox }) => outbox));
  const count = more ? `the last ${countText(rows.length)}` : countText(rows.length);
  const table = new Table({ head: HEAD.filter((head) => head !== 'outbox' || outboxes.size > 1), ...PLAIN });
  for (const row of rows) {
    const cells = [
      ...(outboxes.size > 1 ? [escapedText(row.outbox)] : []),
      escapedText(row.id),
      row.topic === null ? '-' : escapedText(row.topic),
      row.key === null ? '-' : escapedText(row.key),
      countText(row.attempts),
      row.ageMs === null ? '-' : ageText(row.ageMs),
      row.error === null ? '-' : escapedText(row.error),
    ];
    table.push(cells);
  }
  const lines = table
    .toString()
    .split('\n')
    .map((line) => (columns === undefined ? line.trimEnd() : line.trimEnd().slice(0, columns)));
  const where = outboxes.size === 1 ? ` of ${escapedText([...outboxes][0])}` : '';
  const example = `${escapedText(rows[0].id)}${outboxes.size > 1 ? ` --outbox ${escapedText(rows[0].outbox)}` : ''}`;
  return [
    `${count} failed ${rows.length === 1 && !more ? 'row' : 'rows'}${where}`,
    ...lines,
    `next  cdc-relay failed show ${example}   then failed retry or failed discard`,
  ].join('\n');
}

const HEAD = ['outbox', 'id', 'topic', 'aggregate', 'attempts', 'age', 'error'];

/** No lines around it, no colors. */
const PLAIN = {
  chars: {
    ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
    ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
    ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' },
  },
  style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
};

/** One row, a line for each fact. */
export function showText({ row, payload, headers }: z.infer<typeof failedShowSchema>): string {
  const time = (at: string | null): string => (at === null ? '-' : at);
  const hidden = (value: z.infer<typeof hiddenValue>): string =>
    value === null ? 'NULL' : `${countText(value.bytes)} bytes, SHA-256 ${value.sha256} (not shown)`;
  const facts: readonly (readonly [string, string])[] = [
    ['outbox', escapedText(row.outbox)],
    ['error', row.error === null ? '-' : escapedText(row.error)],
    ['attempts', countText(row.attempts)],
    ['topic', row.topic === null ? '-' : escapedText(row.topic)],
    ['aggregate', row.key === null ? '-' : escapedText(row.key)],
    ['event', row.eventType === null ? '-' : escapedText(row.eventType)],
    ['created', `${time(row.createdAt)}${row.ageMs === null ? '' : ` (${ageText(row.ageMs)} ago)`}`],
    ['due', time(row.availableAt)],
    ['payload', hidden(payload)],
    ['headers', hidden(headers)],
  ];
  return [
    `${row.status.toUpperCase()}  row ${escapedText(row.id)}`,
    ...facts.map(([name, value]) => `${name.padEnd(9)}  ${value}`),
  ].join('\n');
}
