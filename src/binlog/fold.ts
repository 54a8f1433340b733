import { Form } from '../model/row.ts';
import type { LogPosition } from './log-position.ts';
import type { SourceCounters } from './source-counters.ts';
import type { RowReader } from './row-reader.ts';
import type { RowPlan } from './row-plan.ts';
import type { RowsEvent } from './rows-event.ts';
import { UndecodableError } from './undecodable.ts';

/** A row that the transaction inserted, as it stands at its end; in the order of the inserts. */
interface Kept {
  event: RowsEvent;
  plan: RowPlan;
  start: number;
  end: number;
  gone: boolean;
}

/**
 * Applies a transaction's own updates and deletes to the rows that it inserted (S16). What it changed of rows from
 * before is none of the tail's; updates that change such a row's primary key (REPLACE does, A1) are counted.
 * `position`: of its end. Throws an UndecodableError for images that cannot be followed, a RangeError for broken ones.
 */
export function fold(
  events: readonly RowsEvent[],
  reader: RowReader,
  counters: SourceCounters,
  position: LogPosition,
): RowsEvent[] {
  const rows: Kept[] = [];
  const byKey = new Map<string, Kept>();
  for (const event of events) {
    const { plan, before, buffer, end, seconds } = event;
    let at = event.start;
    while (at < end) {
      const start = at;
      if (event.change === 'insert') {
        at = reader.read(plan, buffer, start, end, seconds);
        const kept: Kept = { event, plan, start, end: at, gone: false };
        rows.push(kept);
        byKey.set(keyOf(reader, plan, position), kept);
      } else if (before === null) {
        at = reader.read(plan, buffer, start, end, seconds);
        const key = keyOf(reader, plan, position);
        const kept = byKey.get(key);
        if (kept !== undefined) kept.gone = true;
        byKey.delete(key);
      } else {
        const after = reader.read(before, buffer, start, end, seconds);
        const was = keyOf(reader, before, position);
        at = reader.read(plan, buffer, after, end, seconds);
        const became = plan.holdsId ? keyOf(reader, plan, position) : was;
        const kept = byKey.get(was);
        if (kept === undefined) {
          if (became !== was) counters.replaced += 1;
        } else {
          if (plan.missing === null || plan.holdsId) keep(kept, event, plan, after, at, position);
          // The key of before is all that is left; a change of what nobody needs leaves the row as it was.
          else if (plan.takes.length > 0) keep(kept, event, before, start, after, position);
          byKey.delete(was);
          byKey.set(became, kept);
        }
      }
      if (at === start) throw new RangeError('a row image without bytes');
    }
  }
  return joined(rows);
}

/** An image that is not complete says which row is to be read; one that seems to be whole and is not would be wrong. */
function keep(kept: Kept, event: RowsEvent, plan: RowPlan, start: number, end: number, position: LogPosition): void {
  if (event.plan.missing !== null && plan.missing === null) throw unfollowable(event.plan.missing, position);
  Object.assign(kept, { event, plan, start, end });
}

function keyOf({ row }: RowReader, plan: RowPlan, position: LogPosition): string {
  if (!plan.holdsId) throw unfollowable('the primary key', position);
  const { form, buffer, start, end } = row.idBytes;
  const bytes = form === Form.Null ? '' : buffer.toString('latin1', start, end);
  return `${plan.outbox}:${row.idHigh}:${row.idLow}:${bytes}`;
}

function unfollowable(column: string, position: LogPosition): UndecodableError {
  return new UndecodableError(
    'BINLOG_UNSUPPORTED',
    `${position.toString()}: a row was changed by the transaction that inserted it, and the log leaves out ${column}: ` +
      'binlog_row_image must be FULL where outbox rows are written',
  );
}

/** Neighbours in the log become one event again. */
function joined(rows: readonly Kept[]): RowsEvent[] {
  const events: RowsEvent[] = [];
  let last: RowsEvent | undefined;
  for (const { event, plan, start, end, gone } of rows) {
    if (gone) continue;
    if (last?.buffer === event.buffer && last.end === start && last.plan === plan && last.seconds === event.seconds) {
      last.end = end;
      continue;
    }
    last = { change: 'insert', plan, before: null, buffer: event.buffer, start, end, seconds: event.seconds };
    events.push(last);
  }
  return events;
}
