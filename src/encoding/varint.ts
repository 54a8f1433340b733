/**
 * Kafka's variable-length integers (protobuf's zigzag encoding, little end first, seven bits a byte), as records of
 * magic 2 use them: https://kafka.apache.org/documentation/#recordheader
 */

/** Bytes that `writeVarint` takes for a 32-bit signed integer: 1 to 5. */
export function varintLength(n: number): number {
  const zigzag = ((n << 1) ^ (n >> 31)) >>> 0;
  if (zigzag < 0x80) return 1;
  if (zigzag < 0x4000) return 2;
  if (zigzag < 0x20_0000) return 3;
  return zigzag < 0x1000_0000 ? 4 : 5;
}

/** Writes a 32-bit signed integer in its shortest form; returns the offset behind it. */
export function writeVarint(out: Buffer, at: number, n: number): number {
  let zigzag = (n << 1) ^ (n >> 31);
  while ((zigzag & ~0x7f) !== 0) {
    out[at++] = (zigzag & 0x7f) | 0x80;
    zigzag >>>= 7;
  }
  out[at++] = zigzag;
  return at;
}

/** Bytes that `writeVarlong` takes for a safe integer. */
export function varlongLength(n: number): number {
  let rest = Math.floor(magnitude(n) / 64);
  let length = 1;
  for (; rest > 0; rest = Math.floor(rest / 128)) length++;
  return length;
}

/** Writes a safe integer (|n| <= 2^53) as a 64-bit varint; returns the offset behind it. */
export function writeVarlong(out: Buffer, at: number, n: number): number {
  // The zigzag form of 2^53 is no safe integer: the sign joins the six lowest bits before anything is doubled.
  const m = magnitude(n);
  let byte = (m % 64) * 2 + (n < 0 ? 1 : 0);
  let rest = Math.floor(m / 64);
  while (rest > 0) {
    out[at++] = byte | 0x80;
    byte = rest % 128;
    rest = Math.floor(rest / 128);
  }
  out[at++] = byte;
  return at;
}

/** Zigzag without its lowest bit. */
function magnitude(n: number): number {
  return n < 0 ? -n - 1 : n;
}
