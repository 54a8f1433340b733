import { writeField } from '../encoding/field.ts';
import { Form, type OutboxRow } from '../model/row.ts';
import type { RecordView } from './batch-records.ts';

/** In front of an idempotency key that stands for a missing aggregate id: no UTF-8 text begins with it. */
export const NO_AGGREGATE = '\u00ff';

const UUID_BYTES = 16;
const UUID_TEXT_BYTES = 36;
/** The text, and its length in front. */
const uuid = Buffer.alloc(1 + UUID_TEXT_BYTES);

/**
 * What a row is waited for by: its aggregate id. A row without one waits for itself alone: `NO_AGGREGATE` and its
 * idempotency key as header `id` has it. As text with one character a byte, to be looked up by.
 */
export function scopeKeyText({ key, idempotencyKey }: OutboxRow): string {
  if (key.form !== Form.Null) return key.buffer.toString('latin1', key.start, key.end);
  const { form, buffer, start, end } = idempotencyKey;
  // What is too long for a UUID never becomes a record.
  if (form !== Form.Uuid || end - start > UUID_BYTES)
    return `${NO_AGGREGATE}${form === Form.Null ? '' : buffer.toString('latin1', start, end)}`;
  return `${NO_AGGREGATE}${uuid.toString('latin1', 1, writeField(uuid, 0, idempotencyKey, true))}`;
}

/** The same of a row that has become a record. */
export function recordKeyText({ isKeyless, buffer, start, end }: RecordView): string {
  const text = buffer.toString('latin1', start, end);
  return isKeyless ? `${NO_AGGREGATE}${text}` : text;
}
