import kafkajs from 'kafkajs';
import { expect, test } from 'vitest';
import { Load } from '../../stack/load.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { startCli } from '../../stack/relay-process.ts';
import { until } from '../../stack/until.ts';
import { startTailing, sweepBed } from '../sweep/sweep-bed.ts';
import { ALL, ask, command, contentOf, ended, resynced, rowIds, stateOf, type Told, told } from './resync-bed.ts';

/** Records by the aggregate, in their order. */
function byAggregate(records: readonly Told[]): Map<string, Told[]> {
  return Map.groupBy(records, ({ topic, key }) => `${topic} ${key}`);
}

test('rows sent again under live load: the same bytes and a header more, by id, never mixed with live rows of their aggregate', async () => {
  await using bed = await sweepBed({ topics: { orders: 3 } });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  // The same aggregates as the live rows below.
  for (let writer = 0; writer < 4; writer++) {
    await insertRows(bed.servers.pool, { topic, count: 800, aggregates: 5, prefix: `writer-${writer}` });
  }
  await bed.retired();
  const before = await rowIds(bed);
  const load = new Load(bed.servers.pool, { topic, pauseMs: 2 });
  const job = await resynced(bed, '--republish');
  await load.stop();
  await bed.retired();
  expect(job.republish).toMatchObject({ failed: 0, gone: 0 });
  expect(job.republish!.sent).toBeGreaterThanOrEqual(3_200);

  const records = await told(bed);
  const replayed = records.filter((record) => record.job !== null);
  expect(new Set(replayed.map((record) => record.job))).toEqual(new Set([String(job.id)]));
  const replayedIds = new Set(replayed.map(({ id }) => id));
  for (const id of before.keys()) expect(replayedIds.has(id)).toBe(true);
  const firsts = new Map(records.filter((record) => record.job === null).map((record) => [record.id, record]));
  for (const record of replayed) expect(contentOf(record)).toEqual(contentOf(firsts.get(record.id)!));
  const ids = await rowIds(bed);
  for (const all of byAggregate(records).values()) {
    const again = all.filter((record) => record.job !== null).map(({ id }) => ids.get(id)!);
    expect(again).toEqual(again.toSorted((a, b) => a - b));
    // Nothing live of the aggregate lies between two of them.
    const places = all.flatMap((record, place) => (record.job === null ? [] : [place]));
    expect(places.at(-1)! - places[0]).toBe(places.length - 1);
    // And live rows came in the order in which they were written: one writer an aggregate.
    const live = all.filter((record) => record.job === null).map(({ id }) => ids.get(id)!);
    expect(live).toEqual(live.toSorted((a, b) => a - b));
  }
  expect(firsts.size).toBe(ids.size);
  // No aggregate waits any more.
  await until(async () => Number((await bed.sql('SELECT COUNT(*) AS n FROM cdc_relay_parked'))[0]['n']) === 0, {
    withinMs: 20_000,
    what: 'nothing parked',
  });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('SIGKILL in the middle: the next relay goes on behind the chunk that was saved last, and live rows keep their order', async () => {
  await using bed = await sweepBed({ topics: { orders: 3 } });
  const topic = bed.servers.topic('orders');
  const first = await startTailing(bed);
  await insertRows(bed.servers.pool, { topic, count: 30_000, aggregates: 3_000, payloadBytes: 400 });
  await bed.retired();
  const load = new Load(bed.servers.pool, { topic, pauseMs: 5 });
  const job = await ask(bed, { kind: 'republish', filter: ALL });
  const sent = async (): Promise<number> => Number((await stateOf(bed, job)).progress['sent'] ?? 0);
  await bed.orTail(() => until(async () => (await sent()) > 4_000, { withinMs: 20_000, what: 'some chunks' }));
  await first.kill('SIGKILL');
  const then = await stateOf(bed, job);
  expect(then.state).toBe('running');
  expect(Number(then.progress['sent'])).toBeLessThan(30_000);
  const second = await bed.start();
  await second.waitFor('job-started', { fields: { again: true } });
  expect(await ended(bed, job, 60_000)).toBe('done');
  await load.stop();
  await bed.retired();
  const records = await told(bed);
  const replays = records.filter((record) => record.job !== null);
  const counts = Map.groupBy(replays, ({ id }) => id);
  expect(counts.size).toBeGreaterThanOrEqual(30_000);
  // Only the chunk under way was sent once more, it is whole aggregates, and people are told.
  expect(Number((await stateOf(bed, job)).progress['repeats'])).toBeGreaterThan(0);
  expect(replays.length - counts.size).toBeLessThan(5_000);
  const ids = await rowIds(bed);
  expect(new Set(records.filter((record) => record.job === null).map(({ id }) => id)).size).toBe(ids.size);
  for (const all of byAggregate(records).values()) {
    const seen = new Set<string>();
    const live = all.filter((record) => record.job === null && !seen.has(record.id) && seen.add(record.id));
    const order = live.map(({ id }) => ids.get(id)!);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  }
  await until(async () => Number((await bed.sql('SELECT COUNT(*) AS n FROM cdc_relay_parked'))[0]['n']) === 0, {
    withinMs: 20_000,
    what: 'nothing parked',
  });
  expect((await second.kill('SIGTERM')).code).toBe(0);
});

test('filters, a dry run that sends nothing, list and show', async () => {
  await using bed = await sweepBed({ topics: { orders: 1, bills: 1 } });
  const { topic } = bed.servers;
  const relay = await startTailing(bed);
  await insertRows(bed.servers.pool, { topic: topic('orders'), count: 50, aggregates: 5 });
  await insertRows(bed.servers.pool, { topic: topic('bills'), count: 20, aggregates: 4 });
  await bed.retired();
  await bed.sql("UPDATE outbox SET created_at = '2020-01-01 00:00:00' WHERE id <= 10");
  const records = await bed.records();

  const { stdout, code } = await command(
    bed,
    'resync',
    '--republish',
    '--topic',
    topic('orders'),
    '--dry-run',
    '--json',
  );
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    ...{ version: 1, kind: 'republish', rows: 50, aggregates: 5, isMeasured: false },
    topics: [{ topic: topic('orders'), rows: 50 }],
    oldest: '2020-01-01T00:00:00.000000Z',
  });
  expect(await bed.records()).toBe(records);
  expect(await bed.count('cdc_relay_jobs')).toBe(0);

  const sent = async (...filter: string[]): Promise<number | undefined> =>
    (await resynced(bed, '--republish', ...filter)).republish?.sent;
  expect(await sent('--topic', topic('bills'))).toBe(20);
  expect(await sent('--aggregate', 'aggregate-1', '--topic', topic('orders'))).toBe(10);
  expect(await sent('--id', '11..15')).toBe(5);
  expect(await sent('--until', '2020-01-02')).toBe(10);
  expect(await sent('--since', '2020-01-02', '--topic', topic('orders'))).toBe(40);
  expect(await sent('--id', '900000..900001')).toBe(0);
  expect(await bed.records()).toBe(records + 85);

  const list = await command(bed, 'resync', 'list', '--json');
  expect((JSON.parse(list.stdout) as { jobs: unknown[] }).jobs).toHaveLength(6);
  const show = await command(bed, 'resync', 'show', '3');
  expect(show.stdout).toMatch(/^DONE {2}job 3: send published rows again: ids 11\.\.15\nprogress {2}5 of 5 rows sent/);
  const wrong = [
    ['--topic', 'x'],
    ['--republish', '--id', '15..11'],
    ['--republish', '--since', '1h', '--until', '2h'],
    ['--from-gtid', ''],
  ];
  const refused = await Promise.all(wrong.map((options) => command(bed, 'resync', ...options, '--yes')));
  expect(refused.map(({ code }) => code)).toEqual([2, 2, 2, 2]);
  expect(await bed.count('cdc_relay_jobs')).toBe(6);
  expect((await command(bed, 'resync', 'show', '99')).code).toBe(2);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('cancelled: it ends within a chunk, and nothing stays parked; Ctrl-C ends only the watching', async () => {
  await using bed = await sweepBed({ topics: { orders: 1 } });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  await insertRows(bed.servers.pool, { topic, count: 120_000, aggregates: 24_000, payloadBytes: 300 });
  await bed.retired();
  const job = await ask(bed, { kind: 'republish', filter: ALL });
  await using interrupted = await startCli(['resync', 'attach', String(job), '--json'], { config: bed.config() });
  await until(() => interrupted.stdout().includes('running'), { withinMs: 20_000, what: 'a watcher' });
  expect((await interrupted.kill('SIGINT')).code).toBe(130);
  expect(interrupted.stderr()).toContain(`cdc-relay resync attach ${job}`);
  expect((await stateOf(bed, job)).state).toBe('running');
  const watching = command(bed, 'resync', 'attach', String(job), '--json');
  await bed.orTail(() =>
    until(async () => Number((await stateOf(bed, job)).progress['sent'] ?? 0) > 0, {
      withinMs: 20_000,
      what: 'a chunk',
    }),
  );
  const { code, stdout } = await command(bed, 'resync', 'cancel', String(job));
  expect(stdout).toContain('is cancelled');
  expect(code).toBe(0);
  await relay.waitFor('job-cancelled');
  expect((await watching).code).toBe(1);
  const sent = await bed.records();
  expect(sent).toBeLessThan(240_000);
  expect((await command(bed, 'resync', 'cancel', String(job))).code).toBe(1);
  await until(async () => Number((await bed.sql('SELECT COUNT(*) AS n FROM cdc_relay_parked'))[0]['n']) === 0, {
    withinMs: 20_000,
    what: 'nothing parked',
  });
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.retired();
  expect(await bed.records()).toBe(sent + 10);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('more live rows than can be held: the aggregate is handed over by the sweep, the chunk begins again, order is kept', async () => {
  const pool = { relay: { maxInFlightBytes: 2 << 20 }, kafka: { batchBytes: 64 << 10 } };
  await using bed = await sweepBed({ topics: { orders: 1 }, config: pool });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  await insertRows(bed.servers.pool, { topic, count: 6_000, aggregates: 1, prefix: 'writer-0', payloadBytes: 2_000 });
  await bed.retired();
  const load = new Load(bed.servers.pool, { topic, writers: 1, pauseMs: 0, payloadBytes: 30_000 });
  const job = await ask(bed, { kind: 'republish', filter: { ...ALL, ids: { from: '1', to: '6000' } } });
  const repeats = async (): Promise<boolean> => {
    const { state, progress } = await stateOf(bed, job);
    return state === 'done' || Number(progress['repeats'] ?? 0) > 1;
  };
  await bed.orTail(() => until(repeats, { withinMs: 40_000, what: 'a chunk that is begun again' }));
  await load.stop();
  expect(await ended(bed, job, 60_000)).toBe('done');
  await bed.retired();
  const { progress } = await stateOf(bed, job);
  expect(Number(progress['repeats'])).toBeGreaterThan(0);
  const records = await told(bed);
  const ids = await rowIds(bed);
  const live = records.filter((record) => record.job === null);
  expect(live).toHaveLength(ids.size);
  for (const all of byAggregate(live).values()) {
    const order = all.map(({ id }) => ids.get(id)!);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  }
  const replayed = records.filter(({ job }) => job !== null).map(({ id }) => ids.get(id)!);
  expect(new Set(replayed).size).toBe(Number(progress['total']));
  await until(async () => Number((await bed.sql('SELECT COUNT(*) AS n FROM cdc_relay_parked'))[0]['n']) === 0, {
    withinMs: 20_000,
    what: 'nothing parked',
  });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});

test('a row that is too large for its topic now is counted and named, and stays published; a topic that is gone, too', async () => {
  await using bed = await sweepBed({ topics: { orders: 1 }, config: { kafka: { batchBytes: 64 << 10 } } });
  const topic = bed.servers.topic('orders');
  const relay = await startTailing(bed);
  await insertRows(bed.servers.pool, { topic, count: 20, aggregates: 2 });
  await insertRows(bed.servers.pool, { topic, count: 1, prefix: 'large', payloadBytes: 50_000 });
  await insertRows(bed.servers.pool, { topic, count: 20, aggregates: 2 });
  await bed.retired();
  await bed.sql("UPDATE outbox SET topic = 'never.was' WHERE id = 1");
  const admin = bed.servers.kafka.admin();
  await admin.connect();
  await admin.alterConfigs({
    validateOnly: false,
    resources: [
      {
        type: kafkajs.ConfigResourceTypes.TOPIC,
        name: topic,
        configEntries: [{ name: 'max.message.bytes', value: '20000' }],
      },
    ],
  });
  await admin.disconnect();
  const { code, stdout } = await command(bed, 'resync', '--republish', '--yes', '--json');
  expect(code).toBe(1);
  const { job } = JSON.parse(stdout.trim().split('\n').at(-1)!) as { job: { state: string; republish: unknown } };
  expect(job).toMatchObject({ state: 'done', republish: { total: 41, sent: 39, failed: 2, repeats: 0 } });
  expect(job.republish).toMatchObject({
    failedRows: expect.arrayContaining([
      expect.objectContaining({ id: '21', error: expect.stringMatching(/^KAFKA_MESSAGE_TOO_LARGE/) as string }),
      expect.objectContaining({ id: '1', error: expect.stringMatching(/^KAFKA_UNKNOWN_TOPIC/) as string }),
    ]) as unknown,
  });
  expect(await bed.count('outbox', "status = 'published' AND last_error IS NULL")).toBe(41);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});
