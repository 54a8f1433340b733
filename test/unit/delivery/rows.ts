import { emptyRow, type Field, Form, type OutboxRow } from '../../../src/model/row.ts';

/** An outbox row of made-up bytes, for tests of what does not read the bytes. */
export function madeRow(id: number, key: string, valueBytes = 40, outbox = 0): OutboxRow {
  const row = emptyRow();
  row.outbox = outbox;
  row.idLow = id;
  put(row.topic, Buffer.from('orders'));
  put(row.key, Buffer.from(key));
  put(row.value, Buffer.alloc(valueBytes, 'v'));
  put(row.idempotencyKey, Buffer.alloc(16, id));
  row.createdAtMs = 1_700_000_000_000 + id;
  return row;
}

function put(field: Field, bytes: Buffer): void {
  field.form = Form.Text;
  field.buffer = bytes;
  field.start = 0;
  field.end = bytes.length;
}
