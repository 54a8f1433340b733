import { describe, expect, it } from 'vitest';
import { OpenTransaction } from '../../../src/binlog/open-transaction.ts';
import type { RowPlan } from '../../../src/binlog/row-plan.ts';
import type { RowsEvent } from '../../../src/binlog/rows-event.ts';

const plan = {} as RowPlan;

function slice(buffer: Buffer, start: number, end: number): RowsEvent {
  return { change: 'insert', plan, before: null, buffer, start, end, seconds: 0 };
}

describe('an open transaction at the end of a chunk', () => {
  it('copies slices that would keep much else alive', () => {
    const chunk = Buffer.allocUnsafeSlow(64 * 1024).fill(1);
    const open = new OpenTransaction();
    open.add(slice(chunk, 100, 300));
    open.add(slice(chunk, 1000, 1500));
    open.settle();
    chunk.fill(2);
    const [first, second] = open.take();
    expect(first.buffer.subarray(first.start, first.end)).toEqual(Buffer.alloc(200, 1));
    expect(second.buffer.subarray(second.start, second.end)).toEqual(Buffer.alloc(500, 1));
    expect(first.buffer.buffer.byteLength).toBe(700);
  });

  it('leaves slices where they make up most of their memory, and copies nothing twice', () => {
    const large = Buffer.allocUnsafeSlow(1000);
    const small = Buffer.allocUnsafeSlow(64 * 1024);
    const open = new OpenTransaction();
    open.add(slice(large, 100, 900));
    open.add(slice(small, 0, 10));
    open.settle();
    const copy = open.events[1].buffer;
    open.add(slice(small, 50, 60));
    open.settle();
    expect(open.events[0].buffer).toBe(large);
    expect(copy).not.toBe(small);
    expect(open.events[1].buffer).toBe(copy);
    expect(open.events[2].buffer).not.toBe(small);
  });
});
