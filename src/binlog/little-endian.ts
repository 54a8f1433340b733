/** Unsigned little-endian integers; plain arithmetic, since Buffer's own readers cost a bounds check and a call each. */

export function u16(b: Buffer, p: number): number {
  return b[p] | (b[p + 1] << 8);
}

export function u24(b: Buffer, p: number): number {
  return b[p] | (b[p + 1] << 8) | (b[p + 2] << 16);
}

export function u32(b: Buffer, p: number): number {
  return (b[p] | (b[p + 1] << 8) | (b[p + 2] << 16) | (b[p + 3] << 24)) >>> 0;
}

export function u48(b: Buffer, p: number): number {
  return u32(b, p) + u16(b, p + 4) * 0x1_0000_0000;
}

export function u56(b: Buffer, p: number): number {
  return u32(b, p) + u24(b, p + 4) * 0x1_0000_0000;
}

/** Exact up to 2^53: file offsets, transaction numbers. */
export function u64(b: Buffer, p: number): number {
  return u32(b, p) + u32(b, p + 4) * 0x1_0000_0000;
}
