/** A character set of the server's, as far as its text is to become UTF-8. */
export interface Charset {
  readonly name: string;
  /** Bytes below 0x80 are the same in UTF-8: text of nothing else needs no conversion. */
  readonly isAsciiCompatible: boolean;
  /** Most bytes of UTF-8 that one byte becomes. */
  readonly growth: number;
  /**
   * Writes `source[start, end)` as UTF-8, byte for byte what `CONVERT(… USING utf8mb4)` gives: a question mark for what
   * the set does not define. `out` has room for `growth` times the bytes. Returns the offset behind it.
   */
  write(out: Buffer, at: number, source: Buffer, start: number, end: number): number;
}

/** What the server puts where a character has no Unicode. */
export const QUESTION_MARK = 0x3f;

/** True when the bytes mean the same in every ASCII-compatible set. */
export function isAscii(source: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (source[i] > 0x7f) return false;
  return true;
}

/** Writes one code point, a lone surrogate like any other of its size; returns the offset behind it. */
export function writeCodePoint(out: Buffer, at: number, code: number): number {
  if (code < 0x80) {
    out[at] = code;
    return at + 1;
  }
  if (code < 0x800) {
    out[at] = 0xc0 | (code >> 6);
    out[at + 1] = 0x80 | (code & 0x3f);
    return at + 2;
  }
  if (code < 0x1_0000) {
    out[at] = 0xe0 | (code >> 12);
    out[at + 1] = 0x80 | ((code >> 6) & 0x3f);
    out[at + 2] = 0x80 | (code & 0x3f);
    return at + 3;
  }
  out[at] = 0xf0 | (code >> 18);
  out[at + 1] = 0x80 | ((code >> 12) & 0x3f);
  out[at + 2] = 0x80 | ((code >> 6) & 0x3f);
  out[at + 3] = 0x80 | (code & 0x3f);
  return at + 4;
}
