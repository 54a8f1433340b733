import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/model/clock.ts';
import type { RowCursor } from '../../../src/model/row.ts';
import type { RowId } from '../../../src/model/row-ids.ts';
import type { Outcome, RowFailure } from '../../../src/model/store.ts';
import { MysqlStore } from '../../../src/store/mysql-store.ts';
import { checkpointAt, flushOf, silent, StoreBed } from './store-bed.ts';

const NOTHING: Outcome = { published: [], failures: [], back: [] };

function failure(id: RowId, as: RowFailure['as'], error = 'MESSAGE_TOO_LARGE: 2,000,000 bytes'): RowFailure {
  return { outbox: 0, id, as, error };
}

function idsOf(cursor: RowCursor): bigint[] {
  const ids: bigint[] = [];
  while (cursor.next()) ids.push((BigInt(cursor.row.idHigh) << 32n) | BigInt(cursor.row.idLow));
  return ids;
}

/** The application holds these rows, and no other. */
async function hold(bed: StoreBed, ids: readonly bigint[]) {
  const holder = await bed.connect();
  await holder.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  await holder.beginTransaction();
  await holder.query('SELECT id, topic FROM outbox FORCE INDEX (PRIMARY) WHERE id IN (?) FOR UPDATE', [ids]);
  return holder;
}

describe('a claim', () => {
  test('is processing, whose and since when; the rest is left as it is', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(8);
    await bed.sql("UPDATE outbox SET status = 'published' WHERE id = ?", [ids[1]]);
    await bed.sql("UPDATE outbox SET status = 'processing' WHERE id = ?", [ids[2]]);
    await bed.sql('UPDATE outbox SET available_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE id = ?', [ids[3]]);
    await bed.sql('DELETE FROM outbox WHERE id = ?', [ids[4]]);
    const asked = [...ids.slice(0, 6)].reverse();
    expect(await store.claim(leader, 0, asked)).toEqual({ claimed: [ids[5], ids[0]], locked: [] });
    expect(await bed.ids('processing')).toEqual([ids[0], ids[2], ids[5]]);
    const [row] = await bed.sql(
      `SELECT HEX(claimed_by) AS owner, ABS(TIMESTAMPDIFF(SECOND, claimed_at, UTC_TIMESTAMP(6))) AS age FROM outbox
       WHERE id = ?`,
      [ids[0]],
    );
    expect(row['owner']).toBe(leader.epoch.toString(16).toUpperCase().padStart(32, '0'));
    expect(Number(row['age'])).toBeLessThan(30);
    const rows = await store.claimedRows(leader, 0, [...ids].reverse());
    expect(idsOf(rows)).toEqual([ids[5], ids[0]]);
    expect(await store.claim(leader, 0, asked)).toEqual({ claimed: [], locked: [] });
  });

  test('M5 waits for nobody: what somebody holds is named, what is gone is not', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(6);
    const holder = await hold(bed, [ids[0], ids[3]]);
    await holder.query("UPDATE outbox SET status = 'published' WHERE id = ?", [ids[3]]);
    await bed.sql('DELETE FROM outbox WHERE id = ?', [ids[4]]);
    expect(await bed.withoutLockWait(store.claim(leader, 0, ids))).toEqual({
      claimed: [ids[1], ids[2], ids[5]],
      locked: [ids[0], ids[3]],
    });
    await holder.commit();
    expect(await store.claim(leader, 0, ids)).toEqual({ claimed: [ids[0]], locked: [] });
  });

  test('of which nothing came leaves no trace in the log', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const before = await bed.offsets();
    expect(await store.claim(leader, 0, [77n])).toEqual({ claimed: [], locked: [] });
    expect(await bed.offsets()).toEqual(before);
  });

  test('does not fall into a flush that waits for a row, and is made when the flush is over', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(4);
    const holder = await hold(bed, [ids[1]]);
    const flushed = store.flush(leader, flushOf(ids.slice(0, 2), 700));
    await bed.lockWait();
    expect(await store.claim(leader, 0, ids.slice(2))).toEqual({ claimed: ids.slice(2), locked: [] });
    expect(await flushed).toEqual(checkpointAt(600));
    await holder.commit();
  });

  test('where somebody keeps the place that its rows would move to in the index, all count as held', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(3);
    const holder = await bed.connect();
    await holder.beginTransaction();
    await holder.query("SELECT id FROM outbox FORCE INDEX (waiting) WHERE status = 'processing' FOR UPDATE");
    expect(await store.claim(leader, 0, ids)).toEqual({ claimed: [], locked: ids });
    await holder.commit();
    expect(await store.claim(leader, 0, ids)).toEqual({ claimed: ids, locked: [] });
  });

  test('by an epoch that is over is lost leadership', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(3);
    await bed.sql('UPDATE cdc_relay_offsets SET epoch = epoch + 1');
    const lost = { fault: { code: 'LEADERSHIP_LOST' } };
    await expect(store.claim(leader, 0, ids)).rejects.toMatchObject(lost);
    await expect(store.writeBack(leader, 0, { ...NOTHING, published: ids })).rejects.toMatchObject(lost);
    await expect(store.fail(leader, [failure(ids[0], 'failed')])).rejects.toMatchObject(lost);
    expect(await bed.ids('pending')).toEqual(ids);
  });
});

