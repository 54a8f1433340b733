import type { RowDataPacket } from 'mysql2/promise';
import { expect, test } from 'vitest';
import { isTenth } from '../../stack/full.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { freePort } from '../../stack/ports.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { startMysql } from '../../stack/stack.ts';
import { until } from '../../stack/until.ts';
import { ask } from '../resync/resync-bed.ts';
import { RelayUser } from '../sweep/sweep-bed.ts';
import { Relayed } from './http-client.ts';

const HOUR_MS = 3_600_000;

test('/status: who leads and who waits; how long the checkpoint has until its binlog is purged, at the earliest', async () => {
  await using mysql = await startMysql();
  await using bed = await RelayBed.open({ mysql });
  const [port, second] = [await freePort(), await freePort()];
  const relay = new Relayed(port);
  await bed.sql('SET GLOBAL binlog_expire_logs_seconds = 7200');
  await bed.start({ http: { port }, relay: { flushMs: 1_000 } });
  const standby = await bed.launch({ http: { port: second } });
  const topic = bed.servers.topic('orders');
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.retired();
  await standby.waitFor('relay-state', { fields: { to: 'standby' } });
  const saved = (await bed.saved())!;
  const leader = { owner: saved.owner, epoch: saved.epoch };
  await until(async () => (await relay.status()).standbys === 1, {
    withinMs: 20_000,
    what: 'one that stands by',
    everyMs: 100,
  });
  const first = await relay.status();
  expect(first).toMatchObject({ state: 'FLOWING', leader: { ...leader, isThis: true }, paused: null, jobs: [] });
  expect(first.upMs).toBeGreaterThan(500);
  expect(first.rate.over15MinRowsPerSecond).toBeGreaterThan(0);
  expect(first.purge).toMatchObject({ expireMs: 2 * HOUR_MS, inMs: 2 * HOUR_MS });
  const waits = new Relayed(second);
  expect(await waits.status()).toMatchObject({
    ...{ state: 'STANDBY', leader: { ...leader, isThis: false }, term: null },
    purge: { expireMs: 2 * HOUR_MS },
  });

  // A row that is delivered and that the application holds: the checkpoint stays before it.
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.retired();
  const holder = await bed.servers.pool.getConnection();
  try {
    await holder.query(
      `INSERT INTO outbox (topic, aggregate_id) VALUES (?, 'held');
       BEGIN; SELECT id FROM outbox WHERE id = LAST_INSERT_ID() FOR UPDATE`,
      [topic],
    );
    const heldMs = Date.now();
    await until(async () => ((await relay.metric('cdc_relay_application_locked_rows')) ?? 0) > 0, {
      withinMs: 20_000,
      what: 'a row that cannot be marked',
    });
    const file = (await bed.saved())!.file;
    await bed.sql('FLUSH BINARY LOGS');
    await insertRows(bed.servers.pool, { topic: bed.servers.topic('missing'), count: 200 });
    const behind = async () => {
      const { purge } = await relay.status();
      return purge !== null && purge.behindBytes! > 20_000 ? purge : undefined;
    };
    const held = await until(behind, { withinMs: 20_000, what: 'a log that has gone on', everyMs: 100 });
    // From the commit of the last transaction before the checkpoint on: it was there before the row that is held.
    const sinceHeldMs = Date.now() - heldMs;
    expect(held.inMs).toBeLessThanOrEqual(2 * HOUR_MS - sinceHeldMs + 10_000);
    expect(held.inMs).toBeGreaterThan(2 * HOUR_MS - sinceHeldMs - 60_000);
    expect(held.keptBytes).toBe(await bytesBefore(bed, file));
    const metrics = await relay.metrics();
    expect(metrics.get('cdc_relay_purge_headroom_seconds')! / 7_200).toBeCloseTo(1, 2);
    expect(metrics.get('cdc_relay_checkpoint_behind_bytes')).toBeGreaterThan(20_000);
    expect(metrics.get('cdc_relay_checkpoint_age_seconds')).toBeGreaterThan(0);
    expect(metrics.get('cdc_relay_standbys')).toBe(1);

    if (!isTenth) await expectNoSoonerPurge(bed, relay, file, held.inMs!);
  } finally {
    await holder.query('COMMIT');
    holder.release();
  }
  await bed.sql('SET GLOBAL binlog_expire_logs_seconds = 0');
  await until(async () => (await relay.status()).purge?.expireMs === null, {
    withinMs: 20_000,
    what: 'no expiry',
    everyMs: 100,
  });
  await until(async () => (await relay.status()).purge?.behindBytes !== null, {
    withinMs: 20_000,
    what: 'a checkpoint',
  });
  expect((await relay.status()).purge).toMatchObject({ inMs: null });
  expect(await relay.metric('cdc_relay_purge_headroom_seconds')).toBeUndefined();
});

