import { expect, test } from 'vitest';
import { systemClock } from '../../../src/model/clock.ts';
import type { Progress } from '../../../src/model/progress.ts';
import { lockName } from '../../../src/store/leadership.ts';
import { expiryColumns } from '../../../src/store/log-headroom.ts';
import { outboxFacts } from '../../../src/store/outbox-facts.ts';
import { createProgressReader } from '../../../src/store/progress-reader.ts';
import { readRelayFacts } from '../../../src/store/relay-facts.ts';
import { Session } from '../../../src/store/session.ts';
import { readStandbys } from '../../../src/store/standbys.ts';
import { readWaitingJobs } from '../../../src/store/waiting-jobs.ts';
import { until } from '../../stack/until.ts';
import { silent, StoreBed, type StoreOptions } from './store-bed.ts';

const ALL = { outboxes: true, surroundings: true };

/** One look at everything, as a relay of the bed has it. */
async function look(bed: StoreBed, options: StoreOptions = {}): Promise<Progress> {
  const reader = createProgressReader(bed.settings(options), systemClock, silent);
  try {
    return await reader.read(ALL);
  } finally {
    reader.close();
  }
}

test('before the first start nobody leads and nothing is saved; with a leader its owner and epoch', async () => {
  await using bed = await StoreBed.open();
  expect(await look(bed)).toMatchObject({
    ...{ leader: null, paused: null, purge: null },
    surroundings: { standbys: 0, jobs: [], oldestParkedMs: null },
    outboxes: [{ pendingRows: 0, oldestPendingMs: null, nextDelayedInMs: null, newestFailedMs: null }],
  });
  const leader = await bed.lead(bed.store());
  const owner = String((await bed.offsets())['owner']);
  expect((await look(bed)).leader).toEqual({ owner, epoch: leader.epoch });

  const waiting = new AbortController();
  const standby = bed.store().lead(waiting.signal, () => undefined);
  await until(async () => (await look(bed)).surroundings?.standbys === 1, { withinMs: 20_000, what: 'a standby' });
  waiting.abort();
  await expect(standby).rejects.toThrow('STOPPED');
  expect((await look(bed)).surroundings?.standbys).toBe(0);
  await leader.release();
  expect((await look(bed)).leader).toBeNull();
});

