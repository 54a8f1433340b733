import fc from 'fast-check';
import { emptyRow, type Field, Form, type OutboxRow } from '../../../src/model/row.ts';
import { encodeJson, type Json, jsonText, type JsonMap, sortedEntries } from './binary-json.ts';
import { documents, objects } from './documents.ts';
import type { DecodedRecord } from './kafkajs-protocol.ts';

/** A row as a test states it, and as the encoder gets it. */
export interface Stated {
  readonly key: Buffer | null;
  readonly value: Content;
  readonly eventType: string | null;
  readonly headers: JsonMap | null;
  /** JSON columns as binary JSON or as text: what a record holds must not depend on it. */
  readonly headersAsText: boolean;
  readonly id: Buffer | string;
  /** The job that sends it again. */
  readonly replay: string | null;
  readonly timestampDeltaMs: number;
}

type Content = { readonly bytes: Buffer } | { readonly json: Json } | null;

export const stated: fc.Arbitrary<Stated> = fc.record({
  key: fc.option(fc.uint8Array({ maxLength: 70 }).map((bytes) => Buffer.from(bytes))),
  value: fc.option(
    fc.oneof(
      documents.map((json) => ({ json })),
      fc.uint8Array({ maxLength: 300 }).map((bytes) => ({ bytes: Buffer.from(bytes) })),
      // Around the lengths at which a varint grows.
      fc
        .tuple(fc.constantFrom(63, 64, 8191, 8192), fc.integer({ min: -80, max: 20 }), fc.boolean())
        .map(([bytes, plus, control]) => ({ json: (control ? '\u0001' : 'x').repeat(Math.max(0, bytes + plus)) })),
    ),
    { freq: 10 },
  ),
  eventType: fc.option(fc.string({ unit: 'grapheme', maxLength: 80 })),
  headers: fc.option(objects),
  headersAsText: fc.boolean(),
  id: fc.oneof(
    fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes)),
    fc.string({ maxLength: 40 }),
  ),
  replay: fc.option(fc.bigInt({ min: 1n, max: 2n ** 64n - 1n }).map(String)),
  timestampDeltaMs: fc.oneof(fc.integer({ min: -1000, max: 100_000 }), fc.maxSafeInteger()),
});

export function toRow(row: Stated): OutboxRow {
  const filled = emptyRow();
  const { key, value, eventType, headers, headersAsText, id, replay } = row;
  if (key !== null) fill(filled.key, Form.Text, key);
  if (value !== null) {
    if ('bytes' in value) fill(filled.value, Form.Text, value.bytes);
    else fill(filled.value, Form.Json, encodeJson(value.json));
  }
  if (eventType !== null) fill(filled.eventType, Form.Text, Buffer.from(eventType));
  if (headers !== null && headersAsText) fill(filled.headers, Form.Text, Buffer.from(jsonText(headers)));
  else if (headers !== null) fill(filled.headers, Form.Json, encodeJson(headers));
  if (typeof id === 'string') fill(filled.idempotencyKey, Form.Text, Buffer.from(id));
  else fill(filled.idempotencyKey, Form.Uuid, id);
  if (replay !== null) fill(filled.replay, Form.Text, Buffer.from(replay));
  return filled;
}

/** Puts the bytes into the middle of a larger buffer, as rows of a packet are. */
export function fill(field: Field, form: Form, bytes: Buffer): void {
  field.form = form;
  field.buffer = Buffer.concat([Buffer.alloc(7, 0x22), bytes, Buffer.alloc(40, 0x5c)]);
  field.start = 7;
  field.end = 7 + bytes.length;
}

export function valueOf({ value }: Stated): Buffer | null {
  if (value === null) return null;
  return 'bytes' in value ? value.bytes : Buffer.from(jsonText(value.json));
}

export type Headers = [string, Buffer | null][];

/** The record's headers as kafkajs shows them: one value or, for a repeated name, a list. */
export function headersOf({ id, eventType, replay, headers }: Stated): DecodedRecord['headers'] {
  const hex = typeof id === 'string' ? '' : id.toString('hex');
  const idText = typeof id === 'string' ? id : hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  const list: Headers = [['id', Buffer.from(idText)]];
  if (eventType !== null) list.push(['event-type', Buffer.from(eventType)]);
  if (replay !== null) list.push(['cdc-relay-replay', Buffer.from(replay)]);
  for (const [key, value] of sortedEntries(headers ?? new Map<string, Json>())) list.push([key, headerValue(value)]);

  const shown: Record<string, Buffer | null | (Buffer | null)[] | undefined> = {};
  for (const [key, value] of list) {
    const present = shown[key];
    const all = present === undefined ? value : Array.isArray(present) ? [...present, value] : [present, value];
    Object.defineProperty(shown, key, { value: all, enumerable: true, configurable: true });
  }
  return shown as DecodedRecord['headers'];
}

function headerValue(value: Json): Buffer | null {
  if (value === null) return null;
  const text = jsonText(value);
  return Buffer.from(text.startsWith('"') ? (JSON.parse(text) as string) : text);
}
