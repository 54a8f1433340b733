import { describe, expect, test } from 'vitest';
import { RelayError } from '../../../src/model/fault.ts';
import { checkpointAt, flushOf, StoreBed } from './store-bed.ts';

describe('flush', () => {
  test.for(['mark', 'delete'] as const)(
    '%s: rows and checkpoint in one transaction, ids up to 2^64-1',
    async (retire) => {
      await using bed = await StoreBed.open();
      const store = bed.store({ retire });
      const leader = await bed.lead(store);
      const ids = await bed.insert(3);
      const large = [2n ** 63n + 9n, 2n ** 64n - 2n];
      for (const id of large) await bed.sql("INSERT INTO outbox (id, topic, aggregate_id) VALUES (?, 't', 'a')", [id]);
      const saved = await store.flush(leader, flushOf([...ids.slice(1), ...large], 700));
      expect(saved).toEqual(checkpointAt(700));
      expect(await bed.ids('pending')).toEqual([ids[0]]);
      expect(await bed.ids('published')).toEqual(retire === 'mark' ? [...ids.slice(1), ...large] : []);
      const offsets = await bed.offsets();
      expect(offsets).toMatchObject({ file: 'binlog.000001', position: '700', high_position: '700' });
      expect(offsets).toMatchObject({
        epoch: String(leader.epoch),
        last_commit_us: '1767225600123456',
        last_gtid: checkpointAt(700).lastGtid,
        last_file: 'binlog.000001',
        last_begin: '500',
      });
    },
  );

  test('where the last transaction begins is read again, but not behind a version that does not save it', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    await store.flush(leader, flushOf([], 700));
    expect((await store.saved())?.checkpoint).toEqual(checkpointAt(700));
    await bed.sql(
      "UPDATE cdc_relay_offsets SET position = 800, last_gtid = 'x:6', last_commit_us = last_commit_us + 9",
    );
    expect((await store.saved())?.checkpoint).toMatchObject({ position: { offset: 800 }, lastBegin: null });
    await store.flush(leader, { ...flushOf([], 0), checkpoint: () => ({ ...checkpointAt(900), lastBegin: null }) });
    expect((await store.saved())?.checkpoint).toEqual({ ...checkpointAt(900), lastBegin: null });
  });

  test('marks with the server’s time in UTC, whatever the server’s time zone', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    await store.flush(leader, flushOf(await bed.insert(1), 700));
    const [row] = await bed.sql(
      'SELECT ABS(TIMESTAMPDIFF(SECOND, published_at, UTC_TIMESTAMP(6))) AS age, created_at <= published_at AS later FROM outbox',
    );
    expect(Number(row['age'])).toBeLessThan(60);
    expect(Number(row['later'])).toBe(1);
  });

  test('rows that are gone or settled by somebody else are done, and stay as they are', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(4);
    await bed.sql('DELETE FROM outbox WHERE id = ?', [ids[0]]);
    await bed.sql("UPDATE outbox SET status = 'failed' WHERE id = ?", [ids[1]]);
    const request = flushOf(ids, 700);
    expect(await store.flush(leader, request)).toEqual(checkpointAt(700));
    expect(request.asked).toEqual([[]]);
    expect(await bed.ids('failed')).toEqual([ids[1]]);
    expect(await bed.ids('published')).toEqual(ids.slice(2));
  });

  test('a compare-and-set that fails is lost leadership, and nothing is written', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(2);
    await store.flush(leader, flushOf([], 500));
    await bed.sql('UPDATE cdc_relay_offsets SET epoch = epoch + 1');
    const before = await bed.offsets();
    const lost = { fault: { code: 'LEADERSHIP_LOST', disposition: 'renew' } };
    await expect(store.flush(leader, flushOf(ids, 700))).rejects.toMatchObject(lost);
    // Nothing new to save: the compare-and-set comes first all the same.
    await expect(store.flush(leader, { ...flushOf(ids, 700), checkpoint: () => null })).rejects.toMatchObject(lost);
    await expect(store.flush(leader, flushOf([], 700, ids))).rejects.toMatchObject(lost);
    expect(await bed.offsets()).toEqual(before);
    expect(await bed.ids('pending')).toEqual(ids);
  });

  test('S35 an offsets row that did not change is not a lost leadership', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    await store.flush(leader, flushOf([], 700));
    // The one column that always changes no longer does: the row is found and stays the same.
    await bed.sql(
      'CREATE TRIGGER still BEFORE UPDATE ON cdc_relay_offsets FOR EACH ROW SET NEW.updated_at = OLD.updated_at',
    );
    const before = await bed.offsets();
    expect(await store.flush(leader, flushOf([], 700))).toEqual(checkpointAt(700));
    expect(await bed.offsets()).toEqual(before);
  });

  test('a deadlock that makes the flush its victim is tried again', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(200);
    const application = await bed.connect();
    await application.beginTransaction();
    // The transaction that has changed less is the victim. A scan of the table would lock the first row, too.
    await application.query('UPDATE outbox FORCE INDEX (PRIMARY) SET attempts = attempts + 1 WHERE id >= ?', [ids[2]]);
    const request = flushOf([ids[0], ids[2]], 700);
    const flushed = store.flush(leader, request);
    await bed.lockWait();
    await application.query('UPDATE outbox SET attempts = attempts + 1 WHERE id = ?', [ids[0]]);
    await application.commit();
    expect(await flushed).toEqual(checkpointAt(700));
    expect(await bed.ids('published')).toEqual([ids[0], ids[2]]);
    const [{ victims }] = await bed.sql(
      "SELECT COUNT AS victims FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'",
    );
    expect(Number(victims)).toBeGreaterThan(0);
  });

  test.for(['QUERY', 'CONNECTION'] as const)('its %s is killed while it waits: to be tried again', async (what) => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(2);
    const application = await bed.connect();
    await application.beginTransaction();
    await application.query('SELECT id FROM outbox WHERE id = ? FOR UPDATE', [ids[1]]);
    const flushed = store.flush(leader, flushOf(ids, 700)).catch((caught: unknown) => caught);
    await bed.sql(`KILL ${what} ${await bed.lockWait()}`);
    expect(await flushed).toMatchObject({ fault: { disposition: 'retry' } });
    await application.commit();
    expect(await store.flush(leader, flushOf(ids, 700))).toEqual(checkpointAt(700));
    expect(await bed.ids('published')).toEqual(ids);
  });

  test('a table that the application has locked whole holds the flush up no longer than rows do', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store({ queryTimeoutMs: 20_000 });
    const leader = await bed.lead(store);
    const ids = await bed.insert(2);
    const application = await bed.connect();
    await application.query('LOCK TABLES outbox WRITE');
    // Its own time-out, and not that of a query.
    const error: unknown = await store.flush(leader, flushOf(ids, 700)).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(RelayError);
    expect((error as RelayError).fault).toMatchObject({ code: 'MYSQL_LOCK_WAIT', disposition: 'retry' });
    await application.query('UNLOCK TABLES');
    expect(await store.flush(leader, flushOf(ids, 700))).toEqual(checkpointAt(700));
    expect(await bed.ids('published')).toEqual(ids);
  });
});
