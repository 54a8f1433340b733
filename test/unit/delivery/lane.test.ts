import { describe, expect, test } from 'vitest';
import { type Batch, SWEPT } from '../../../src/delivery/batch.ts';
import { BufferPool } from '../../../src/delivery/buffer-pool.ts';
import { Lane } from '../../../src/delivery/lane.ts';
import { Form } from '../../../src/model/row.ts';
import { madeRow } from './rows.ts';

const KIB = 1024;
const MIB = KIB * KIB;

function setUp(maxBytes = 4 * MIB, maxRecords = 2000): { pool: BufferPool; lane: Lane } {
  const pool = new BufferPool(maxBytes, MIB);
  return { pool, lane: new Lane('orders', 3, pool, [], maxRecords) };
}

function idsOf(batch: Batch | null): number[] {
  return [...batch!.ids()].map(Number);
}

describe('a lane', () => {
  test('keeps rows in order over batches, and has one batch out at a time', () => {
    const { lane } = setUp(4 * MIB, 2);
    for (let id = 1; id <= 5; id++) expect(lane.append(madeRow(id, 'a'), id, id)).toBe(true);
    expect(idsOf(lane.next())).toEqual([1, 2]);
    expect(lane.next()).toBeNull();
    lane.acked();
    expect(idsOf(lane.next())).toEqual([3, 4]);
    lane.acked();
    expect(idsOf(lane.next())).toEqual([5]);
    lane.acked();
    expect(lane.next()).toBeNull();
    expect(lane.isEmpty).toBe(true);
  });

  test('sequence numbers count records, and begin again with a new producer id', () => {
    const { lane } = setUp(4 * MIB, 2);
    lane.renew({ id: 7n, epoch: 0 });
    for (let id = 1; id <= 3; id++) lane.append(madeRow(id, 'a'), id, id);
    lane.next();
    lane.acked();
    expect(lane.nextSequence).toBe(2);
    lane.renew({ id: 8n, epoch: 0 });
    expect(lane.nextSequence).toBe(0);
  });

  test('a batch moves into larger buffers as it fills, and leaves the smaller ones to others', () => {
    const { pool, lane } = setUp();
    lane.append(madeRow(1, 'a', 1000), 1, 1);
    expect(pool.takenBytes).toBe(16 * KIB);
    for (let id = 2; id <= 300; id++) lane.append(madeRow(id, 'a', 1000), id, id);
    expect(pool.takenBytes).toBe(MIB);
    const batch = lane.next()!;
    expect(batch.records).toBe(300);
    lane.acked();
    expect(pool.takenBytes).toBe(0);
  });

  test('without a buffer nothing is written, and nothing is lost of what was', () => {
    const { pool, lane } = setUp(MIB);
    let id = 1;
    while (lane.append(madeRow(id, 'a', 30_000), id, id)) id++;
    const sent: number[] = [];
    for (let batch = lane.next(); batch !== null; batch = lane.next()) {
      sent.push(...idsOf(batch));
      lane.acked();
    }
    expect(sent).toEqual(Array.from({ length: id - 1 }, (_, index) => index + 1));
    expect(lane.append(madeRow(id, 'a', 30_000), id, id)).toBe(true);
    expect(pool.takenBytes).toBeGreaterThan(0);
  });

  test('a record larger than a batch travels alone', () => {
    const { pool, lane } = setUp();
    lane.append(madeRow(1, 'a'), 1, 1);
    expect(lane.append(madeRow(2, 'a', 3 * MIB), 2, 2)).toBe(true);
    lane.append(madeRow(3, 'a'), 3, 3);
    expect(idsOf(lane.next())).toEqual([1]);
    lane.acked();
    const large = lane.next()!;
    expect(idsOf(large)).toEqual([2]);
    expect(large.buffer!.length).toBeGreaterThan(3 * MIB);
    lane.acked();
    expect(idsOf(lane.next())).toEqual([3]);
    lane.acked();
    expect(pool.takenBytes).toBe(0);
  });

  test('runs say how many rows of which transaction and outbox lie together', () => {
    const { lane } = setUp();
    lane.append(madeRow(1, 'a', 10, 0), 11, 1);
    lane.append(madeRow(2, 'a', 10, 0), 11, 1);
    lane.append(madeRow(3, 'a', 10, 1), 11, 1);
    lane.append(madeRow(4, 'a', 10, 1), 12, 1);
    const batch = lane.next()!;
    expect(Array.from({ length: batch.runCount }, (_, index) => batch.run(index))).toEqual([
      { transaction: 11, outbox: 0, rows: 2, hasKeys: false },
      { transaction: 11, outbox: 1, rows: 1, hasKeys: false },
      { transaction: 12, outbox: 1, rows: 1, hasKeys: false },
    ]);
  });

  test('a row that cannot be a record leaves nothing behind', () => {
    const { pool, lane } = setUp();
    const broken = madeRow(1, 'a');
    broken.idempotencyKey.form = Form.Null;
    expect(() => lane.append(broken, 1, 1)).toThrow(/ROW_ENCODING/);
    expect(lane.isEmpty).toBe(true);
    expect(pool.takenBytes).toBe(0);
    lane.append(madeRow(2, 'a'), 1, 2);
    expect(() => lane.append(broken, 1, 99)).toThrow(/ROW_ENCODING/);
    expect(idsOf(lane.next())).toEqual([2]);
    expect(lane.sending!.maxTimestampMs).toBe(2);
  });

  test('what is held goes behind everything when it is released, and its last batch is filled on', () => {
    const { lane } = setUp();
    lane.append(madeRow(1, 'a'), 1, 1);
    lane.hold(madeRow(2, 'a'), 2, 2);
    lane.append(madeRow(3, 'b'), 3, 3);
    expect(idsOf(lane.next())).toEqual([1, 3]);
    lane.acked();
    expect(lane.next()).toBeNull();
    lane.releaseHeld();
    expect(lane.heldBytes).toBe(0);
    lane.append(madeRow(4, 'a'), 4, 4);
    expect(idsOf(lane.next())).toEqual([2, 4]);
  });

  test("the tail's rows and the sweep's are in batches of their own", () => {
    const { lane } = setUp();
    [1, 2, SWEPT, SWEPT, 3].forEach((transaction, id) => lane.append(madeRow(id, 'a'), transaction, id));
    const sent: [boolean, number[]][] = [];
    for (let batch = lane.next(); batch !== null; batch = lane.next()) {
      sent.push([batch.isSwept, idsOf(batch)]);
      lane.acked();
    }
    expect(sent).toEqual([
      [false, [0, 1]],
      [true, [2, 3]],
      [false, [4]],
    ]);
  });
});