test('/status: paused by whom, a job that waits and then runs, what failed by its code; by a user who may ask for little', async () => {
  await using bed = await RelayBed.open();
  await using user = await RelayUser.create(bed, false);
  const port = await freePort();
  const relay = new Relayed(port);
  const process = await bed.launch({ http: { port }, mysql: user.mysql, sweep: { mode: 'sweep' } });
  await until(async () => (await relay.isReady()) && (await relay.status()).leader !== null, {
    withinMs: 20_000,
    what: 'a relay that leads',
  });
  await bed.sql(
    `INSERT INTO outbox (topic, aggregate_id, status, last_error, available_at) VALUES
     (?, 'a', 'failed', 'KAFKA_MESSAGE_TOO_LARGE: 9 bytes', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR),
     (?, 'b', 'pending', NULL, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)`,
    [bed.servers.topic('orders'), bed.servers.topic('orders')],
  );
  const hasLooked = async () => (await relay.status()).outboxes?.[0].waiting?.delayedRows === 1;
  await until(hasLooked, { withinMs: 20_000, what: 'a look at the rows', everyMs: 100 });
  const status = await relay.status();
  expect(status).toMatchObject({ state: 'SWEEP ONLY', head: null, purge: null, standbys: 0, leader: { isThis: true } });
  const [{ waiting }] = status.outboxes!;
  expect(waiting).toMatchObject({ failedRows: 1, newestFailedCode: 'KAFKA_MESSAGE_TOO_LARGE', processingRows: 0 });
  expect(waiting!.newestFailedMs! / HOUR_MS).toBeCloseTo(1, 1);
  expect(waiting!.nextDelayedInMs! / HOUR_MS).toBeCloseTo(1, 1);
  expect(await relay.metric('cdc_relay_checkpoint_age_seconds')).toBeUndefined();

  await bed.sql("UPDATE cdc_relay_offsets SET paused_at = UTC_TIMESTAMP(6), paused_by = 'me@here'");
  await until(async () => (await relay.ready())?.state === 'PAUSED', {
    withinMs: 20_000,
    what: 'PAUSED',
    everyMs: 100,
  });
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 60 });
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('missing'), count: 40 });
  const id = String(await ask(bed, { kind: 'reconcile', from: { at: 'head' } }));
  const job = async () => (await relay.status()).jobs.at(0);
  await until(async () => (await job())?.state === 'queued', {
    withinMs: 20_000,
    what: 'a job that waits',
    everyMs: 100,
  });
  expect(await relay.status()).toMatchObject({
    ...{ state: 'PAUSED', ready: false, notReady: ['PAUSED'], paused: { by: 'me@here' } },
    jobs: [{ id, kind: 'reconcile', done: null, total: null, startedMsAgo: null }],
  });
  const paused = await relay.metrics();
  expect(paused.get('cdc_relay_paused')).toBe(1);
  expect(paused.get('cdc_relay_jobs{state="queued"}')).toBe(1);
  await bed.sql('UPDATE cdc_relay_offsets SET paused_at = NULL, paused_by = NULL');
  const running = async () => {
    const now = await job();
    return now?.state === 'running' && now.done === 60 ? now : undefined;
  };
  // It runs until nothing is pending any more: rows of a topic that is missing are.
  const seen = await until(running, { withinMs: 20_000, what: 'a job that runs', everyMs: 100 });
  expect(seen).toMatchObject({ id, total: 100, startedMsAgo: expect.any(Number) as number });
  expect(await relay.metric('cdc_relay_job_rows{at="total"}')).toBe(100);
  expect((await relay.metric('cdc_relay_oldest_parked_seconds'))!).toBeGreaterThan(0);
  await bed.sql('DELETE FROM outbox WHERE topic = ?', [bed.servers.topic('missing')]);
  await until(async () => (await job()) === undefined, { withinMs: 30_000, what: 'a job that is done', everyMs: 100 });
  // What may not be asked is no error.
  expect(process.lines().filter(({ level }) => level === 'error')).toEqual([]);
});

async function bytesBefore(bed: RelayBed, file: string): Promise<number> {
  const logs: RowDataPacket[] = await bed.sql('SHOW BINARY LOGS');
  const older = logs.slice(
    0,
    logs.findIndex((log) => log['Log_name'] === file),
  );
  return older.reduce((bytes, log) => bytes + Number(log['File_size']), 0);
}

/** As long as it says that there is time left, a rotation leaves the file where it is; then it may be gone. */
async function expectNoSoonerPurge(bed: RelayBed, relay: Relayed, file: string, inMs: number): Promise<void> {
  const expireMs = Math.ceil((2 * HOUR_MS - inMs) / 1_000) * 1_000 + 3_000;
  await bed.sql('SET GLOBAL binlog_expire_logs_seconds = ?', [expireMs / 1_000]);
  const said: { readonly inMs: number; readonly isThere: boolean }[] = [];
  const isGone = async (): Promise<boolean> => {
    const { purge } = await relay.status();
    await bed.sql('FLUSH BINARY LOGS');
    const isThere = (await bed.sql('SHOW BINARY LOGS')).some((log) => log['Log_name'] === file);
    if (purge!.expireMs === expireMs) said.push({ inMs: purge!.inMs!, isThere });
    return !isThere;
  };
  await until(isGone, { withinMs: 30_000, what: 'the purge of the file', everyMs: 300 });
  expect(said.filter(({ inMs, isThere }) => inMs > 0 && !isThere)).toEqual([]);
  expect(said.some(({ inMs }) => inMs > 0)).toBe(true);
  await until(async () => (await relay.status()).purge?.behindBytes === null, {
    withinMs: 20_000,
    what: 'a look',
    everyMs: 100,
  });
  expect((await relay.status()).purge).toMatchObject({ inMs: 0, keptBytes: null });
}
