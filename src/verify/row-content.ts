import { recordLength, writeRecord } from '../encoding/record.ts';
import { headersOf, readRecordBytes } from '../encoding/record-set.ts';
import { RelayError } from '../model/fault.ts';
import type { OutboxRow } from '../model/row.ts';
import type { Content } from './entries.ts';

/** Header by which the relay tells a record that was sent once more on purpose. */
const REPLAY_HEADER = 'cdc-relay-replay';
const ID_HEADER = 'id';

let scratch = Buffer.alloc(64 * 1024);

/**
 * The record that a row becomes, by the encoder of the relay itself: valid until the next call. Null: it cannot become
 * one.
 */
export function contentOfRow(row: OutboxRow, topic: number): Content | null {
  try {
    const length = recordLength(row, 0, 0);
    if (scratch.length < length) scratch = Buffer.alloc(2 * length);
    const record = readRecordBytes(scratch.subarray(0, writeRecord(scratch, 0, row, 0, 0)));
    return contentOf(record, topic)?.content ?? null;
  } catch (error) {
    if (error instanceof RelayError && error.fault.code === 'ROW_ENCODING') return null;
    throw error;
  }
}

interface Parts {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: number;
  readonly headerBytes: Buffer;
}

/** Null for a record without a header `id`: none of the relay's. */
export function contentOf(record: Parts, topic: number): { content: Content; replayed: boolean } | null {
  const headers = headersOf(record);
  const id = headers.find(({ name }) => name === ID_HEADER)?.value ?? null;
  if (id === null) return null;
  const replay = headers.filter(({ name }) => name === REPLAY_HEADER);
  let bytes = record.headerBytes;
  if (replay.length > 0) {
    const own = headers.filter(({ name }) => name !== REPLAY_HEADER);
    bytes = Buffer.concat(own.map(({ start, end }) => record.headerBytes.subarray(start, end)));
  }
  const { key, value } = record;
  return { content: { topic, id, key, value, headers: bytes }, replayed: replay.length > 0 };
}
