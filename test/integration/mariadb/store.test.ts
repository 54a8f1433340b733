import { expect, test } from 'vitest';
import { StoreBed } from '../store/store-bed.ts';

const NOTHING = { published: [], failures: [], back: [] };

test('M5 candidates by the index, claims that wait for nobody, and how they are written back', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store();
  const leader = await bed.lead(store);
  const ids = await bed.insert(7);
  await bed.sql('UPDATE outbox SET available_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE id = ?', [ids[6]]);
  const due = ids.slice(0, 6);

  const first = await store.dueRows(0, null, 4);
  expect(first.rows.map(({ id }) => id)).toEqual(due.slice(0, 4));
  expect(first.rows[0]).toMatchObject({ topic: 'topic', key: Buffer.from('aggregate-0'), attempts: 0, bytes: 8 });
  const second = await store.dueRows(0, first.next, 4);
  expect(second).toMatchObject({ rows: [{ id: ids[4] }, { id: ids[5] }], next: null });
  expect((await store.dueIds(0, null, 10, null)).ids).toEqual(due);
  expect((await store.dueIds(0, null, 10, Buffer.from('aggregate-3'))).ids).toEqual([ids[3]]);
  expect((await store.candidates(0, [...ids].reverse())).map(({ id }) => id)).toEqual([...due].reverse());
  expect(await store.nextDueMs(0)).toBeGreaterThan(3_500_000);

  const holder = await bed.connect();
  await holder.beginTransaction();
  await holder.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [ids[0]]);
  await bed.sql('DELETE FROM outbox WHERE id = ?', [ids[1]]);
  expect(await store.claim(leader, 0, due)).toEqual({ claimed: ids.slice(2, 6), locked: [ids[0]] });
  await holder.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [ids[2]]);
  const rows = await store.claimedRows(leader, 0, [ids[5], ids[0], ids[2]]);
  const values: string[] = [];
  while (rows.next()) values.push(rows.row.value.buffer.toString('utf8', rows.row.value.start, rows.row.value.end));
  expect(values).toEqual(['{"n": 5}', '{"n": 2}']);
  const failures = [{ outbox: 0, id: ids[4], as: 'failed' as const, error: 'MESSAGE_TOO_LARGE' }];
  const left = await store.writeBack(leader, 0, { published: [ids[2], ids[3]], failures, back: [ids[5]] });
  expect(left).toEqual({ ...NOTHING, published: [ids[2]] });
  expect(await store.fail(leader, [{ ...failures[0], id: ids[0] }])).toHaveLength(1);
  await holder.commit();
  expect(await store.writeBack(leader, 0, left)).toEqual(NOTHING);
  expect(await store.fail(leader, [{ ...failures[0], id: ids[0] }])).toEqual([]);
  expect(await bed.ids('published')).toEqual([ids[2], ids[3]]);
  expect(await bed.ids('failed')).toEqual([ids[0], ids[4]]);
  expect(await bed.ids('pending')).toEqual([ids[5], ids[6]]);
});

test('S12 S6 parked scopes, claims of leaders before, history, and a barrier', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store();
  const leader = await bed.lead(store);
  const { serverUuid } = await store.serverFacts();
  const checkpoint = await store.head();
  const end = (await store.logEnd())!;
  await store.begin(leader, { checkpoint, high: end, serverUuid, parkEverything: 'first start' });
  expect(await store.parked()).toMatchObject([{ scope: { kind: 'everything' }, dueInMs: 0, reason: 'first start' }]);
  await store.barrier(leader, { file: end.file, offset: end.offset + 7 });
  expect(await store.saved()).toEqual({ checkpoint, serverUuid, high: { file: end.file, offset: end.offset + 7 } });
  expect((await store.logEnd())!.offset).toBeGreaterThan(end.offset);
  const scope = { kind: 'pair' as const, topic: 't', partition: 2, key: Buffer.of(0xff, 0) };
  await store.flush(leader, {
    ...{ retire: [], suspects: [], high: end, checkpoint: () => null },
    parked: () => ({
      put: [{ scope, partitions: 3, dueInMs: null, attempts: 2, reason: 'r', row: { outbox: 0, id: 5n } }],
      remove: [{ kind: 'everything' }],
    }),
  });
  expect(await store.parked()).toMatchObject([
    { scope, partitions: 3, dueInMs: null, attempts: 2, reason: 'r', row: { outbox: 0, id: 5n } },
  ]);
  const ids = await bed.insert(3);
  await bed.sql("UPDATE outbox SET status = 'processing', claimed_by = X'00' WHERE id = ?", [ids[0]]);
  expect(await store.releaseClaims(leader, null)).toEqual({ released: 1, held: [] });
  expect(await store.leaveHistory(leader, 0)).toBe(3);
  expect(await bed.ids('published')).toEqual(ids);
});

test('an index that the server ignores is not there', async () => {
  await using bed = await StoreBed.open();
  await bed.sql('ALTER TABLE outbox ALTER INDEX waiting IGNORED');
  await expect(bed.store().dueRows(0, null, 10)).rejects.toMatchObject({
    fault: { code: 'MYSQL_SCHEMA', detail: expect.stringContaining('CREATE INDEX') as string },
  });
});
