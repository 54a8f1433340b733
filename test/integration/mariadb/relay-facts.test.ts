import { expect, test } from 'vitest';
import { systemClock } from '../../../src/model/clock.ts';
import { createProgressReader } from '../../../src/store/progress-reader.ts';
import { silent, StoreBed } from '../store/store-bed.ts';

test('leader, expiry in days or seconds, headroom, jobs and what waits, as on MySQL', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store();
  const leader = await bed.lead(store);
  const checkpoint = await store.head();
  const { position: high } = checkpoint;
  await store.begin(leader, { checkpoint, high, serverUuid: leader.serverUuid, parkEverything: null });
  await bed.insert(3);
  await bed.sql("UPDATE outbox SET status = 'failed', last_error = 'ROW_NO_TOPIC: none' LIMIT 1");
  const progress = { outbox: 0, doneHash: -1, cut: null, lastIds: [null], looked: 9, total: 8, counted: 1 };
  const sent = { sent: 5, gone: 1, failed: 0, failedRows: [], repeats: 0, sendingMs: 9 };
  await bed.sql(
    `INSERT INTO cdc_relay_jobs (relay, kind, spec, state, progress, started_at)
     VALUES ('store-test', 'republish', '{}', 'running', ?, UTC_TIMESTAMP(6))`,
    [JSON.stringify({ ...progress, ...sent })],
  );
  const [before] = await bed.sql('SELECT @@GLOBAL.expire_logs_days AS days');
  const reader = createProgressReader(bed.settings(), systemClock, silent);
  const look = () => reader.read({ outboxes: true, surroundings: true });
  try {
    await bed.sql('SET GLOBAL expire_logs_days = 2.5');
    const first = await look();
    expect(first).toMatchObject({
      leader: { epoch: leader.epoch },
      purge: { expireMs: 216_000_000, inMs: 216_000_000, keptBytes: expect.any(Number) as number },
      surroundings: { standbys: 0, oldestParkedMs: null, jobs: [{ state: 'running', done: 6, total: 8 }] },
      outboxes: [{ pendingRows: 2, failedRows: 1, newestFailedCode: 'ROW_NO_TOPIC' }],
    });
    expect(first.purge!.behindBytes).toBeGreaterThan(100);
    await bed.sql('SET GLOBAL binlog_expire_logs_seconds = 7200');
    expect((await look()).purge).toMatchObject({ expireMs: 7_200_000 });
    await bed.sql('SET GLOBAL binlog_expire_logs_seconds = 0');
    expect((await look()).purge).toMatchObject({ expireMs: null, inMs: null });

    const waiting = new AbortController();
    const standby = bed.store().lead(waiting.signal, () => waiting.abort());
    standby.catch(() => undefined);
    await new Promise((resolve) => waiting.signal.addEventListener('abort', resolve));
    await expect.poll(async () => (await look()).surroundings?.standbys, { timeout: 20_000, interval: 20 }).toBe(1);
    await expect(standby).rejects.toThrow('STOPPED');

    await bed.sql("UPDATE cdc_relay_offsets SET paused_at = UTC_TIMESTAMP(6), paused_by = 'me@here'");
    expect((await look()).paused).toMatchObject({ by: 'me@here' });
    await bed.sql('ALTER TABLE cdc_relay_offsets DROP COLUMN paused_at, DROP COLUMN paused_by');
    expect((await look()).paused).toBeNull();
  } finally {
    await bed.sql('SET GLOBAL expire_logs_days = ?', [Number(before['days'])]);
    reader.close();
  }
});
