import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { OutboxColumns, OutboxSettings } from '../model/settings.ts';
import { STATE_KEYS } from './mapping.ts';
import type { TableShape } from './table-shape.ts';

/** Statements that are still missing; null: done already, or not needed. */
export interface Plan {
  /** Adds the columns. Rows that are there, and all that come before the cut, count as published. */
  readonly addColumns: string | null;
  readonly addIndex: string | null;
  /** From here on rows are pending. Together with the position it is made while nobody can write the table. */
  readonly cut: string | null;
}

/** A row from before the cut is due since then; nothing reads it. */
const BEFORE = '2000-01-01 00:00:00';

const DEFINITIONS: Readonly<Partial<Record<keyof OutboxColumns, string>>> = {
  status: `ENUM ('pending', 'processing', 'published', 'failed') CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'published'`,
  // A default that is an expression would make the server write every row anew: it comes with the cut.
  availableAt: `DATETIME(6) NOT NULL DEFAULT '${BEFORE}'`,
  claimedAt: 'DATETIME(6) NULL',
  claimedBy: 'BINARY(16) NULL',
  attempts: 'INT UNSIGNED NOT NULL DEFAULT 0',
  lastError: 'VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL',
  publishedAt: 'DATETIME(6) NULL',
};

/** What makes the table one whose rows can be marked or deleted. Pure. */
export function planFor(shape: TableShape, { schema, table, columns, retire }: OutboxSettings): Plan {
  if (retire === 'keep') return { addColumns: null, addIndex: null, cut: null };
  const name = quoteTable(schema, table);
  const keys = retire === 'mark' ? [...STATE_KEYS, 'publishedAt' as const] : STATE_KEYS;
  const find = (column: string) => shape.columns.find((each) => each.name.toLowerCase() === column.toLowerCase());
  const missing = keys.filter((key) => find(columns[key]!) === undefined);
  const adds = missing.map((key) => `ADD COLUMN ${quoteIdentifier(columns[key]!)} ${DEFINITIONS[key]!}`);
  const [status, availableAt] = [columns.status!, columns.availableAt!];
  const wanted = [status, availableAt, columns.id].map((column) => column.toLowerCase());
  const isThere = [...shape.indexes.values()].some((index) => {
    return wanted.every((column, n) => index[n]?.toLowerCase() === column);
  });
  const index = shape.indexes.has('waiting') ? 'cdc_relay_waiting' : 'waiting';
  const cuts = [
    ...(isPending(find(status)?.default) ? [] : [`ALTER COLUMN ${quoteIdentifier(status)} SET DEFAULT 'pending'`]),
    ...(isNow(find(availableAt)?.default)
      ? []
      : [`ALTER COLUMN ${quoteIdentifier(availableAt)} SET DEFAULT (UTC_TIMESTAMP(6))`]),
  ];
  return {
    addColumns: adds.length === 0 ? null : `ALTER TABLE ${name} ${adds.join(', ')}, ALGORITHM=INSTANT`,
    addIndex: isThere
      ? null
      : `ALTER TABLE ${name} ADD INDEX ${quoteIdentifier(index)} (${[status, availableAt, columns.id].map(quoteIdentifier).join(', ')}), ALGORITHM=INPLACE, LOCK=NONE`,
    cut: cuts.length === 0 ? null : `ALTER TABLE ${name} ${cuts.join(', ')}, ALGORITHM=INSTANT`,
  };
}

/** MariaDB shows literals in quotes. */
function isPending(value: string | null | undefined): boolean {
  return value === 'pending' || value === "'pending'";
}

function isNow(value: string | null | undefined): boolean {
  return /^\(?(utc_timestamp|current_timestamp|now)\b/i.test(value ?? '');
}
