import { expect, test } from 'vitest';
import { flushOf, StoreBed } from '../store/store-bed.ts';

/** MariaDB makes a join of a list of 1,000 values or more, which scans the table and waits for every row on its way. */
test.for(['mark', 'delete'] as const)(
  'S18 %s: however long the list, rows that are not in it never make a flush wait',
  async (retire) => {
    await using bed = await StoreBed.open();
    const store = bed.store({ retire });
    const leader = await bed.lead(store);
    const ids: bigint[] = [];
    for (let i = 0; i < 5; i++) ids.push(...(await bed.insert(1_000)));
    const application = await bed.connect();
    await application.beginTransaction();
    await bed.insert(5, application);
    // In the midst of the ids that are named.
    await application.query('UPDATE outbox SET attempts = 1 WHERE id = ?', [ids[101]]);
    const named = ids.filter((_, i) => i !== 101).slice(0, 4_000);
    // One that is gone leads to the locking read.
    await bed.sql('DELETE FROM outbox WHERE id = ?', [named[0]]);
    const request = flushOf(named, 700);
    await store.flush(leader, request);
    const around = flushOf([], 800, ids.slice(4_001));
    await store.flush(leader, around);
    expect([...request.asked, ...around.asked]).toEqual([[], []]);
    expect(await bed.ids('pending')).toEqual([ids[101]]);
  },
);
