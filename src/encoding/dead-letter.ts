import { RelayError } from '../model/fault.ts';
import { type Field, Form, type OutboxRow } from '../model/row.ts';
import { fieldLength, writeField } from './field.ts';
import { BATCH_HEADER_BYTES } from './record-batch.ts';
import { recordLength, writeRecord } from './record.ts';
import { varintLength, writeVarint } from './varint.ts';

/** What of a record goes on when it is sent elsewhere. */
export interface RecordParts {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: number;
  /** The headers one behind the other, as they stand in the record. */
  readonly headerBytes: Buffer;
}

/** A header that is added: name and text. */
export type AddedHeader = readonly [name: string, text: string];

const NULL_LENGTH = -1;
const ATTRIBUTES_BYTES = 1;

/** Of the record `buffer[start, end)`, its length in front included: slices, nothing is copied. */
export function partsOfRecord(buffer: Buffer, start: number, end: number): RecordParts {
  const reader = new Reader(buffer, start);
  reader.varint();
  reader.skip(ATTRIBUTES_BYTES);
  reader.skipVarint(); // timestamp
  reader.skipVarint(); // offset
  const key = reader.bytes();
  const value = reader.bytes();
  const headers = reader.varint();
  return { key, value, headers, headerBytes: buffer.subarray(reader.at, end) };
}

/**
 * Of the record that a row would have become. Of a row that cannot become one: what can be encoded, and the bytes of
 * the column where that cannot; its own headers are left out then.
 */
export function partsOfRow(row: OutboxRow): { readonly parts: RecordParts; readonly isWhole: boolean } {
  try {
    const record = Buffer.allocUnsafe(recordLength(row, 0, 0));
    return { parts: partsOfRecord(record, 0, writeRecord(record, 0, row, 0, 0)), isWhole: true };
  } catch (error) {
    if (!isEncoding(error)) throw error;
  }
  const own = [['id', bytesOf(row.idempotencyKey)] as const, ['event-type', bytesOf(row.eventType)] as const];
  const headers = own.filter(([, value]) => value !== null);
  const headerBytes = Buffer.concat(headers.flatMap(([name, value]) => header(name, value!)));
  const parts = { key: bytesOf(row.key), value: bytesOf(row.value), headers: headers.length, headerBytes };
  return { parts, isWhole: false };
}

/** A batch of one record with these parts and headers added behind its own: to be sealed. */
export function letterBatch(parts: RecordParts, added: readonly AddedHeader[]): Buffer {
  const { key, value, headers, headerBytes } = parts;
  const chunks = [
    Buffer.alloc(ATTRIBUTES_BYTES + 2), // attributes, no difference in time, none in offset
    ...withLength(key),
    ...withLength(value),
    varint(headers + added.length),
    headerBytes,
    ...added.flatMap(([name, text]) => header(name, Buffer.from(text))),
  ];
  const length = chunks.reduce((bytes, chunk) => bytes + chunk.length, 0);
  return Buffer.concat([Buffer.alloc(BATCH_HEADER_BYTES), varint(length), ...chunks]);
}

function bytesOf(field: Field): Buffer | null {
  const { form, buffer, start, end } = field;
  if (form === Form.Null) return null;
  try {
    const encoded = Buffer.allocUnsafe(fieldLength(field));
    writeField(encoded, 0, field, true);
    return new Reader(encoded, 0).bytes();
  } catch (error) {
    if (!isEncoding(error)) throw error;
    return Buffer.from(buffer.subarray(start, end));
  }
}

function isEncoding(error: unknown): boolean {
  return error instanceof RelayError && error.fault.code === 'ROW_ENCODING';
}

function header(name: string, value: Buffer): Buffer[] {
  return [...withLength(Buffer.from(name)), ...withLength(value)];
}

function withLength(bytes: Buffer | null): Buffer[] {
  return bytes === null ? [varint(NULL_LENGTH)] : [varint(bytes.length), bytes];
}

function varint(n: number): Buffer {
  const out = Buffer.alloc(varintLength(n));
  writeVarint(out, 0, n);
  return out;
}

class Reader {
  at: number;
  readonly #buffer: Buffer;

  constructor(buffer: Buffer, at: number) {
    this.#buffer = buffer;
    this.at = at;
  }

  skip(bytes: number): void {
    this.at += bytes;
  }

  /** Of any width. */
  skipVarint(): void {
    while (this.#buffer[this.at++] >= 0x80);
  }

  varint(): number {
    let zigzag = 0;
    let byte: number;
    let shift = 0;
    do {
      byte = this.#buffer[this.at++];
      zigzag |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte >= 0x80);
    return (zigzag >>> 1) ^ -(zigzag & 1);
  }

  bytes(): Buffer | null {
    const length = this.varint();
    if (length < 0) return null;
    return this.#buffer.subarray(this.at, (this.at += length));
  }
}
