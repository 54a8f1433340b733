import { partitionOf } from '../../../src/encoding/murmur2.ts';
import { emptyRow, type Field, Form, type OutboxRow, type RowCursor } from '../../../src/model/row.ts';
import type { Entry } from './server-log.ts';
import { AGGREGATES, type PlannedRow, type Poison } from './plan.ts';

export type Status = 'pending' | 'processing' | 'published' | 'failed' | 'discarded';

/** One row of the outbox table. */
export interface TableRow {
  /** In commit order, from 0: how reports name it. */
  readonly number: number;
  readonly id: bigint;
  readonly topic: string;
  readonly key: string | null;
  readonly value: string;
  readonly entry: Entry;
  readonly isDelayed: boolean;
  readonly availableAtMs: number;
  readonly poison: Poison | null;
  status: Status;
  claimedBy: number | null;
  attempts: number;
  lastError: string | null;
  /** How often it had been refused when somebody retried it: nothing of that is on its account. */
  refusalsForgiven: number;
  /** What came behind it did not wait then, where failed rows release. */
  timesFailed: number;
  /** An operator has seen to it: it is not refused any more. */
  isMended: boolean;
  /** Transactions that hold it, the application's and the relay's. */
  holders: number;
}

export function makeRow(plan: PlannedRow, number: number, id: bigint, entry: Entry, insertedMs: number): TableRow {
  const { topic, key } = AGGREGATES[plan.aggregate];
  return {
    ...{ number, id, topic, key, entry },
    value: `value of r${number} `.padEnd(plan.valueBytes, '.'),
    isDelayed: plan.delayMs > 0,
    availableAtMs: plan.delayMs > 0 ? entry.loggedAtMs + plan.delayMs : insertedMs,
    poison: plan.poison,
    status: 'pending',
    claimedBy: null,
    attempts: 0,
    lastError: null,
    refusalsForgiven: 0,
    timesFailed: 0,
    isMended: false,
    holders: 0,
  };
}

/** The idempotency key, and the header that goes with the record. */
export function headerId(row: TableRow): string {
  return `r${row.number}`;
}

export function scopeKeyOf(row: TableRow): Buffer {
  return row.key === null ? Buffer.concat([Buffer.of(0xff), Buffer.from(headerId(row))]) : Buffer.from(row.key);
}

export function partitionOfRow(row: TableRow, partitions: number): number {
  const by = Buffer.from(row.key ?? headerId(row));
  return partitionOf(by, 0, by.length, partitions);
}

/** Rows as a port hands them on. `isComplete` false: only their ids. */
export function cursorOf(rows: readonly TableRow[], isComplete = true): RowCursor {
  const row = emptyRow();
  row.isComplete = isComplete;
  let next = 0;
  return {
    row,
    next() {
      if (next === rows.length) return false;
      fill(row, rows[next++]);
      return true;
    },
  };
}

function fill(row: OutboxRow, from: TableRow): void {
  row.idLow = Number(from.id & 0xffff_ffffn);
  row.idHigh = Number(from.id >> 32n);
  row.createdAtMs = from.entry.loggedAtMs;
  if (!row.isComplete) return;
  put(row.topic, from.topic);
  put(row.key, from.key);
  put(row.value, from.value);
  put(row.idempotencyKey, headerId(from));
}

export function textField(text: string | null): Field {
  const buffer = Buffer.from(text ?? '');
  return { form: text === null ? Form.Null : Form.Text, buffer, start: 0, end: buffer.length };
}

function put(field: Field, text: string | null): void {
  Object.assign(field, textField(text));
}
