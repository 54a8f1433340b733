import { type Field, Form } from '../model/row.ts';

const UUID_BYTES = 16;

/**
 * Writes 64 bits of hash of an idempotency key to `out[at]` and `out[at + 1]`: what tells a row from another one that
 * has been given its id. A UUID counts with the trailing zeros that the binary log cuts.
 */
export function writeFingerprint(out: Uint32Array, at: number, { form, buffer, start, end }: Field): void {
  const length = form === Form.Uuid ? UUID_BYTES : end - start;
  let low = length;
  let high = form as number;
  for (let from = start; from < start + length; from += 4) {
    const word =
      from + 4 <= end
        ? buffer[from] | (buffer[from + 1] << 8) | (buffer[from + 2] << 16) | (buffer[from + 3] << 24)
        : lastWord(buffer, from, end);
    low = Math.imul(low ^ word, 0x9e3779b1);
    low ^= low >>> 15;
    high = Math.imul(high ^ word, 0x85ebca77);
    high ^= high >>> 13;
  }
  out[at] = low;
  out[at + 1] = high;
}

function lastWord(buffer: Buffer, from: number, end: number): number {
  let word = 0;
  for (let i = from; i < end; i++) word |= buffer[i] << ((i - from) * 8);
  return word;
}
