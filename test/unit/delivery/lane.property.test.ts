import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Batch, SWEPT } from '../../../src/delivery/batch.ts';
import type { RecordView } from '../../../src/delivery/batch-records.ts';
import { BufferPool } from '../../../src/delivery/buffer-pool.ts';
import { Lane } from '../../../src/delivery/lane.ts';
import { madeRow } from './rows.ts';

const KIB = 1024;
const MAX_RECORDS = 5;

type Step =
  | { readonly do: 'append' | 'hold'; readonly valueBytes: number; readonly isSwept: boolean }
  | { readonly do: 'takeOut' | 'extractHeld' | 'dropSending'; readonly every: number }
  | { readonly do: 'limit'; readonly bytes: number | null }
  | { readonly do: 'ackedFront'; readonly records: number }
  | { readonly do: 'next' | 'acked' | 'releaseHeld' | 'takeHeld' | 'takeAll' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constantFrom('append' as const, 'append' as const, 'hold' as const),
      valueBytes: fc.constantFrom(10, 3_000, 9_000, 40_000, 70_000),
      isSwept: fc.nat(3).map((n) => n === 0),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('takeOut' as const, 'extractHeld' as const, 'dropSending' as const),
      every: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('limit' as const), bytes: fc.constantFrom(null, 100, 20_000, 50_000) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('ackedFront' as const), records: fc.integer({ min: 1, max: MAX_RECORDS }) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('next' as const, 'acked' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('releaseHeld' as const, 'takeHeld' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('takeAll' as const) }) },
);

/** Ids where they should be, without batches: the lane's own bounds of those are its affair. */
class Model {
  readonly pool = new BufferPool(512 * KIB, 64 * KIB);
  readonly spare: Batch[] = [];
  readonly lane = new Lane('orders', 0, this.pool, this.spare, MAX_RECORDS);
  queue: number[] = [];
  held: number[] = [];
  sending: number[] = [];
  readonly swept = new Set<number>();
  sequence = 0;
  nextId = 1;

  run(step: Step): void {
    const { lane } = this;
    switch (step.do) {
      case 'append':
      case 'hold': {
        const id = this.nextId++;
        const isHeld = step.do === 'hold';
        const row = madeRow(id, 'a', step.valueBytes);
        if (step.isSwept) this.swept.add(id);
        if (lane[step.do](row, step.isSwept ? SWEPT : id, id)) this[isHeld ? 'held' : 'queue'].push(id);
        return;
      }
      case 'next': {
        const wasIdle = this.sending.length === 0;
        const batch = lane.next();
        expect(batch !== null).toBe(wasIdle && this.queue.length > 0);
        if (batch !== null) this.sending = this.queue.splice(0, batch.records);
        return;
      }
      case 'acked':
        if (lane.sending !== null) this.done(lane.acked(), this.sending.splice(0));
        return;
      case 'ackedFront': {
        if (lane.sending === null) return;
        const records = Math.min(step.records, lane.sending.records);
        this.done(lane.ackedFront(records), this.sending.splice(0, records));
        return;
      }
      case 'dropSending': {
        if (lane.sending === null) return;
        const dropped = lane.dropSending(every(step.every));
        this.left(dropped === null ? [] : [dropped], this.filter('sending', step.every));
        return;
      }
      case 'takeOut':
        this.left(lane.takeOut(every(step.every)), this.filter('queue', step.every));
        return;
      case 'extractHeld':
        this.left(lane.extractHeld(every(step.every)), this.filter('held', step.every));
        return;
      case 'releaseHeld':
        lane.releaseHeld();
        this.queue.push(...this.held.splice(0));
        return;
      case 'takeHeld':
        this.left(lane.takeHeld(), this.held.splice(0));
        return;
      case 'takeAll':
        this.left(lane.takeAll(), [...this.sending.splice(0), ...this.queue.splice(0), ...this.held.splice(0)]);
        expect(lane.isEmpty).toBe(true);
        return;
      case 'limit':
        lane.maxBatchBytes = step.bytes;
    }
  }

