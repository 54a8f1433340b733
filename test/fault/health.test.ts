import { expect, test } from 'vitest';
import { Relayed } from '../integration/http/http-client.ts';
import { Load } from '../stack/load.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { freePort } from '../stack/ports.ts';
import { Proxy } from '../stack/proxy.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { startCli } from '../stack/relay-process.ts';
import { startKafka, startMysql } from '../stack/stack.ts';
import { until } from '../stack/until.ts';

test('Kafka frozen: STUCK, and not ready until it thaws, also when the rows have left memory', async () => {
  await using kafka = await startKafka();
  await using bed = await RelayBed.open({
    kafka,
    config: { kafka: { requestTimeoutMs: 3_000, connectTimeoutMs: 1_000 } },
  });
  const port = await freePort();
  const relay = new Relayed(port);
  const process = await bed.start({ http: { port }, relay: { laneStallMs: 4_000 } });
  const topic = bed.servers.topic('orders');
  await insertRows(bed.servers.pool, { topic, count: 20 });
  await bed.retired();
  await until(() => relay.isReady(), { withinMs: 20_000, what: 'a relay that is ready' });

  await kafka.nodes[0].freeze();
  const load = new Load(bed.servers.pool, { topic, writers: 1 });
  try {
    await until(async () => (await relay.ready())?.state === 'STUCK', { withinMs: 30_000, what: 'STUCK' });
    const { stuck, ready, lastError, rate } = await relay.status();
    expect(ready).toBe(false);
    expect(stuck.map(({ part }) => part)).toContainEqual(expect.stringMatching(/^(kafka|lane)$/));
    expect(lastError?.code).toMatch(/^KAFKA_(TIMEOUT|UNREACHABLE)$/);
    expect(rate.nowRowsPerSecond).toBe(0);
    await process.waitFor('scope-parked');
    // What is given up is not forgotten: through parking and tries in vain it says so all the time.
    const said = new Set<string>();
    const untilMs = performance.now() + 12_000;
    await until(
      async () => {
        said.add((await relay.ready())!.state);
        return performance.now() >= untilMs;
      },
      { withinMs: 20_000, what: 'a while', everyMs: 200 },
    );
    expect([...said]).toEqual(['STUCK']);
  } finally {
    await kafka.nodes[0].thaw();
    await load.stop();
  }
  await bed.retired('outbox', { withinMs: 60_000 });
  await until(() => relay.isReady(), { withinMs: 20_000, what: 'a relay that is ready again' });
  expect(process.lines().filter(({ event, to }) => event === 'relay-health' && to === 'STUCK').length).toBeGreaterThan(
    0,
  );
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ lost: 0, reordered: 0 });
});

/** COM_BINLOG_DUMP or COM_BINLOG_DUMP_GTID: the first packet of a command, behind its length and number. */
const isDump = (chunk: Buffer): boolean =>
  chunk.length > 4 && chunk[3] === 0 && (chunk[4] === 0x12 || chunk[4] === 0x1e);

test('L3 the stream frozen while rows are written: the lag grows, /readyz and /status say so; without MySQL UNKNOWN', async () => {
  const hasNoLag = async (): Promise<boolean> => ((await relay.status()).lagMs ?? Infinity) < 2_500;
  await using mysql = await startMysql();
  await using proxy = await Proxy.open(mysql);
  proxy.marks = isDump;
  await using bed = await RelayBed.open({ mysql });
  const port = await freePort();
  const relay = new Relayed(port);
  // So that nothing ends the stream for its silence meanwhile.
  const through = { port: proxy.port, heartbeatMs: 60_000, queryTimeoutMs: 2_000, connectTimeoutMs: 1_000 };
  await bed.start({ mysql: through, http: { port, readyLagMs: 4_000 } });
  const topic = bed.servers.topic('orders');
  await insertRows(bed.servers.pool, { topic, count: 20 });
  await bed.retired();
  await until(() => relay.isReady(), { withinMs: 20_000, what: 'a relay that is ready' });
  await until(hasNoLag, { withinMs: 20_000, what: 'no lag' });

  proxy.freezeSome();
  const load = new Load(bed.servers.pool, { topic, writers: 1 });
  const lags: number[] = [];
  const beganMs = performance.now();
  await until(
    async () => {
      lags.push((await relay.metric('cdc_relay_lag_seconds'))!);
      return (await relay.ready())?.state === 'STUCK';
    },
    { withinMs: 30_000, what: 'STUCK', everyMs: 500 },
  );
  await load.stop();
  const frozenS = (performance.now() - beganMs) / 1000;
  const { state, stuck, lagMs, notReady } = await relay.status();
  expect({ state, part: stuck[0].part }).toEqual({ state: 'STUCK', part: 'tail' });
  expect(notReady).toEqual(['STUCK: tail', 'LAG']);
  expect((await relay.ask('/readyz')).code).toBe(503);
  // Whoever asks from another machine sees it too, by the word of the database.
  await using alone = await startCli(['status', '--max-lag', '3s'], { config: bed.config({ http: { port: 0 } }) });
  expect((await alone.exited).code).toBe(1);
  expect(alone.stdout()).toMatch(/^passed {4}lag \d+ s, allowed 3\.0 s \(--max-lag\)$/m);
  // As long as it has been frozen, but for the time between two looks; and it only grew.
  expect(lagMs! / 1000).toBeGreaterThan(frozenS - 3);
  expect(lagMs! / 1000).toBeLessThan(frozenS + 10);
  expect(lags.some((lag) => lag > 3 && lag < 15)).toBe(true);
  expect(lags.slice(4)).toEqual(lags.slice(4).toSorted((a, b) => a - b));
  const metrics = await relay.metrics();
  expect(metrics.get('cdc_relay_stuck{part="tail"}')).toBe(1);
  // Nothing of it has been settled: the checkpoint stays, and the log goes on.
  expect(metrics.get('cdc_relay_checkpoint_age_seconds')).toBeGreaterThan(frozenS - 3);
  expect(metrics.get('cdc_relay_checkpoint_behind_bytes')).toBeGreaterThan(1_000);

  proxy.thaw();
  await bed.retired();
  await until(() => relay.isReady(), { withinMs: 20_000, what: 'a relay that is ready again' });
  await until(hasNoLag, { withinMs: 20_000, what: 'no lag' });
  expect(await bed.expectDelivered()).toMatchObject({ lost: 0, reordered: 0 });

  proxy.freeze();
  await until(async () => (await relay.ready())?.state === 'UNKNOWN', { withinMs: 40_000, what: 'UNKNOWN' });
  expect(await relay.ready()).toMatchObject({ ready: false, reasons: expect.arrayContaining(['UNKNOWN']) as string[] });
  expect(await relay.status()).toMatchObject({ outboxes: null, head: null });
  expect((await relay.ask('/livez')).code).toBe(200);
  proxy.thaw();
  await until(() => relay.isReady(), { withinMs: 40_000, what: 'a relay that is ready once more' });
});
