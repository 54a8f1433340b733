/**
 * Murmur2 as Kafka's Java client computes it (org.apache.kafka.common.utils.Utils.murmur2): a key goes to the same
 * partition whoever sends it.
 */
const SEED = 0x9747b28c;
const M = 0x5bd1e995;

/** Hash of `buffer[start, end)`: a signed 32-bit integer like Java's. */
export function murmur2(buffer: Buffer, start: number, end: number): number {
  let hash = SEED ^ (end - start);
  let at = start;
  for (; at + 4 <= end; at += 4) {
    let k = buffer[at] | (buffer[at + 1] << 8) | (buffer[at + 2] << 16) | (buffer[at + 3] << 24);
    k = Math.imul(k, M);
    k = Math.imul(k ^ (k >>> 24), M);
    hash = Math.imul(hash, M) ^ k;
  }
  const left = end - at;
  if (left > 0) {
    if (left === 3) hash ^= buffer[at + 2] << 16;
    if (left >= 2) hash ^= buffer[at + 1] << 8;
    hash = Math.imul(hash ^ buffer[at], M);
  }
  hash = Math.imul(hash ^ (hash >>> 13), M);
  return hash ^ (hash >>> 15);
}

/** The partition that Java's default partitioner gives the key `buffer[start, end)`. */
export function partitionOf(buffer: Buffer, start: number, end: number, partitions: number): number {
  return (murmur2(buffer, start, end) & 0x7fffffff) % partitions;
}
