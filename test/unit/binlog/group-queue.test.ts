import { describe, expect, it } from 'vitest';
import { GroupQueue } from '../../../src/binlog/group-queue.ts';
import type { TransactionGroup } from '../../../src/model/source.ts';

function group(offset: number): TransactionGroup {
  return { transactions: [], reached: { file: 'f.1', offset }, last: null, skipped: [], worthSaving: false };
}

describe('the queue between socket and puller', () => {
  it('hands out in order what was pushed, and waits for what is not there yet', async () => {
    const queue = new GroupQueue();
    queue.push(group(1), 0);
    const waiting = (async () => [await queue.pull(), await queue.pull()])();
    await Promise.resolve();
    queue.push(group(2), 0);
    expect((await waiting).map((each) => each?.reached.offset)).toEqual([1, 2]);
  });

  it('is full at four groups, or at a quarter of a megabyte', async () => {
    const queue = new GroupQueue();
    for (const n of [1, 2, 3]) queue.push(group(n), 0);
    expect(queue.isFull).toBe(false);
    queue.push(group(4), 0);
    expect(queue.isFull).toBe(true);
    await queue.pull();
    expect(queue.isFull).toBe(false);
    queue.push(group(5), 256 * 1024);
    await queue.pull();
    await queue.pull();
    await queue.pull();
    expect(queue.isFull).toBe(true);
    await queue.pull();
    expect(queue.isFull).toBe(false);
    expect(queue.isEmpty).toBe(true);
  });

  it('hands out what was pushed before the end, then the end, again and again', async () => {
    const queue = new GroupQueue();
    queue.push(group(1), 0);
    queue.end(new Error('first'));
    queue.end(null);
    expect((await queue.pull())?.reached.offset).toBe(1);
    await expect(queue.pull()).rejects.toThrow('first');
    await expect(queue.pull()).rejects.toThrow('first');
  });

  it('wakes a puller that waits at the end', async () => {
    const queue = new GroupQueue();
    const waiting = queue.pull();
    queue.end(null);
    expect(await waiting).toBeNull();
  });
});
