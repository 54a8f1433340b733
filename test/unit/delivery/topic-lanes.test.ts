import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BufferPool } from '../../../src/delivery/buffer-pool.ts';
import { Lane } from '../../../src/delivery/lane.ts';
import { scopeKeyText } from '../../../src/delivery/row-key.ts';
import { TopicLanes } from '../../../src/delivery/topic-lanes.ts';
import { Form, type OutboxRow } from '../../../src/model/row.ts';
import { murmur2 } from '../encoding/kafkajs-protocol.ts';
import { stated, toRow } from '../encoding/rows.ts';
import { madeRow } from './rows.ts';

function setUp(partitions: number): TopicLanes {
  const pool = new BufferPool(1024 * 1024, 64 * 1024);
  return new TopicLanes('orders', partitions, (topic, partition) => new Lane(topic, partition, pool, [], 10));
}

describe("a topic's lanes", () => {
  test('a row is where its scope key says that it is', () => {
    const lanes = setUp(12);
    fc.assert(
      fc.property(stated, (row) => {
        // Aggregate ids are text: the mark of a missing one is no part of it.
        fc.pre(row.key?.[0] !== 0xff);
        const filled = toRow(row);
        const scopeKey = Buffer.from(scopeKeyText(filled), 'latin1');
        expect(lanes.laneOf(filled).partition).toBe(lanes.partitionOf(scopeKey));
        const text = row.key ?? scopeKey.subarray(1);
        expect(lanes.partitionOf(scopeKey)).toBe((murmur2(text) & 0x7fffffff) % 12);
      }),
    );
  });

  test('a UUID whose trailing zeros the log has cut is where SELECT puts it', () => {
    const lanes = setUp(1_000);
    const uuid = Buffer.from('01234567000000000000000000000000', 'hex');
    const partitions = [uuid, uuid.subarray(0, 4)].map((bytes) => {
      const row = keyless();
      Object.assign(row.idempotencyKey, { form: Form.Uuid, buffer: bytes, start: 0, end: bytes.length });
      return lanes.laneOf(row).partition;
    });
    expect(partitions[0]).toBe(partitions[1]);
  });

  test('a larger topic is adopted when no lane has anything, and lanes count on', () => {
    const lanes = setUp(1);
    const lane = lanes.laneOf(madeRow(1, 'a'));
    lane.renew({ id: 7n, epoch: 0 });
    lane.append(madeRow(1, 'a'), 1, 1);
    expect(lanes.isEmpty).toBe(false);
    expect(() => lanes.adopt(4)).toThrow(RangeError);
    lane.next();
    expect(() => lanes.adopt(4)).toThrow(RangeError);
    lane.hold(madeRow(2, 'a'), 1, 1);
    lane.acked();
    expect(() => lanes.adopt(4)).toThrow(RangeError);
    lane.takeHeld();
    expect(lanes.isEmpty).toBe(true);
    expect(lanes.partitions).toBe(1);
    lanes.adopt(4);
    expect(lanes.partitions).toBe(4);
    // A broker would take a number that it has seen for a duplicate, and say that it has the batch.
    expect(lanes.lane(0)).toBe(lane);
    expect(lane.nextSequence).toBe(1);
    const used = new Set(Array.from({ length: 100 }, (_, i) => lanes.laneOf(madeRow(i, `key ${i}`)).partition));
    expect([...used].sort()).toEqual([0, 1, 2, 3]);
  });
});

function keyless(): OutboxRow {
  const row = madeRow(1, '');
  row.key.form = Form.Null;
  return row;
}
