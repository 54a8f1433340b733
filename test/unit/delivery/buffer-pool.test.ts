import { describe, expect, test } from 'vitest';
import { BufferPool } from '../../../src/delivery/buffer-pool.ts';

const KIB = 1024;

describe('the buffer pool', () => {
  test('gives the smallest class that fits', () => {
    const pool = new BufferPool(4 * KIB * KIB, KIB * KIB);
    expect(pool.take(100)?.length).toBe(16 * KIB);
    expect(pool.take(16 * KIB + 1)?.length).toBe(64 * KIB);
    expect(pool.take(KIB * KIB)?.length).toBe(KIB * KIB);
    expect(pool.take(KIB * KIB + 1)).toBeNull();
  });

  test('never hands out more than its bound, and goes on when a buffer comes back', async () => {
    const pool = new BufferPool(2 * KIB * KIB, KIB * KIB);
    const first = pool.take(KIB * KIB)!;
    pool.take(KIB * KIB);
    expect(pool.take(1)).toBeNull();
    const returned = pool.returned();
    pool.give(first);
    await returned;
    expect(pool.take(KIB * KIB)).toBe(first);
    expect(pool.takenBytes).toBe(2 * KIB * KIB);
  });

  test('idle buffers of one class make room for another', () => {
    const pool = new BufferPool(KIB * KIB, KIB * KIB);
    const small = Array.from({ length: 64 }, () => pool.take(16 * KIB)!);
    expect(pool.take(1)).toBeNull();
    for (const buffer of small) pool.give(buffer);
    expect(pool.takenBytes).toBe(0);
    expect(pool.take(KIB * KIB)).not.toBeNull();
  });

  test('a record larger than any class gets a buffer of its own, one at a time', () => {
    const pool = new BufferPool(KIB * KIB, KIB * KIB);
    const own = pool.takeOversize(3 * KIB * KIB)!;
    expect(own.length).toBe(3 * KIB * KIB);
    expect(pool.takeOversize(5)).toBeNull();
    pool.give(own);
    expect(pool.takeOversize(5)?.length).toBe(5);
  });

  test('refuses a buffer that is not its own', () => {
    const pool = new BufferPool(KIB * KIB, KIB * KIB);
    expect(() => pool.give(Buffer.alloc(7))).toThrow('not of this pool');
  });
});
