import { expect, test } from 'vitest';
import { BufferPool } from '../../../src/delivery/buffer-pool.ts';
import { Lane } from '../../../src/delivery/lane.ts';
import type { Fault } from '../../../src/model/fault.ts';
import type { Log } from '../../../src/model/log.ts';
import type { Publisher, SealedBatch, SendOutcome } from '../../../src/model/publisher.ts';
import { newRelayStats } from '../../../src/model/stats.ts';
import { LaneSender, type LaneSenderDeps } from '../../../src/relay/lane-sender.ts';
import { madeRow } from '../delivery/rows.ts';

const MIB = 1024 * 1024;
const TOO_LARGE: Fault = { code: 'KAFKA_MESSAGE_TOO_LARGE', disposition: 'reject', detail: 'orders-3' };

const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};

/** A broker that refuses the first batch and takes the others, each in a turn of the event loop of its own. */
class OnceRefusing {
  readonly sent: number[] = [];
  mostAtOnce = 0;
  #atOnce = 0;

  newProducer(): Promise<{ id: bigint; epoch: number }> {
    return Promise.resolve({ id: 7n, epoch: 0 });
  }

  async send(batch: SealedBatch): Promise<SendOutcome> {
    this.sent.push(batch.records);
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce);
    await new Promise((resolve) => setImmediate(resolve));
    this.#atOnce--;
    return this.sent.length === 1 ? { as: 'refused', fault: TOO_LARGE } : { as: 'acked', duplicate: false };
  }
}

test('a lane whose last row was refused sends what comes at that very moment once', async () => {
  const lane = new Lane('orders', 3, new BufferPool(4 * MIB, MIB), [], 2000);
  const broker = new OnceRefusing();
  const faults: Fault[] = [];
  const acked: number[] = [];
  const settlement = {
    attemptsOf: () => 0,
    // What waits for this settles more: the next row is there before the sender has gone on.
    failed: () => {
      queueMicrotask(() => {
        for (let id = 2; id <= 7; id++) lane.append(madeRow(id, 'a'), id, id);
        sender.kick(lane);
      });
    },
    acked: (batch: { ids(): Iterable<unknown> }) => acked.push(...[...batch.ids()].map(Number)),
  };
  const sender: LaneSender = new LaneSender({
    publisher: broker as unknown as Publisher,
    leader: { maySend: () => true } as LaneSenderDeps['leader'],
    clock: { nowMs: () => 0, after: () => () => undefined },
    log: silent,
    ...{ compression: 'none', laneStallMs: 10_000, maxStuckBytes: MIB, stats: newRelayStats() },
    settlement: settlement as unknown as LaneSenderDeps['settlement'],
    parking: { isKept: () => false } as unknown as LaneSenderDeps['parking'],
    verdicts: {
      ofRecord: () => Promise.resolve({ failure: {}, park: null, reason: '' }),
    } as unknown as LaneSenderDeps['verdicts'],
    onFault: (fault) => faults.push(fault),
  });
  lane.append(madeRow(1, 'a'), 1, 1);
  sender.kick(lane);
  await sender.drained();
  expect(faults).toEqual([]);
  expect(broker.mostAtOnce).toBe(1);
  expect(broker.sent).toEqual([1, 6]);
  expect(acked).toEqual([2, 3, 4, 5, 6, 7]);
  expect(lane.isEmpty).toBe(true);
});