describe('written back', () => {
  test.for(['mark', 'delete'] as const)('%s: each as it came out, and no longer claimed', async (retire) => {
    await using bed = await StoreBed.open();
    const store = bed.store({ retire });
    const leader = await bed.lead(store);
    const ids = await bed.insert(8);
    await store.claim(leader, 0, ids.slice(0, 6));
    const outcome: Outcome = {
      published: ids.slice(0, 2),
      failures: [failure(ids[2], 'failed'), failure(ids[3], 'pending', "é'😀\\ ".repeat(400))],
      back: [ids[4]],
    };
    expect(await store.writeBack(leader, 0, outcome)).toEqual(NOTHING);
    expect(await bed.ids('published')).toEqual(retire === 'mark' ? ids.slice(0, 2) : []);
    expect(await bed.ids('failed')).toEqual([ids[2]]);
    expect(await bed.ids('processing')).toEqual([ids[5]]);
    expect(await bed.ids('pending')).toEqual([ids[3], ids[4], ids[6], ids[7]]);
    const rows = await bed.sql(
      `SELECT attempts, last_error, claimed_by, claimed_at, published_at FROM outbox WHERE id IN (?) ORDER BY id`,
      [ids.slice(2, 5)],
    );
    const unclaimed = { claimed_by: null, claimed_at: null, published_at: null };
    expect(rows).toEqual([
      { attempts: 1, last_error: 'MESSAGE_TOO_LARGE: 2,000,000 bytes', ...unclaimed },
      { attempts: 1, last_error: "é'😀\\ ".repeat(200), ...unclaimed },
      { attempts: 0, last_error: null, ...unclaimed },
    ]);
    expect(await store.isFailed(0, ids[2])).toBe(true);
    expect(await store.isFailed(0, ids[3])).toBe(false);
    expect(await store.isFailed(0, 99_999n)).toBe(false);
  });

  test('what is no longer ours stays as it is', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(3);
    await store.claim(leader, 0, ids.slice(0, 2));
    await bed.sql("UPDATE outbox SET claimed_by = X'0f' WHERE id = ?", [ids[0]]);
    await bed.sql("UPDATE outbox SET status = 'failed' WHERE id = ?", [ids[1]]);
    expect(await store.writeBack(leader, 0, { ...NOTHING, published: ids })).toEqual(NOTHING);
    expect(await bed.ids('published')).toEqual([]);
    expect(idsOf(await store.claimedRows(leader, 0, ids))).toEqual([]);
  });

  test('S19 what somebody holds is not waited for and comes back, everything else is done', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(6);
    await store.claim(leader, 0, ids);
    const held = [ids[0], ids[2], ids[4]];
    const holder = await hold(bed, held);
    const failures = [failure(ids[2], 'failed'), failure(ids[3], 'failed')];
    const left = await bed.withoutLockWait(
      store.writeBack(leader, 0, { published: ids.slice(0, 2), failures, back: ids.slice(4) }),
    );
    expect(left).toEqual({ published: [ids[0]], failures: [failures[0]], back: [ids[4]] });
    expect(await bed.ids('processing')).toEqual(held);
    await holder.rollback();
    expect(await store.writeBack(leader, 0, left)).toEqual(NOTHING);
    expect(await bed.ids('processing')).toEqual([]);
  });

  test('where a table does not say whose a claim is, or counts nothing, the state alone is kept', async () => {
    await using bed = await StoreBed.open();
    const settings = bed.settings();
    const columns = {
      ...settings.outboxes[0].columns,
      claimedBy: null,
      claimedAt: null,
      attempts: null,
      lastError: null,
    };
    const bare = { ...settings, outboxes: [{ ...settings.outboxes[0], columns }] };
    const store = new MysqlStore(bare, systemClock, silent);
    const leader = await bed.lead(store);
    const ids = await bed.insert(4);
    expect((await store.dueRows(0, null, 9)).rows.map(({ attempts }) => attempts)).toEqual([0, 0, 0, 0]);
    expect((await store.claim(leader, 0, ids.slice(1))).claimed).toEqual(ids.slice(1));
    expect(idsOf(await store.claimedRows(leader, 0, ids))).toEqual(ids.slice(1));
    const outcome = { published: [ids[1]], failures: [failure(ids[2], 'failed')], back: [] };
    expect(await store.writeBack(leader, 0, outcome)).toEqual(NOTHING);
    expect(await store.releaseClaims(leader, null)).toEqual({ released: 1, held: [] });
    expect(await bed.ids('pending')).toEqual([ids[0], ids[3]]);
    await leader.release();
    await store.close();
  });
});

