import { expect, test } from 'vitest';
import { AckWindow } from '../../../src/delivery/ack-window.ts';
import { AckedRows, type BatchPart } from '../../../src/delivery/acked-rows.ts';
import { Batch } from '../../../src/delivery/batch.ts';
import { RetirePlan } from '../../../src/delivery/retire-plan.ts';
import { Form } from '../../../src/model/row.ts';
import { ByteIds, rowIds } from '../../../src/model/row-ids.ts';
import type { Transaction } from '../../../src/model/source.ts';
import { madeRow } from './rows.ts';

const START = {
  position: { file: 'b.1', offset: 4 },
  gtidSet: null,
  lastBegin: null,
  lastGtid: null,
  lastCommitMicros: null,
};

test('D1 keys of bytes go to the flush as they are, in order, beside integers of other tables', () => {
  const { window, number } = opened();
  const first = batchOf(window, number, [
    { key: 'c'.repeat(300) },
    { id: 7 },
    { key: 'a\0\0' },
    { key: 'ü' },
    { id: 3, outbox: 2 },
  ]);
  const second = batchOf(window, number, [{ key: '' }, { key: 'a\0' }, { id: 5 }]);
  const plan = new RetirePlan(window, whole(first, second), [], [true, true, false]);
  expect(plan.fresh.map(({ outbox, ids }) => [outbox, [...ids]])).toEqual([
    [0, [5n, 7n]],
    [1, ['', hex('a\0'), hex('a\0\0'), hex('c'.repeat(300)), hex('ü')]],
  ]);
});

test('a key that the application holds keeps its transaction open, and is a suspect of the next flush', () => {
  const { window, number } = opened();
  const batch = batchOf(window, number, [{ key: 'held' }, { key: 'free' }, { id: 1 }]);
  window.routed(number);
  const plan = new RetirePlan(window, whole(batch), [], [true, true]);
  expect(plan.fit([{ outbox: 1, ids: rowIds([hex('held')]) }])).toBeNull();
  expect(plan.stillHeld).toEqual([{ outbox: 1, id: hex('held'), transaction: number }]);

  const next = new RetirePlan(window, [], plan.stillHeld, [true, true]);
  expect(next.suspects.map(({ outbox, ids }) => [outbox, [...ids]])).toEqual([[1, [hex('held')]]]);
  expect(next.fit([])?.position).toEqual({ file: 'b.1', offset: 100 });
});

test('a batch that begins anew has forgotten its keys', () => {
  const { window, number } = opened();
  const batch = batchOf(window, number, [{ key: 'old' }, { key: 'older' }]);
  fill(batch, window, number, [{ key: 'new' }]);
  const [{ ids }] = new RetirePlan(window, whole(batch), [], [true, true]).fresh;
  expect([...ids]).toEqual([hex('new')]);
});

test('ids of bytes are sorted and cut without being copied', () => {
  const ids = ByteIds.fromHex(['ff', '00ff', '', '00', '7f7f']);
  expect([...ids]).toEqual(['', '00', '00ff', '7f7f', 'ff']);
  expect([...ids.subarray(1, 3)]).toEqual(['00', '00ff']);
  expect([...ids.subarray(3, 9)]).toEqual(['7f7f', 'ff']);
  expect(ids).toHaveLength(5);
  expect([...rowIds([3n, 1n, 2n ** 64n - 1n])]).toEqual([1n, 3n, 2n ** 64n - 1n]);
});

function whole(...batches: Batch[]): BatchPart[] {
  const acked = new AckedRows();
  for (const batch of batches) acked.add(batch);
  return acked.take(1_000);
}

interface Made {
  readonly key?: string;
  readonly id?: number;
  readonly outbox?: number;
}

function batchOf(window: AckWindow, number: number, rows: readonly Made[]): Batch {
  return fill(new Batch(), window, number, rows);
}

/** Keys are the table 1's, integers another's. */
function fill(batch: Batch, window: AckWindow, number: number, rows: readonly Made[]): Batch {
  batch.begin(Buffer.alloc(64 * 1024));
  for (const { key, id = 0, outbox = key === undefined ? 0 : 1 } of rows) {
    const row = madeRow(id, 'agg', 10, outbox);
    if (key !== undefined) {
      const bytes = Buffer.from(`<${key}>`);
      Object.assign(row.idBytes, { form: Form.Text, buffer: bytes, start: 1, end: bytes.length - 1 });
    }
    batch.append(row, number, 1_700_000_000_000);
    window.add(number);
  }
  return batch;
}

function opened(): { window: AckWindow; number: number } {
  const window = new AckWindow(START, null);
  const transaction: Transaction = {
    end: { file: 'b.1', offset: 100 },
    gtid: null,
    commitMicros: 1,
    beginOffset: -1,
    skipped: [],
    pieces: null,
    undecodable: null,
    rows: () => {
      throw new Error('not asked for');
    },
  };
  return { window, number: window.open(transaction) };
}

function hex(text: string): string {
  return Buffer.from(text).toString('hex');
}
