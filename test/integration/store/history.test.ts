import { expect, test } from 'vitest';
import { StoreBed } from './store-bed.ts';

test('S6 history counts as published: due or not, in small transactions; what is settled otherwise stays', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store();
  const leader = await bed.lead(store);
  const ids = await bed.insertMany(12_500);
  await bed.sql('UPDATE outbox SET available_at = UTC_TIMESTAMP(6) + INTERVAL 1 DAY WHERE id = ?', [ids[3]]);
  await bed.sql("UPDATE outbox SET status = 'failed', last_error = 'e' WHERE id = ?", [ids[4]]);
  await store.serverFacts();
  const from = (await store.logEnd())!;
  expect(await store.leaveHistory(leader, 0)).toBe(12_499);
  expect(await bed.ids('pending')).toEqual([]);
  expect(await bed.ids('failed')).toEqual([ids[4]]);
  const [row] = await bed.sql(
    `SELECT COUNT(*) AS n FROM outbox WHERE status = 'published' AND claimed_by IS NULL AND attempts = 0
       AND published_at IS NULL`,
  );
  expect(Number(row['n'])).toBe(12_499);
  const events = await bed.sql(`SHOW BINLOG EVENTS IN '${from.file}' FROM ${from.offset}`);
  const maps = events.map((event) => String(event['Info'])).filter((info) => info.includes(bed.database));
  // Each transaction begins with the offsets row: the tail passes it by that.
  expect(maps.filter((info) => info.includes('cdc_relay_offsets')).length).toBeGreaterThanOrEqual(13);
  expect(await store.leaveHistory(leader, 0)).toBe(0);
});

test('S7 what is committed behind its snapshot is left alone, and what somebody holds comes last', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store();
  const leader = await bed.lead(store);
  const ids = await bed.insert(1_300);
  const holder = await bed.connect();
  await holder.beginTransaction();
  await holder.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [ids[700]]);
  const [open] = await bed.insert(1, holder);
  const left = store.leaveHistory(leader, 0);
  await bed.lockWait();
  expect(await bed.ids('pending')).toEqual([ids[700]]);
  const [late] = await bed.insert(1);
  await holder.commit();
  expect(await left).toBe(1_300);
  expect(await bed.ids('pending')).toEqual([open, late]);
});

test('D1 history whose primary key is text', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store({ retire: 'delete' });
  const leader = await bed.lead(store);
  await bed.sql('ALTER TABLE outbox MODIFY id VARCHAR(60) COLLATE utf8mb4_general_ci NOT NULL');
  await bed.sql(`INSERT INTO outbox (id, topic, aggregate_id)
    WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 900)
    SELECT CONCAT('Äb-', n), 't', n FROM s`);
  expect(await store.leaveHistory(leader, 0)).toBe(900);
  const [row] = await bed.sql("SELECT COUNT(*) AS n FROM outbox WHERE status = 'published'");
  expect(Number(row['n'])).toBe(900);
});

test('by an epoch that is over is lost leadership', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store();
  const leader = await bed.lead(store);
  const ids = await bed.insert(3);
  await bed.sql('UPDATE cdc_relay_offsets SET epoch = epoch + 1');
  await expect(store.leaveHistory(leader, 0)).rejects.toMatchObject({ fault: { code: 'LEADERSHIP_LOST' } });
  expect(await bed.ids('pending')).toEqual(ids);
});
