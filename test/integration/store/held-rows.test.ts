import { describe, expect, test } from 'vitest';
import { checkpointAt, flushOf, StoreBed } from './store-bed.ts';

describe('rows that the application holds', () => {
  test.for(['mark', 'delete'] as const)(
    'S3 %s: a row that is in the log and not yet visible is waited for',
    async (retire) => {
      await using bed = await StoreBed.open();
      const store = bed.store({ retire });
      const leader = await bed.lead(store);
      const ids = await bed.insert(12);
      const application = await bed.connect();
      await application.beginTransaction();
      const [late] = await bed.insert(1, application);
      const request = flushOf([...ids, late], 700);
      const flushed = store.flush(leader, request);
      await bed.lockWait();
      await application.commit();
      expect(await flushed).toEqual(checkpointAt(700));
      expect(request.asked).toEqual([[]]);
      expect(await bed.ids('pending')).toEqual([]);
      expect(await bed.ids('published')).toEqual(retire === 'mark' ? [...ids, late] : []);
    },
  );

  test.for(['mark', 'delete'] as const)(
    'S4 %s: an uncommitted row in the list is not done: it is named as held',
    async (retire) => {
      await using bed = await StoreBed.open();
      const store = bed.store({ retire });
      const leader = await bed.lead(store);
      const ids = await bed.insert(12);
      const application = await bed.connect();
      await application.beginTransaction();
      const [late] = await bed.insert(1, application);
      const request = flushOf([...ids, late], 700);
      expect(await store.flush(leader, request)).toEqual(checkpointAt(600));
      expect(request.asked.at(-1)).toEqual([{ outbox: 0, ids: BigUint64Array.of(late) }]);
      expect(await bed.ids('pending')).toEqual([]); // `late` cannot be seen yet
      await application.commit();
      expect(await bed.ids('pending')).toEqual([late]);
      expect(await store.flush(leader, flushOf([], 800, [late]))).toEqual(checkpointAt(800));
      expect(await bed.ids('pending')).toEqual([]);
    },
  );

  test('S19 one acknowledged row is locked: the others are retired, and the checkpoint that fits is saved', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(300);
    const [held, gone] = [ids[7], ids[100]];
    await bed.sql('DELETE FROM outbox WHERE id = ?', [gone]);
    const [holder, other] = [await bed.connect(), await bed.connect()];
    await holder.beginTransaction();
    await holder.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [held]);

    const request = flushOf(ids, 700);
    const flushed = store.flush(leader, request);
    const waiting = await bed.lockWait();
    // The flush holds locks while it waits: an INSERT meets none of them.
    const [late] = await bed.withoutLockWait(bed.insert(1, other), waiting);

    expect(await flushed).toEqual(checkpointAt(600));
    expect(request.asked).toEqual([[], [{ outbox: 0, ids: BigUint64Array.of(held) }]]);
    // And it has let them go, though the holder has not.
    await bed.withoutLockWait(other.query('UPDATE outbox SET attempts = 5 WHERE id = ?', [ids[3]]));
    expect(await bed.ids('pending')).toEqual([held, late]);
    expect((await bed.offsets())['position']).toBe('600');

    await holder.query('UPDATE outbox SET attempts = 9 WHERE id = ?', [held]);
    const again = flushOf([late], 800, [held]);
    expect(await store.flush(leader, again)).toEqual(checkpointAt(700));
    expect(await bed.ids('pending')).toEqual([held]);
    await holder.commit();
    expect(await store.flush(leader, flushOf([], 900, [held]))).toEqual(checkpointAt(900));
    expect(await bed.ids('pending')).toEqual([]);
    const [row] = await bed.sql('SELECT attempts FROM outbox WHERE id = ?', [held]);
    expect(Number(row['attempts'])).toBe(9);
  });

  test('S19 more rows are held than one flush looks at: none is taken for done', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(450);
    const holder = await bed.connect();
    await holder.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
    await holder.beginTransaction();
    await holder.query('SELECT id, status FROM outbox FORCE INDEX (PRIMARY) WHERE id < ? FOR UPDATE', [ids[400]]);
    const request = flushOf(ids, 700);
    expect(await store.flush(leader, request)).toEqual(checkpointAt(600));
    expect(request.asked.at(-1)).toEqual([{ outbox: 0, ids: BigUint64Array.from(ids.slice(0, 400)) }]);
    expect(await bed.ids('published')).toEqual(ids.slice(400));
    // Of the rows held some are gone meanwhile: they must not be waited for.
    await holder.query('DELETE FROM outbox WHERE id < ?', [ids[50]]);
    await holder.commit();
    expect(await store.flush(leader, flushOf([], 800, ids.slice(0, 400)))).toEqual(checkpointAt(800));
    expect(await bed.ids('published')).toEqual(ids.slice(50));
  });
});