  check(): void {
    const { lane, pool } = this;
    expect(lane.nextSequence).toBe(this.sequence);
    expect(lane.sending === null ? [] : idsOf(lane.sending)).toEqual(this.sending);
    expect([...lane.batches()].flatMap(idsOf)).toEqual([...this.sending, ...this.queue, ...this.held]);
    expect(lane.isEmpty).toBe(this.sending.length + this.queue.length + this.held.length === 0);
    expect(lane.heldBytes > 0).toBe(this.held.length > 0);
    const oversizeBytes = [...lane.batches()].reduce((sum, { buffer }) => sum + oversize(buffer!), 0);
    expect(lane.bytes + lane.heldBytes).toBe(pool.takenBytes + oversizeBytes);
    for (const batch of lane.batches()) {
      expect(batch.records).toBeGreaterThan(0);
      expect(batch.records).toBeLessThanOrEqual(MAX_RECORDS);
      for (const id of idsOf(batch)) expect(this.swept.has(id)).toBe(batch.isSwept);
    }
    for (const batch of this.spare) expect(batch.buffer).toBeNull();
    expect(new Set([...this.spare, ...lane.batches()]).size).toBe(this.spare.length + [...lane.batches()].length);
  }

  filter(where: 'sending' | 'queue' | 'held', every: number): number[] {
    const taken = this[where].filter((id) => id % every === 0);
    this[where] = this[where].filter((id) => id % every !== 0);
    return taken;
  }

  done(batch: Batch, ids: number[]): void {
    this.sequence += ids.length;
    this.left([batch], ids);
  }

  /** Settled, and begun anew: what the lane still knows of them would be found out. */
  left(batches: Batch[], ids: number[]): void {
    expect(batches.flatMap(idsOf)).toEqual(ids);
    for (const batch of batches) {
      expect(batch.buffer).toBeNull();
      for (const id of idsOf(batch)) expect(this.swept.has(id)).toBe(batch.isSwept);
    }
    this.spare.push(...batches);
  }
}

function every(n: number): (record: RecordView) => boolean {
  return ({ id }) => Number(id) % n === 0;
}

function idsOf(batch: Batch): number[] {
  return [...batch.ids()].map(Number);
}

function oversize({ length }: Buffer): number {
  return length > 64 * KIB ? length : 0;
}

test('a lane, whatever is held, taken out, given up and acknowledged in part, has each row once and in order', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const model = new Model();
      for (const step of steps) {
        model.run(step);
        model.check();
      }
      model.run({ do: 'takeAll' });
      expect(model.pool.takenBytes).toBe(0);
      // Objects are not made faster than they are used again.
      expect(model.spare.length).toBeLessThanOrEqual(2 * steps.length);
    }),
    { numRuns: 400 },
  );
});

test('batches stay within what the topic takes, but for a row that is larger by itself', () => {
  const sizes = fc.array(fc.constantFrom(10, 500, 3_000, 20_000, 70_000), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(sizes, fc.constantFrom(4_000, 16_000, 25_000, 60_000), (all, limitBytes) => {
      const lane = new Lane('orders', 0, new BufferPool(8 * KIB * KIB, 64 * KIB), [], 2_000);
      lane.maxBatchBytes = limitBytes;
      const sent: number[] = [];
      const sendAll = (): void => {
        for (let batch = lane.next(); batch !== null; batch = lane.next()) {
          if (batch.records > 1) expect(batch.endBytes).toBeLessThanOrEqual(limitBytes);
          sent.push(...idsOf(lane.acked()));
        }
      };
      all.forEach((bytes, id) => {
        // Oversize buffers are one at a time.
        if (!lane.append(madeRow(id, 'a', bytes), id, id)) {
          sendAll();
          expect(lane.append(madeRow(id, 'a', bytes), id, id)).toBe(true);
        }
      });
      sendAll();
      expect(sent).toEqual(all.map((_, id) => id));
    }),
    { numRuns: 200 },
  );
});
