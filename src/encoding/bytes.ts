/** Up to here copying byte by byte is faster than a call out of JavaScript (30 ns). */
const SHORT_BYTES = 32;

/** Copies `source[start, end)`; returns the offset behind it. */
export function writeBytes(out: Buffer, at: number, source: Buffer, start: number, end: number): number {
  if (end - start > SHORT_BYTES) {
    source.copy(out, at, start, end);
    return at + end - start;
  }
  for (let i = start; i < end; i++) out[at++] = source[i];
  return at;
}