describe('rows that fail on the way of the tail', () => {
  test('are failed, or pending with one attempt more; those settled by somebody else stay', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(4);
    await bed.sql("UPDATE outbox SET status = 'published' WHERE id = ?", [ids[2]]);
    const failures = [
      failure(ids[0], 'failed'),
      failure(ids[1], 'pending', 'CORRUPT_MESSAGE'),
      failure(ids[2], 'failed'),
    ];
    expect(await store.fail(leader, failures)).toEqual([]);
    expect(await store.fail(leader, [failures[1]])).toEqual([]);
    expect(await bed.ids('failed')).toEqual([ids[0]]);
    const [row] = await bed.sql('SELECT status, attempts, last_error FROM outbox WHERE id = ?', [ids[1]]);
    expect(row).toEqual({ status: 'pending', attempts: 2, last_error: 'CORRUPT_MESSAGE' });
    expect(await store.fail(leader, [])).toEqual([]);
  });

  test('S3 what is held, or in the log and not yet visible, is not done', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(3);
    const holder = await hold(bed, [ids[1]]);
    const [late] = await bed.insert(1, holder);
    const failures = [ids[0], ids[1], late, 88_888n].map((id) => failure(id, 'failed'));
    expect(await store.fail(leader, failures)).toEqual([failures[1], failures[2]]);
    await holder.commit();
    expect(await store.fail(leader, failures.slice(1, 3))).toEqual([]);
    expect(await bed.ids('failed')).toEqual([ids[0], ids[1], late]);
  });
});

