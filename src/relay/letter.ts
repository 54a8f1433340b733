import { type AddedHeader, letterBatch, type RecordParts } from '../encoding/dead-letter.ts';
import { sealBatch } from '../encoding/record-batch.ts';
import type { Fault } from '../model/fault.ts';
import type { ProducerIdentity } from '../model/publisher.ts';
import { type RowId, shownId } from '../model/row-ids.ts';

/** What is to be said of a row that fails. */
export interface Letter {
  readonly outbox: number;
  readonly id: RowId;
  /** Where it could not go; null: the row's own word, where there is a row. */
  readonly topic: string | null;
  readonly fault: Fault;
  readonly attempts: number;
  /** Of the row, milliseconds since the epoch; absent: it fails for the first time. */
  readonly firstFailureMs?: number | undefined;
}

/** The letter, or what is sent when that is too large. */
export interface Version {
  readonly parts: RecordParts;
  readonly added: readonly AddedHeader[];
}

const NOTHING = Buffer.alloc(0);
const OMITTED = 'omitted';
const NO_HEADERS: AddedHeader = ['dlq-headers', OMITTED];

/** `table`: `schema.table`. Times are ISO 8601, UTC. */
export function letterHeaders({ id, topic, fault, attempts, firstFailureMs }: Letter, table: string, nowMs: number) {
  const headers: AddedHeader[] = [
    ['dlq-reason', fault.detail],
    ['dlq-code', fault.code],
    ['dlq-attempts', String(attempts)],
    ['dlq-outbox', table],
    ['dlq-row-id', shownId(id)],
    ['dlq-first-failure', new Date(firstFailureMs ?? nowMs).toISOString()],
    ['dlq-last-failure', new Date(nowMs).toISOString()],
  ];
  if (topic !== null) headers.push(['dlq-topic', topic]);
  return headers;
}

/**
 * The letter, then without its value, then without its own headers too: what the dead-letter topic takes in the end
 * names the row, and says what is missing. `isWhole` false: the row's headers could not be read to begin with.
 */
export function versionsOf(parts: RecordParts, isWhole: boolean, headers: readonly AddedHeader[]): Version[] {
  const added = isWhole ? headers : [...headers, NO_HEADERS];
  const versions: Version[] = [{ parts, added }];
  let shorter = versions[0];
  if (parts.value !== null) {
    const bytes: AddedHeader = ['dlq-value-bytes', String(parts.value.length)];
    shorter = { parts: { ...parts, value: null }, added: [...added, ['dlq-value', OMITTED], bytes] };
    versions.push(shorter);
  }
  if (parts.headers > 0) {
    const bare = { ...shorter.parts, headers: 0, headerBytes: NOTHING };
    versions.push({ parts: bare, added: isWhole ? [...shorter.added, NO_HEADERS] : shorter.added });
  }
  return versions;
}

/** Names of the headers that say what was left out. */
export function omitted({ added }: Version): string[] {
  return added.filter(([, text]) => text === OMITTED).map(([name]) => name);
}

/** The time is the letter's own: its topic's retention must not count from when the row was written. */
export function sealLetter(
  { parts, added }: Version,
  producer: ProducerIdentity,
  baseSequence: number,
  nowMs: number,
): Buffer {
  const bytes = letterBatch(parts, added);
  const time = { baseTimestampMs: nowMs, maxTimestampMs: nowMs };
  sealBatch(bytes, bytes.length, { records: 1, ...time, producer, baseSequence, compression: 'none' });
  return bytes;
}
