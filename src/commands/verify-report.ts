import { z } from 'zod';
import type { Settings } from '../model/settings.ts';
import type { NamedFinding, Verified } from '../verify/verify.ts';
import { outboxName } from './option-values.ts';
import { countText, escapedText, rowsText } from './text.ts';

const finding = z.object({
  kind: z.enum(['missing', 'altered', 'reordered', 'duplicate']),
  /** `schema.table` */
  outbox: z.string(),
  topic: z.string(),
  /** Primary key, header `id` and aggregate id; null: the row is gone meanwhile. */
  id: z.string().nullable(),
  headerId: z.string().nullable(),
  key: z.string().nullable(),
  keyHex: z.string().nullable(),
  /** Of `altered`: what differs from the row. */
  parts: z.array(z.enum(['key', 'value', 'headers'])),
  /**
   * Of `altered`: the records that differ. Of `duplicate`: all its records. Of `reordered`: its first record, and the one
   * of an earlier row that comes behind it.
   */
  places: z.array(z.object({ partition: z.number(), offset: z.number() })),
});

/** What `verify --json` prints. Fields may be added; a changed meaning raises `version`. */
export const verifySchema = z.object({
  version: z.literal(1),
  /** Nothing but duplicates was found. */
  ok: z.boolean(),
  rows: z.number(),
  found: z.number(),
  missing: z.number(),
  altered: z.number(),
  reordered: z.number(),
  /** Records beyond the first of a row. */
  duplicates: z.number(),
  /** Rows that count as published and cannot become a record. */
  unencodable: z.number(),
  /** Records with the header `cdc-relay-replay`: sent once more on purpose. */
  replayed: z.number(),
  /** Rows that are not there and cannot be judged: the topic's retention has removed what is as old. */
  expired: z.number(),
  /** Rows that are not there because a later record of their key has replaced them (cleanup.policy=compact). */
  compacted: z.number(),
  /** Kept rows that the relay may not have come to yet. */
  undelivered: z.number(),
  /** Rows out of order that were delayed or retried. */
  outOfTurn: z.number(),
  /** Records of the topics that are none of these rows'. */
  otherRecords: z.number(),
  outboxes: z.array(
    z.object({
      outbox: z.string(),
      rows: z.number(),
      /** Published (`retire: keep`: created) between; UTC. */
      since: z.string().nullable(),
      until: z.string(),
      unencodable: z.array(z.string()),
    }),
  ),
  /** Outboxes whose rows are deleted when they are sent: nothing of them can be verified. */
  skipped: z.array(z.string()),
  topics: z.array(z.object({ topic: z.string(), rows: z.number(), compacted: z.boolean(), exists: z.boolean() })),
  records: z.number(),
  /** The first of each kind; `more`: there are further ones. */
  findings: z.array(finding),
  more: z.boolean(),
});
export type VerifyReport = z.infer<typeof verifySchema>;

const KEPT_UNENCODABLE = 100;

export function verifyReport(verified: Verified, settings: Settings, skipped: readonly string[]): VerifyReport {
  const { counts, outboxes, findings, topics, records } = verified;
  const { strays, ...others } = counts;
  const unencodable = outboxes.reduce((sum, outbox) => sum + outbox.unencodable.length, 0);
  const { missing, altered, reordered, duplicates } = counts;
  const told = (kind: NamedFinding['kind']) => findings.filter((each) => each.kind === kind).length;
  return {
    version: 1,
    ok: missing + altered + reordered + unencodable === 0,
    ...others,
    rows: counts.rows + unencodable,
    unencodable,
    otherRecords: strays,
    outboxes: outboxes.map(({ index, rows, since, until, unencodable: ids }) => ({
      outbox: outboxName(settings.outboxes[index]),
      rows: rows + ids.length,
      since: since === null ? null : utc(since),
      until: utc(until),
      unencodable: ids.slice(0, KEPT_UNENCODABLE),
    })),
    skipped: [...skipped],
    topics: topics.map(({ name, rows, compacted, exists }) => ({ topic: name, rows, compacted, exists })),
    records,
    findings: findings.map(({ kind, outbox, topic, row, parts, places }) => ({
      kind,
      outbox: outboxName(settings.outboxes[outbox]),
      topic,
      id: row?.id ?? null,
      headerId: row?.headerId ?? null,
      key: row?.key?.toString() ?? null,
      keyHex: row?.key?.toString('hex') ?? null,
      parts: [...parts],
      places: [...places],
    })),
    more:
      told('missing') < missing ||
      told('altered') < altered ||
      told('reordered') < reordered ||
      // A finding tells of all records of a row.
      (told('duplicate') > 0 && duplicates > findings.reduce((sum, each) => sum + extra(each), 0)),
  };
}

