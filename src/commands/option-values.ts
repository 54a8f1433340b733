import { parseTableName } from '../config/table-name.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import { usageError } from './problem.ts';

export type Options = Readonly<Record<string, unknown>>;

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const AGE_EXPECTED = 'expected a number with s, m, h or d, such as 90m or 7d';
const LATEST_MS = Date.UTC(9999, 0);

export function textOption(options: Options, name: string): string | null {
  const value = options[name];
  return typeof value === 'string' ? value : null;
}

/** A whole number from 1 to `max`. */
export function countOption(options: Options, name: string, max: number): number | null {
  const text = textOption(options, name);
  if (text === null) return null;
  const count = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= max) return count;
  throw usageError(`--${name}: expected a whole number from 1 to ${max.toLocaleString('en')}`);
}

/** `90m`, `7d`. */
export function ageOption(options: Options, name: string, flag: string): number | null {
  const text = textOption(options, name);
  if (text === null) return null;
  const ageMs = ageOf(text);
  if (ageMs === null) throw usageError(`${flag}: ${AGE_EXPECTED}`);
  return ageMs;
}

/** An age, or a time in UTC such as 2026-11-29T22:00Z. */
export function sinceOption(options: Options, name: string): { agoMs: number } | { atMs: number } | null {
  const text = textOption(options, name);
  if (text === null) return null;
  const agoMs = ageOf(text);
  if (agoMs !== null) return { agoMs };
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?Z)?$/.test(text);
  const atMs = isTime ? Date.parse(text) : NaN;
  // The 31st of a month that has none would be taken for the 1st of the next one.
  const isThere = !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(text.slice(0, 10));
  if (!isThere) throw usageError(`--${name}: ${AGE_EXPECTED}, or a time in UTC, such as 2026-11-29T22:00Z`);
  return { atMs };
}

function ageOf(text: string): number | null {
  const match = /^(\d{1,9})(s|m|h|d)$/.exec(text);
  if (match === null) return null;
  const ageMs = Number(match[1]) * UNITS_MS[match[2]];
  return ageMs < LATEST_MS / 10 ? ageMs : null;
}

/** Outboxes that keep a status, or the one of them that `--outbox` names. */
export function outboxesWithStatus(settings: Settings, options: Options): OutboxSettings[] {
  const all = settings.outboxes.filter(({ retire, columns }) => retire !== 'keep' && columns.status !== null);
  if (all.length === 0) throw usageError('no outbox keeps a status: all have retire: keep');
  const named = textOption(options, 'outbox');
  if (named === null) return all;
  const name = parseTableName(named);
  const schema = name?.schema ?? settings.mysql.database;
  const found = all.filter((outbox) => outbox.schema === schema && outbox.table === name?.table);
  if (found.length > 0) return found;
  throw usageError('--outbox: no outbox of that name that keeps a status', `one of ${all.map(outboxName).join(', ')}`);
}

/** The outbox that ids belong to. */
export function oneOutbox(settings: Settings, options: Options): OutboxSettings {
  const outboxes = outboxesWithStatus(settings, options);
  if (outboxes.length === 1) return outboxes[0];
  throw usageError(
    'ids name rows of one outbox, and there are several',
    `--outbox ${outboxes.map(outboxName).join(' or ')}`,
  );
}

export function outboxName({ schema, table }: Pick<OutboxSettings, 'schema' | 'table'>): string {
  return `${schema}.${table}`;
}