test('a user who may ask for little: no end of the log, no headroom, and others are not counted where they are hidden', async () => {
  await using bed = await StoreBed.open();
  const user = { user: `${bed.database}_relay`, password: 'relay-password' };
  await bed.sql(`CREATE USER ${user.user} IDENTIFIED BY '${user.password}'`);
  await bed.sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${bed.database}.* TO ${user.user}`);
  try {
    const own = bed.store({ place: user });
    const leader = await bed.lead(own);
    const checkpoint = await bed.store().head();
    const { position: high } = checkpoint;
    await own.begin(leader, { checkpoint, high, serverUuid: leader.serverUuid, parkEverything: null });
    const by = (place: object) => look(bed, { place });
    const unknown = { head: null, purge: null };
    expect(await by(user)).toMatchObject({ ...unknown, leader: { epoch: 1 }, surroundings: { standbys: 0 } });
    expect((await by({})).purge).not.toBeNull();
    await leader.release();
    // Of another account, which may see all.
    await bed.lead(bed.store());
    expect(await by(user)).toMatchObject({ ...unknown, leader: { epoch: 2 }, surroundings: { standbys: null } });
    expect(await by({})).toMatchObject({ leader: { epoch: 2 }, surroundings: { standbys: 0 } });
  } finally {
    await bed.sql(`DROP USER ${user.user}`);
  }
});

test('a pause as people asked for it; without the columns of a pause there is none', async () => {
  await using bed = await StoreBed.open();
  await bed.lead(bed.store());
  expect((await look(bed)).paused).toBeNull();
  await bed.sql(
    "UPDATE cdc_relay_offsets SET paused_at = UTC_TIMESTAMP(6) - INTERVAL 90 SECOND, paused_by = 'me@here'",
  );
  const { paused } = await look(bed);
  expect(paused?.by).toBe('me@here');
  expect(paused!.sinceMs / 1_000).toBeCloseTo(90, -1);
  await bed.sql('ALTER TABLE cdc_relay_offsets DROP COLUMN paused_at, DROP COLUMN paused_by');
  expect(await look(bed)).toMatchObject({ paused: null, leader: { epoch: 1 } });
});

test('what waits in an outbox, with the newest failure by its code alone', async () => {
  await using bed = await StoreBed.open();
  const ids = await bed.insert(9);
  const set = (what: string, some: readonly bigint[]) => bed.sql(`UPDATE outbox SET ${what} WHERE id IN (?)`, [some]);
  await set('available_at = UTC_TIMESTAMP(6) - INTERVAL 60 SECOND', ids.slice(0, 1));
  await set('available_at = UTC_TIMESTAMP(6) + INTERVAL 300 SECOND', ids.slice(1, 3));
  await set("status = 'processing'", ids.slice(3, 4));
  await set("status = 'failed', last_error = 'ROW_ENCODING: of the older one'", ids.slice(4, 5));
  await set(
    "status = 'failed', last_error = 'MESSAGE_TOO_LARGE: 1 of 2', available_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND",
    ids.slice(5, 6),
  );
  await set('available_at = UTC_TIMESTAMP(6) - INTERVAL 30 SECOND', ids.slice(4, 5));
  const [waiting] = (await look(bed)).outboxes!;
  expect(waiting).toMatchObject({
    ...{ pendingRows: 4, delayedRows: 2, processingRows: 1, failedRows: 2 },
    newestFailedCode: 'MESSAGE_TOO_LARGE',
  });
  expect(waiting!.oldestPendingMs! / 1_000).toBeCloseTo(60, -1);
  expect(waiting!.nextDelayedInMs! / 1_000).toBeCloseTo(300, -1);
  expect(waiting!.newestFailedMs).toBeGreaterThan(900);
  expect(waiting!.newestFailedMs).toBeLessThan(120_000);
  await set(`last_error = '{"card": "4111"}'`, ids.slice(5, 6));
  expect((await look(bed)).outboxes![0]).toMatchObject({ failedRows: 2, newestFailedCode: null });
});

test('jobs that wait or run, and how far they are; what is done with, or of a newer version, is left out', async () => {
  await using bed = await StoreBed.open();
  const job = async (state: string, kind: string, progress: object | null, relay = 'store-test'): Promise<string> => {
    await bed.sql(
      `INSERT INTO cdc_relay_jobs (relay, kind, spec, state, progress, started_at)
       VALUES (?, ?, '{}', ?, ?, IF(? = 'queued', NULL, UTC_TIMESTAMP(6)))`,
      [relay, kind, state, progress === null ? null : JSON.stringify(progress), state],
    );
    const [row] = await bed.sql('SELECT MAX(id) AS id FROM cdc_relay_jobs');
    return String(row['id']);
  };
  const republish = { outbox: 0, doneHash: -1, cut: null, lastIds: ['9'], looked: 900, total: 500, counted: 1 };
  const sent = { sent: 120, gone: 3, failed: 2, failedRows: [], repeats: 0, sendingMs: 4_000 };
  await job('done', 'republish', { ...republish, ...sent });
  const queued = await job('queued', 'republish', null);
  const running = await job('running', 'reconcile', { hasBegun: true, pendingAtFirst: 70, pending: 20 });
  const second = await job('running', 'republish', { ...republish, ...sent });
  await job('queued', 'compact', null);
  await job('queued', 'republish', null, 'another');
  const { jobs } = (await look(bed)).surroundings!;
  const startedMsAgo = expect.any(Number) as number;
  expect(jobs).toEqual([
    { id: queued, kind: 'republish', state: 'queued', done: null, total: null, startedMsAgo: null },
    { id: running, kind: 'reconcile', state: 'running', done: 50, total: 70, startedMsAgo },
    { id: second, kind: 'republish', state: 'running', done: 125, total: 500, startedMsAgo },
  ]);
  await bed.sql('DROP TABLE cdc_relay_jobs');
  expect((await look(bed)).surroundings?.jobs).toEqual([]);
});

test('a position of another server has no headroom on this one', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store();
  const leader = await bed.lead(store);
  const checkpoint = await store.head();
  const high = checkpoint.position;
  await store.begin(leader, { checkpoint, high, serverUuid: leader.serverUuid, parkEverything: null });
  const { purge, head } = await look(bed);
  expect(purge).toMatchObject({ keptBytes: expect.any(Number) as number, expireMs: expect.any(Number) as number });
  expect(purge!.behindBytes).toBeGreaterThanOrEqual(0);
  expect(head!.file).toBe(checkpoint.position.file);
  await bed.sql("UPDATE cdc_relay_offsets SET server_uuid = '3e11fa47-71ca-11e1-9e33-c80aa9429562'");
  expect((await look(bed)).purge).toBeNull();
});

test('looking reads what waits by the index, and of the relay by primary key, whatever else is in the tables', async () => {
  await using bed = await StoreBed.open();
  const settings = bed.settings();
  const session = await Session.open(settings.mysql, silent);
  try {
    // As they are from the first: what an UPDATE leaves in the index until the server has purged it counts for its plans.
    await bed.sql(
      `INSERT INTO outbox (topic, aggregate_id, status)
       WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5000)
       SELECT /*+ SET_VAR(cte_max_recursion_depth = 1M) */ 'topic', n % 50,
         CASE WHEN n % 200 = 0 THEN 'failed' WHEN n % 100 = 0 THEN 'pending' ELSE 'published' END FROM n`,
    );
    await bed.sql(
      `INSERT INTO cdc_relay_jobs (relay, kind, spec, state)
       WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 900)
       SELECT 'store-test', 'republish', '{}', 'done' FROM n`,
    );
    await bed.sql(
      `INSERT INTO cdc_relay_offsets (name)
       WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 900) SELECT CONCAT('other-', n) FROM n`,
    );
    await bed.sql('ANALYZE TABLE outbox, cdc_relay_jobs, cdc_relay_offsets');
    const reads = async (): Promise<number> => {
      const rows = await session.rows('counting', "SHOW SESSION STATUS LIKE 'Handler_read%'");
      return rows.reduce((sum, row) => sum + Number(row['Value']), 0);
    };
    const counting = -(await reads()) + (await reads());
    const cost = async (work: () => Promise<unknown>): Promise<number> => {
      const before = await reads();
      await work();
      return (await reads()) - before - counting;
    };
    const expiry = await expiryColumns(session);
    const waiting = outboxFacts(settings.outboxes[0])!;
    expect(await waiting(session)).toMatchObject({ pendingRows: 25, failedRows: 25 });
    expect(await cost(() => waiting(session))).toBeLessThan(4 * 50 + 40);
    expect(await cost(() => readWaitingJobs(session, settings))).toBeLessThan(10);
    expect(await cost(() => readRelayFacts(session, settings, expiry))).toBeLessThan(20);
    const lock = lockName(bed.database, 'store-test');
    expect(await readStandbys(session, { flavour: 'mysql' }, lock)).toBe(0);
  } finally {
    session.destroy();
  }
});
