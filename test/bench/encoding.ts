import { crc32c } from '../../src/encoding/crc32c.ts';
import { jsonTextLength, writeJson } from '../../src/encoding/json-text.ts';
import { partitionOf } from '../../src/encoding/murmur2.ts';
import { BATCH_HEADER_BYTES, sealBatch } from '../../src/encoding/record-batch.ts';
import { recordBound, recordLength, writeRecord } from '../../src/encoding/record.ts';
import { emptyRow, Form, type OutboxRow } from '../../src/model/row.ts';
import { encodeJson, fromPlain } from '../unit/encoding/binary-json.ts';

/** `node test/bench/encoding.ts`: what the bytes of the hot path cost on one core. */
const BATCH_BYTES = 1024 * 1024;
const BATCH_RECORDS = 2_000;
const DOCUMENTS = 1_000;
const ROUNDS = 5;
const ROUND_MS = 400;

const documents = Array.from({ length: DOCUMENTS }, (_, i) => encodeJson(fromPlain(order(i))));
const texts = documents.map((document) => {
  const out = Buffer.alloc(document.length * 6);
  return out.subarray(0, writeJson(document, 0, document.length, out, 0));
});
const headers = encodeJson(fromPlain({ traceparent: `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01` }));
const batch = Buffer.allocUnsafeSlow(BATCH_BYTES);
const meanBytes = (buffers: Buffer[]): number => buffers.reduce((sum, { length }) => sum + length, 0) / DOCUMENTS;
say(`document: ${meanBytes(documents)} bytes of binary JSON, ${meanBytes(texts)} bytes of text`);

measure('writeJson', 'documents', () => {
  for (const document of documents) writeJson(document, 0, document.length, batch, 0);
  return DOCUMENTS;
});
measure('jsonTextLength', 'documents', () => {
  for (const document of documents) jsonTextLength(document, 0, document.length);
  return DOCUMENTS;
});
measure('partitionOf', 'keys', () => {
  for (const text of texts) partitionOf(text, 0, 8, 12);
  return DOCUMENTS;
});
measure('crc32c', 'MiB', () => {
  crc32c(batch, 21, BATCH_BYTES);
  return 1;
});
measure('batches, JSON values', 'records', () => fillBatch(documents, Form.Json, null));
measure('batches, JSON values and headers', 'records', () => fillBatch(documents, Form.Json, headers));
measure('batches, text values', 'records', () => fillBatch(texts, Form.Text, null));

/** A batch as the relay makes it, up to its limits; returns its records. */
function fillBatch(values: Buffer[], form: Form, ownHeaders: Buffer | null): number {
  const row = rowOf(ownHeaders);
  let end = BATCH_HEADER_BYTES;
  let records = 0;
  for (; records < BATCH_RECORDS; records++) {
    const value = values[records % DOCUMENTS];
    row.value.form = form;
    row.value.buffer = value;
    row.value.end = value.length;
    const room = BATCH_BYTES - end;
    if (room < recordBound(row) && room < recordLength(row, records, records)) break;
    end = writeRecord(batch, end, row, records, records);
  }
  sealBatch(batch, end, {
    records,
    baseTimestampMs: 1_796_000_000_000,
    maxTimestampMs: 1_796_000_000_000 + records,
    producer: { id: 4711n, epoch: 0 },
    baseSequence: 0,
    compression: 'none',
  });
  return records;
}

function rowOf(ownHeaders: Buffer | null): OutboxRow {
  const row = emptyRow();
  Object.assign(row.key, { form: Form.Text, buffer: Buffer.from('agg-4711'), end: 8 });
  Object.assign(row.idempotencyKey, { form: Form.Uuid, buffer: Buffer.alloc(16, 0xa5), end: 16 });
  Object.assign(row.eventType, { form: Form.Text, buffer: Buffer.from('OrderCreated'), end: 12 });
  if (ownHeaders !== null) Object.assign(row.headers, { form: Form.Json, buffer: ownHeaders, end: ownHeaders.length });
  return row;
}

/** The shape of an ordinary event: some 300 bytes of text. */
function order(i: number): object {
  return {
    orderId: i,
    customer: `customer-${i % 977}`,
    status: 'CREATED',
    total: (i % 10_000) / 100 + 0.5,
    currency: 'EUR',
    createdAt: '2026-11-30T10:00:00.000Z',
    lines: [
      { sku: `SKU-${i % 333}`, qty: (i % 5) + 1, price: 19.99 },
      { sku: `SKU-${i % 131}`, qty: 1, price: 5.25 },
    ],
    note: 'x'.repeat(60),
  };
}

/** The best of some rounds: what else the machine does only ever takes away. */
function measure(name: string, unit: string, once: () => number): void {
  let best = 0;
  for (let round = 0; round < ROUNDS; round++) {
    let done = 0;
    const start = performance.now();
    let elapsedMs = 0;
    for (; elapsedMs < ROUND_MS; elapsedMs = performance.now() - start) done += once();
    best = Math.max(best, (done / elapsedMs) * 1000);
  }
  say(`${name.padEnd(34)} ${Math.round(best).toLocaleString('en').padStart(12)} ${unit}/s`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
