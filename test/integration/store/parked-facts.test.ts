import { expect, test } from 'vitest';
import { partitionOf } from '../../../src/encoding/murmur2.ts';
import type { ParkedEntry, Scope } from '../../../src/model/parked.ts';
import { COUNTED_WAITING_ROWS, type ParkedFacts, readParked } from '../../../src/store/parked-facts.ts';
import { Session } from '../../../src/store/session.ts';
import { flushOf, silent, StoreBed } from './store-bed.ts';

const PARTITIONS = 12;

async function read(bed: StoreBed, limit = 100): Promise<ParkedFacts> {
  const settings = bed.settings();
  const session = await Session.open(settings.mysql, silent);
  try {
    return await readParked(session, settings, limit);
  } finally {
    session.destroy();
  }
}

async function park(bed: StoreBed, entries: readonly (Partial<ParkedEntry> & { scope: Scope })[]): Promise<void> {
  const store = bed.store();
  const leader = await bed.lead(store);
  const put = entries.map((entry) => ({
    ...{ partitions: PARTITIONS, dueInMs: 60_000, attempts: 3, reason: 'KAFKA_CORRUPT_MESSAGE', row: null },
    ...entry,
  }));
  await store.flush(leader, { ...flushOf([], 700), checkpoint: () => null, parked: () => ({ put, remove: [] }) });
  await leader.release();
}

test('scopes of every kind, the wide ones first, with their keys as text and the pending rows under each', async () => {
  await using bed = await StoreBed.open();
  expect(await read(bed)).toEqual({ parked: [], total: 0, oldestFreeMs: null });
  await bed.sql('ALTER TABLE outbox MODIFY aggregate_id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL');
  const insert = 'INSERT INTO outbox (topic, aggregate_id, payload, status, available_at, idempotency_key) VALUES ?';
  const due = '2026-01-01 00:00:00';
  const uuid = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
  const bytes = Buffer.from(uuid.replaceAll('-', ''), 'hex');
  const row = (topic: string, key: string | null, id: Buffer, status = 'pending', at = due): unknown[] => {
    return [topic, key, '{}', status, at, id];
  };
  let n = 1;
  const other = (): Buffer => Buffer.from(String(n++).padStart(16, '0'));
  await bed.sql(insert, [
    [
      ...[row('orders', 'k', other()), row('orders', 'k', other()), row('orders', 'K', other())],
      ...[row('orders', 'k', other(), 'published'), row('orders', 'k', other(), 'failed'), row('bills', 'k', other())],
      ...[
        row('orders', null, bytes),
        row('orders', null, other()),
        row('orders', 'late', other(), 'pending', '2099-01-01'),
      ],
    ],
  ]);
  const partition = partitionOf(Buffer.from('K'), 0, 1, PARTITIONS);
  const inPartition = ['k', 'k', 'K', 'late'].filter((key) => {
    return partitionOf(Buffer.from(key), 0, key.length, PARTITIONS) === partition;
  }).length;
  await park(bed, [
    {
      scope: { kind: 'pair', topic: 'orders', partition: 3, key: Buffer.from('k') },
      dueInMs: null,
      row: { outbox: 0, id: 81n },
    },
    {
      scope: { kind: 'pair', topic: 'orders', partition: 1, key: Buffer.concat([Buffer.of(0xff), Buffer.from(uuid)]) },
    },
    { scope: { kind: 'topic-partition', topic: 'orders', partition } },
    { scope: { kind: 'topic-partition', topic: 'bills', partition: 0 }, partitions: 0 },
    { scope: { kind: 'topic', topic: 'orders' } },
  ]);
  const { parked, total, oldestFreeMs } = await read(bed);
  expect(total).toBe(5);
  // Nobody can say what is under a partition of a topic whose partitions are not known.
  expect(oldestFreeMs).toBeNull();
  const topics = parked.map(({ kind, topic, key, rowsWaiting }) => [kind, topic, key, rowsWaiting]);
  expect(topics[0]).toEqual(['topic', 'orders', null, 6]);
  expect(new Set(topics.slice(1, 3))).toEqual(
    new Set([
      ['topic-partition', 'orders', null, expect.any(Number)],
      ['topic-partition', 'bills', null, null],
    ]),
  );
  expect(
    parked.find(({ kind, topic }) => kind === 'topic-partition' && topic === 'orders')!.rowsWaiting,
  ).toBeGreaterThanOrEqual(inPartition);
  expect(new Set(topics.slice(3))).toEqual(
    new Set([
      ['pair', 'orders', 'k', 2],
      ['pair', 'orders', `(no aggregate) ${uuid}`, 1],
    ]),
  );
  const pair = parked.find(({ key }) => key === 'k')!;
  expect(pair).toMatchObject({
    partition: 3,
    attempts: 3,
    dueInMs: null,
    row: { outbox: `${bed.database}.outbox`, id: '81' },
  });
  expect(pair.sinceMs).toBeLessThan(60_000);
  expect(parked[0].dueInMs).toBeGreaterThan(30_000);
  expect(await read(bed, 1)).toMatchObject({ total: 5, parked: [{ kind: 'topic' }], oldestFreeMs: null });
});

test('what waits beside the parked has an age of its own; where too much waits nobody counts', async () => {
  await using bed = await StoreBed.open();
  await park(bed, [{ scope: { kind: 'pair', topic: 'orders', partition: 3, key: Buffer.from('k') } }]);
  const insert = async (key: string, secondsAgo: number): Promise<unknown> =>
    bed.sql(
      `INSERT INTO outbox (topic, aggregate_id, payload, available_at)
       VALUES ('orders', ?, '{}', UTC_TIMESTAMP(6) - INTERVAL ? SECOND)`,
      [key, secondsAgo],
    );
  await insert('k', 1_000);
  expect((await read(bed)).oldestFreeMs).toBe(0);
  await insert('other', 100);
  const { oldestFreeMs } = await read(bed);
  expect(oldestFreeMs).toBeGreaterThanOrEqual(100_000);
  expect(oldestFreeMs).toBeLessThan(200_000);
  await bed.sql(`INSERT INTO outbox (topic, aggregate_id, payload)
    WITH RECURSIVE d (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM d WHERE d < 99)
    SELECT 'orders', 'k', '{}' FROM d AS x JOIN d AS y JOIN d AS z WHERE z.d < 2 LIMIT ${COUNTED_WAITING_ROWS}`);
  expect(await read(bed)).toMatchObject({ total: 1, parked: [{ key: 'k', rowsWaiting: null }], oldestFreeMs: null });
});
