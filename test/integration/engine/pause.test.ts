import { expect, test } from 'vitest';
import { pauseSchema } from '../../../src/commands/pause-report.ts';
import { type StatusReport, statusSchema } from '../../../src/commands/status-report.ts';
import { Load } from '../../stack/load.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { freePort } from '../../stack/ports.ts';
import { type Config, RelayBed } from '../../stack/relay-bed.ts';
import { startCli } from '../../stack/relay-process.ts';
import { until } from '../../stack/until.ts';

/** Longer than the leader needs to look at what people ask. */
const LOOKED_MS = 1_300;

async function cli(bed: RelayBed, args: readonly string[], config: Config = {}) {
  await using command = await startCli(args, { config: bed.config(config) });
  const { code } = await command.exited;
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

async function statusOf(bed: RelayBed, config: Config = {}): Promise<StatusReport> {
  return statusSchema.parse(JSON.parse((await cli(bed, ['status', '--json'], config)).stdout));
}

/** What must not move while nobody moves rows. */
async function standing(bed: RelayBed): Promise<object> {
  const [row] = await bed.sql('SELECT file, position, high_file, high_position FROM cdc_relay_offsets');
  return {
    ...row,
    records: await bed.records(),
    published: await bed.count('outbox', "status = 'published'"),
    claimed: await bed.count('outbox', "status = 'processing'"),
  };
}

async function expectStanding(bed: RelayBed, load: Load, what: object): Promise<void> {
  const [endMs, committed] = [performance.now() + LOOKED_MS, load.committed];
  const isOver = (): boolean => performance.now() > endMs && load.committed > committed + 50;
  await until(isOver, { withinMs: 20_000, what: 'more rows of the application' });
  expect(await standing(bed)).toEqual(what);
}

test('I3 S12 paused under load: no row moves, through death, take-over and restart; resumed: all, in order, none twice', async () => {
  await using bed = await RelayBed.open();
  const port = await freePort();
  const first = await bed.start({ http: { port } });
  const second = await bed.launch();
  await second.waitFor('relay-state', { fields: { to: 'standby' } });
  const load = new Load(bed.servers.pool, { topic: bed.servers.topic('orders'), writers: 2 });
  await until(async () => (await bed.records()) > 300, { withinMs: 20_000, what: 'records under load' });

  const { code, stdout } = await cli(bed, ['pause']);
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^PAUSED {4}\S+: nothing is read/) as string,
  });
  expect(stdout).toMatch(
    /^purge {5}(the binlog of the checkpoint is kept for \d+ d|binlogs are not purged by their age)/m,
  );
  // It had come to rest when the command said so.
  const rested = await standing(bed);
  expect(rested).toMatchObject({ claimed: 0 });
  await expectStanding(bed, load, rested);
  expect(await statusOf(bed, { http: { port } })).toMatchObject({
    ...{ state: 'PAUSED', source: 'relay', leader: { epoch: 1 }, standbys: 1, relay: { as: 'leader' } },
    paused: { by: expect.stringContaining('@') as string },
  });

  await first.kill();
  await second.waitFor('relay-state', { fields: { to: 'paused' } });
  await expectStanding(bed, load, rested);
  const [again, alone] = await Promise.all([cli(bed, ['pause', '--json']), statusOf(bed)]);
  expect(pauseSchema.parse(JSON.parse(again.stdout))).toMatchObject({ paused: true, changed: false, followed: true });
  expect(alone).toMatchObject({ state: 'PAUSED', source: 'database', leader: { epoch: 2 }, relay: { as: 'off' } });
  expect(alone.lagMs).toBeGreaterThan(2 * LOOKED_MS);

  expect(await second.kill('SIGTERM')).toMatchObject({ code: 0 });
  const third = await bed.launch();
  await third.waitFor('relay-state', { fields: { to: 'paused' } });
  await expectStanding(bed, load, rested);
  expect(third.lines().some(({ event, to }) => event === 'relay-state' && to === 'flowing')).toBe(false);

  const resumed = await cli(bed, ['resume']);
  expect(resumed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^RESUMED {3}\S+ was paused for/) as string });
  await third.waitFor('binlog-streaming');
  await load.stop();
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ lost: 0, duplicates: 0, reordered: 0 });
  expect(await statusOf(bed)).toMatchObject({ state: 'FLOWING', paused: null });
});

test('paused before there is a relay: the first start rests too, and jobs wait; a table of the version before says nothing of it', async () => {
  await using bed = await RelayBed.open();
  const none = await cli(bed, ['pause']);
  expect(none).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('no relay leads; one that is started rests') as string,
  });
  const relay = await bed.launch();
  await relay.waitFor('relay-state', { fields: { to: 'paused' } });
  await using job = await startCli(['resync', '--yes'], { config: bed.config() });
  const says = (): boolean => job.stderr().includes('the relay is paused: job 1 waits until cdc-relay resume');
  await until(says, { withinMs: 20_000, what: 'a job that waits' });
  expect((await cli(bed, ['resume'])).code).toBe(0);
  await relay.waitFor('binlog-streaming');
  expect(await job.exited).toMatchObject({ code: 0 });
  expect(await cli(bed, ['resume'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('was not paused') as string,
  });

  await bed.sql('ALTER TABLE cdc_relay_offsets DROP COLUMN paused_at, DROP COLUMN paused_by, DROP COLUMN rested_epoch');
  await relay.kill('SIGTERM');
  const old = await bed.start();
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 20 });
  await bed.retired();
  expect(await statusOf(bed)).toMatchObject({ state: 'FLOWING', paused: null });
  expect(old.lines().filter(({ event }) => event.startsWith('pause'))).toEqual([]);
  expect(await cli(bed, ['pause'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('cdc-relay migrate') as string,
  });
  expect(await bed.expectDelivered()).toMatchObject({ committed: 20, duplicates: 0 });
});
