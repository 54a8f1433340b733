import { RelayError } from '../../../src/model/fault.ts';
import type { OutboxSettings } from '../../../src/model/settings.ts';
import { Form, type Field, type OutboxRow } from '../../../src/model/row.ts';
import type { Source } from '../../../src/model/source.ts';
import type { Position } from '../../../src/model/position.ts';
import { type BinlogBed, checkpointAt, isBefore } from './binlog-bed.ts';

/** One field of each row from `from` to the end of the log, as hexadecimal digits; null for NULL. */
export async function tailedBytes(
  bed: BinlogBed,
  from: Position,
  outbox: OutboxSettings,
  field: (row: OutboxRow) => Field = (row) => row.key,
): Promise<(string | null)[]> {
  const source = bed.source({ outboxes: [outbox] });
  const to = await bed.head();
  try {
    return await readTo(to, source, from, field);
  } catch (error) {
    // A log that does not name its columns is read once more, as the engine does.
    if (error instanceof RelayError && error.fault.code === 'MYSQL_SCHEMA') return readTo(to, source, from, field);
    throw error;
  }
}

async function readTo(
  to: Position,
  source: Source,
  from: Position,
  field: (row: OutboxRow) => Field,
): Promise<(string | null)[]> {
  const found: (string | null)[] = [];
  for await (const group of source.stream(checkpointAt(from), AbortSignal.timeout(60_000))) {
    for (const transaction of group.transactions) {
      const cursor = transaction.rows();
      while (cursor.next()) found.push(hexOf(field(cursor.row)));
    }
    if (!isBefore(group.reached, to)) return found;
  }
  throw new Error('the end of the log was not reached');
}

function hexOf({ form, buffer, start, end }: Field): string | null {
  return form === Form.Null ? null : buffer.toString('hex', start, end);
}