describe('S12 claims of leaders before', () => {
  test('are pending again, in more than one batch; this leader’s stay', async () => {
    await using bed = await StoreBed.open();
    const before = bed.store();
    const first = await bed.lead(before);
    const ids = await bed.insertMany(2_600);
    await before.claim(first, 0, ids.slice(0, 2_500));
    await bed.sql('UPDATE outbox SET claimed_by = NULL WHERE id = ?', [ids[0]]);
    await first.release();
    const store = bed.store();
    const leader = await bed.lead(store);
    await store.claim(leader, 0, ids.slice(2_500, 2_550));
    expect(await store.releaseClaims(leader, null)).toEqual({ released: 2_500, held: [] });
    expect(await bed.ids('processing')).toEqual(ids.slice(2_500, 2_550));
    const [row] = await bed.sql(
      "SELECT COUNT(claimed_by) + COUNT(claimed_at) AS n FROM outbox WHERE status = 'pending'",
    );
    expect(Number(row['n'])).toBe(0);
    expect(await store.releaseClaims(leader, null)).toEqual({ released: 0, held: [] });
    await expect(before.writeBack(first, 0, { ...NOTHING, published: ids.slice(0, 9) })).rejects.toMatchObject({
      fault: { code: 'LEADERSHIP_LOST' },
    });
  });

  test('those that somebody holds are named, and waited for by nobody', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(6);
    await bed.sql("UPDATE outbox SET status = 'processing', claimed_by = X'00' WHERE id <> ?", [ids[5]]);
    const holder = await hold(bed, [ids[1], ids[3], ids[5]]);
    const { released, held } = await store.releaseClaims(leader, null);
    expect(released).toBe(3);
    expect(held).toMatchObject([
      { outbox: 0, id: ids[1], topic: 'topic', attempts: 0 },
      { outbox: 0, id: ids[3], topic: 'topic', attempts: 0 },
    ]);
    expect(await bed.ids('processing')).toEqual([ids[1], ids[3]]);
    // What the holder settles itself is nobody's claim any more; what is not asked for stays.
    await holder.query("UPDATE outbox SET status = 'published' WHERE id = ?", [ids[1]]);
    await holder.commit();
    await bed.sql("UPDATE outbox SET status = 'processing', claimed_by = X'00' WHERE id = ?", [ids[5]]);
    expect(await store.releaseClaims(leader, held)).toEqual({ released: 1, held: [] });
    expect(await store.releaseClaims(leader, [])).toEqual({ released: 0, held: [] });
    expect(await bed.ids('processing')).toEqual([ids[5]]);
    expect(await bed.ids('published')).toEqual([ids[1]]);
  });

  test('a gap of the index that somebody holds keeps all of them as they are', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    const ids = await bed.insert(3);
    await bed.sql("UPDATE outbox SET status = 'processing', claimed_by = X'00'");
    const holder = await bed.connect();
    await holder.query('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
    await holder.beginTransaction();
    await holder.query("SELECT id FROM outbox FORCE INDEX (waiting) WHERE status = 'pending' FOR UPDATE");
    const { released, held } = await store.releaseClaims(leader, null);
    expect({ released, ids: held.map(({ id }) => id) }).toEqual({ released: 0, ids });
    await holder.commit();
    expect(await store.releaseClaims(leader, held)).toEqual({ released: 3, held: [] });
    expect(await bed.ids('pending')).toEqual(ids);
  });

  test('where too many are held it is said: the next term tries again', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    await bed.insertMany(2_100);
    await bed.sql("UPDATE outbox SET status = 'processing', claimed_by = X'00'");
    const holder = await bed.connect();
    await holder.beginTransaction();
    await holder.query("UPDATE outbox SET attempts = 1 WHERE status = 'processing'");
    await expect(store.releaseClaims(leader, null)).rejects.toMatchObject({
      fault: { code: 'MYSQL_LOCK_WAIT', disposition: 'retry' },
    });
    await holder.rollback();
    expect(await store.releaseClaims(leader, null)).toEqual({ released: 2_100, held: [] });
  });
});