function extra({ kind, places }: NamedFinding): number {
  return kind === 'duplicate' ? places.length - 1 : 0;
}

/** Findings of each kind that people are shown. */
const SHOWN = 10;

/** The verdict first, then the facts, then what to do. */
export function verifyText(report: VerifyReport): string {
  const { rows, missing, altered, reordered, duplicates, unencodable } = report;
  const [first] = report.outboxes;
  const since = report.outboxes.length === 1 ? first.since : null;
  const when = since === null ? `up to ${first.until}` : `between ${since} and ${first.until}`;
  const counts = `${countText(missing)} missing, ${countText(altered)} altered, ${countText(reordered)} reordered, ${countText(duplicates)} duplicates`;
  const judged = rows - report.expired - report.compacted - report.undelivered;
  const verdict =
    missing + unencodable > 0
      ? `${countText(missing + unencodable)} NOT in Kafka`
      : report.ok
        ? rows === 0
          ? 'nothing to verify'
          : 'all in Kafka'
        : 'all in Kafka, but not as they should be';
  const lines = [`verify: ${rowsText(judged)} published ${when}: ${verdict}, ${counts}`];
  const apart = (count: number, text: string): void => {
    if (count > 0) lines.push(`  ${countText(count)} ${text}`);
  };
  apart(unencodable, 'cannot become a record, and say that they are published');
  apart(report.expired, 'not judged: not in the topic any more by its retention');
  apart(report.compacted, 'not judged: the topic is compacted, and a later record of their key has replaced them');
  apart(report.undelivered, 'not judged: created too close to the checkpoint to say that they have been sent');
  apart(report.outOfTurn, 'later than their place: delayed or retried, which is as it should be');
  apart(report.replayed, 'records sent once more on purpose (header cdc-relay-replay)');
  for (const topic of report.topics) {
    if (!topic.exists)
      lines.push(`  topic ${escapedText(topic.topic)} does not exist; ${rowsText(topic.rows)} name it`);
  }
  for (const outbox of report.skipped) {
    lines.push(`  ${escapedText(outbox)} not looked at: its rows are deleted when they are sent (retire: delete)`);
  }
  for (const kind of ['missing', 'altered', 'reordered', 'duplicate'] as const) {
    const own = report.findings.filter((each) => each.kind === kind);
    for (const each of own.slice(0, SHOWN)) lines.push(findingText(each));
    if (own.length > SHOWN) lines.push(`  ... and more of these: --json has up to ${countText(own.length)}`);
  }
  return lines.join('\n');
}

function findingText({ kind, outbox, topic, id, key, parts, places }: VerifyReport['findings'][number]): string {
  const row = `row ${id === null ? '(gone)' : escapedText(id)} of ${escapedText(outbox)}`;
  const pair = `${escapedText(topic)} / ${key === null ? '(no aggregate)' : escapedText(key)}`;
  const at = places.map(({ partition, offset }) => `${partition}:${countText(offset)}`);
  const what = {
    missing: '',
    altered: `${parts.join(', ')} at ${at.join(', ')}`,
    reordered: `at ${at[0]}, before an earlier row's ${at[1]}`,
    duplicate: `at ${at.join(', ')}`,
  }[kind];
  return `${kind.padEnd(9)}  ${row}  ${pair}  ${what}`.trimEnd();
}

/** A DATETIME in UTC as ISO 8601. */
function utc(time: string): string {
  return `${time.replace(' ', 'T')}Z`;
}
