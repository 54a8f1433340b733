import { createZstdDecompress, zstdDecompressSync } from 'node:zlib';
import { HEADER_BYTES } from './event-header.ts';
import { PackedReader } from './packed-reader.ts';

/** What the events of one transaction were packed into. */
export interface Payload {
  readonly bytes: Buffer;
  readonly isCompressed: boolean;
  /** What comes out of it; as the event says, so that it is held to. */
  readonly inflatedBytes: number;
}

/** More than this is inflated in steps, off this thread. */
export const AT_ONCE_BYTES = 1024 * 1024;

const STEP_BYTES = 256 * 1024;

const PAYLOAD_SIZE = 1;
const COMPRESSION = 2;
const INFLATED_SIZE = 3;
const ZSTD = 0;
const NONE = 255;

/**
 * TRANSACTION_PAYLOAD: type, length and value, packed integers: 1 size of the payload, 2 compression (0 zstd,
 * 255 none), 3 size of what is in it, 0 end (which has no length); then the payload.
 */
export function readPayload(buffer: Buffer, start: number, bodyEnd: number): Payload {
  const reader = new PackedReader(buffer, start + HEADER_BYTES, bodyEnd);
  let compression = NONE;
  let size = -1;
  let inflatedBytes = -1;
  for (let type = reader.integer(); type !== 0; type = reader.integer()) {
    const length = reader.integer();
    const value = new PackedReader(buffer, reader.skip(length), reader.at);
    if (type === PAYLOAD_SIZE) size = value.integer();
    else if (type === COMPRESSION) compression = value.integer();
    else if (type === INFLATED_SIZE) inflatedBytes = value.integer();
  }
  if (compression !== ZSTD && compression !== NONE) throw new RangeError('a payload packed in an unknown way');
  const isCompressed = compression === ZSTD;
  if (size !== reader.left) throw new RangeError('a payload whose size is not that of its event');
  if (isCompressed && inflatedBytes <= 0) throw new RangeError('a payload that does not say what is in it');
  const bytes = buffer.subarray(reader.at, bodyEnd);
  return { bytes, isCompressed, inflatedBytes: isCompressed ? inflatedBytes : size };
}

/** Throws when it is broken, or more or less comes out of it than it says. */
export function inflateAtOnce({ bytes, inflatedBytes }: Payload): Buffer {
  const inflated = zstdDecompressSync(bytes, { maxOutputLength: inflatedBytes });
  if (inflated.length !== inflatedBytes) throw new RangeError('a payload with less in it than it says');
  return inflated;
}

/** The same in pieces, each made when it is asked for. */
export async function* inflateInSteps({ bytes, inflatedBytes }: Payload): AsyncGenerator<Buffer, void, undefined> {
  const stream = createZstdDecompress({ chunkSize: STEP_BYTES });
  stream.end(bytes);
  let left = inflatedBytes;
  for await (const step of stream as AsyncIterable<Buffer>) {
    left -= step.length;
    if (left < 0) throw new RangeError('a payload with more in it than it says');
    yield step;
  }
  if (left > 0) throw new RangeError('a payload with less in it than it says');
}
