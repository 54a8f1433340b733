import { deflateSync, zstdCompressSync } from 'node:zlib';
import { LogWriter } from './log-writer.ts';

export const ZSTD = 0;
export const NONE = 255;

export interface PayloadParts {
  readonly compression?: number;
  readonly says?: number;
  readonly size?: number;
}

/** Events as they lie inside a payload: one behind the other, without checksums. */
export function eventsInside(write: (log: LogWriter) => void): Buffer {
  const log = new LogWriter({ file: 'binlog.000001', offset: 4 }, false);
  write(log);
  return Buffer.concat(log.events);
}

/** The body of a TRANSACTION_PAYLOAD. */
export function payloadOf(
  events: Buffer,
  { compression = ZSTD, says = events.length, size }: PayloadParts = {},
): Buffer {
  const bytes = compression === ZSTD ? zstdCompressSync(events) : events;
  return Buffer.concat([field(2, compression), field(3, says), field(1, size ?? bytes.length), Buffer.of(0), bytes]);
}

function field(type: number, value: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = 254;
  bytes.writeBigUInt64LE(BigInt(value), 1);
  return Buffer.concat([Buffer.of(type, bytes.length), bytes]);
}

/** Adds an event as MariaDB's `log_bin_compress` writes it: all but the first `headBytes` of its body are compressed. */
export function addCompressed(
  log: LogWriter,
  type: number,
  headBytes: number,
  write: (log: LogWriter) => void,
): Buffer {
  const event = eventsInside(write);
  const packed = event.subarray(19 + headBytes);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(packed.length);
  return log.add(
    type,
    Buffer.concat([event.subarray(19, 19 + headBytes), Buffer.of(0x84), length, deflateSync(packed)]),
  );
}
