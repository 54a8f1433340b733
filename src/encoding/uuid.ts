const HEX = Buffer.from('0123456789abcdef', 'latin1');

/** Length of a UUID's text. */
export const UUID_TEXT_BYTES = 36;

/**
 * Writes the 16 bytes at `source[start, end)` as a UUID's text (lower case, with hyphens); returns the offset behind
 * it. Fewer bytes stand for a BINARY(16) whose trailing zeros the binary log has cut: they are put back.
 */
export function writeUuid(out: Buffer, at: number, source: Buffer, start: number, end: number): number {
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) out[at++] = 0x2d;
    const byte = start + i < end ? source[start + i] : 0;
    out[at++] = HEX[byte >>> 4];
    out[at++] = HEX[byte & 15];
  }
  return at;
}
