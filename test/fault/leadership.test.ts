import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { comparePositions } from '../../src/model/position.ts';
import { ProxiedServers } from '../stack/fault-stage.ts';
import { Load } from '../stack/load.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { type ReadRecord, readRecords } from '../stack/read-records.ts';
import { type Config, RelayBed } from '../stack/relay-bed.ts';
import type { CliProcess } from '../stack/relay-process.ts';
import { until } from '../stack/until.ts';

const TAKE_OVER_MS = 3_000;
/** To start a connection, read the position and begin, on a busy machine; without an end of its own it is for ever. */
const BEGIN_MS = 15_000;
/** Where nothing may be waited for by time: the time that would be waited for, and one far below it. */
const LONG_MS = 30_000;
const AT_ONCE_MS = 10_000;
const config = {
  mysql: { heartbeatMs: 1_000, connectTimeoutMs: 1_000, queryTimeoutMs: 2_000 },
  kafka: { connectTimeoutMs: 1_000, requestTimeoutMs: 3_000 },
  relay: { takeOverMs: TAKE_OVER_MS },
};

let servers: ProxiedServers;
beforeAll(async () => {
  servers = await ProxiedServers.start({}, {});
});
afterAll(() => servers[Symbol.asyncDispose]());

function openBed(): Promise<RelayBed> {
  return RelayBed.open({ mysql: servers.mysql, kafka: servers.kafka, config });
}

/** A relay that leads, and one that stands by. */
async function pair(bed: RelayBed, first: Config = {}): Promise<{ first: CliProcess; second: CliProcess }> {
  const leader = await bed.launch(first);
  await leader.waitFor('relay-state', { fields: { to: 'flowing' } });
  const second = await bed.launch(first.sweep === undefined ? {} : { sweep: first.sweep });
  await second.waitFor('relay-state', { fields: { to: 'standby' } });
  return { first: leader, second };
}

/** Milliseconds until the other leads and works. */
async function takenOver(relay: CliProcess, withinMs: number): Promise<number> {
  const beganMs = performance.now();
  await relay.waitFor('relay-state', { fields: { to: 'flowing' }, withinMs });
  return performance.now() - beganMs;
}

/** Who has sent what there is. */
async function producers(bed: RelayBed): Promise<Set<string>> {
  return new Set((await readRecords(bed.servers.kafka, bed.topics)).map(({ producerId }) => producerId));
}

describe('S22 taken over', () => {
  test('at once after a soft stop, and nothing is sent twice', async () => {
    await using bed = await openBed();
    const { first, second } = await pair(bed, { relay: { takeOverMs: LONG_MS } });
    const load = new Load(bed.servers.pool, { topic: bed.topics[0] });
    await until(async () => (await bed.records()) > 100, { withinMs: 20_000, what: 'records under load' });
    const stopped = first.kill('SIGTERM');
    const { code } = await stopped;
    expect(code).toBe(0);
    expect(await takenOver(second, 30_000)).toBeLessThan(AT_ONCE_MS);
    await load.stop();
    await bed.retired();
    expect(await bed.expectDelivered()).toMatchObject({ lost: 0, reordered: 0, duplicates: 0 });
  });

  test('within its time from one whose network to MySQL has vanished; that one, whose Kafka is well, sends nothing more', async () => {
    await using bed = await openBed();
    const { first, second } = await pair(bed, { mysql: { ...config.mysql, ...servers.config.mysql } });
    const load = new Load(bed.servers.pool, { topic: bed.topics[0] });
    await until(async () => (await bed.records()) > 100, { withinMs: 20_000, what: 'records under load' });
    const own = await producers(bed);
    servers.mysqlProxy.freeze();
    try {
      expect(await takenOver(second, 30_000)).toBeLessThan(TAKE_OVER_MS + BEGIN_MS);
      const before = await readRecords(bed.servers.kafka, bed.topics);
      await first.waitFor('leader-lock-lost');
      await until(async () => (await bed.records()) > before.length + 200, { withinMs: 20_000, what: 'more records' });
      const since = (await readRecords(bed.servers.kafka, bed.topics)).filter(isBehind(before));
      expect(since.filter(({ producerId }) => own.has(producerId))).toEqual([]);
    } finally {
      servers.mysqlProxy.thaw();
    }
    await first.waitFor('relay-state', { fields: { to: 'standby' } });
    await load.stop();
    await bed.retired();
    expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ lost: 0, reordered: 0 });
  });
});

describe('S15 I4 a leader that wakes when another leads', () => {
  test('starts no send, writes nothing, and stands by', async () => {
    await using bed = await openBed();
    const { first, second } = await pair(bed);
    const load = new Load(bed.servers.pool, { topic: bed.topics[0] });
    await until(async () => (await bed.records()) > 100, { withinMs: 20_000, what: 'records under load' });
    const own = await producers(bed);
    first.signal('SIGSTOP');
    expect(await takenOver(second, 30_000)).toBeLessThan(TAKE_OVER_MS + BEGIN_MS);
    await load.stop();
    await bed.retired();
    const before = await readRecords(bed.servers.kafka, bed.topics);
    const saved = (await bed.saved())!;
    // Work for whoever would do it: rows in the log, behind what the first one has read.
    await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 200, perTransaction: 2 });
    first.signal('SIGCONT');
    await first.waitFor('relay-state', { fields: { to: 'standby' } });
    await bed.retired();
    const since = (await readRecords(bed.servers.kafka, bed.topics)).filter(isBehind(before));
    expect(since).toHaveLength(200);
    expect(since.filter(({ producerId }) => own.has(producerId))).toEqual([]);
    const after = (await bed.saved())!;
    expect({ ...after, owner: after.owner.split(':')[1] }).toMatchObject({
      epoch: saved.epoch,
      owner: `${second.pid}`,
    });
    expect(comparePositions(after, saved)).toBeGreaterThan(0);
    expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ lost: 0, reordered: 0 });
  });

  test('in the midst of a sweep: what it had claimed is another’s, and it writes nothing back', async () => {
    await using bed = await openBed();
    const sweep = { mode: 'sweep', intervalMs: 300 };
    const through = { ...config.kafka, ...servers.config.kafka, requestTimeoutMs: 30_000 };
    const { first, second } = await pair(bed, { sweep, kafka: through });
    await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 20 });
    await bed.retired();
    // What it sends now is on its way and stays there: the rows are claimed.
    for (const proxy of servers.kafkaProxies) proxy.freeze('down');
    await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 100 });
    const claimed = async (): Promise<boolean> => (await bed.count('outbox', "status = 'processing'")) === 100;
    await until(claimed, { withinMs: 20_000, what: 'claimed rows' });
    first.signal('SIGSTOP');
    try {
      expect(await takenOver(second, 30_000)).toBeLessThan(TAKE_OVER_MS + BEGIN_MS);
      await bed.retired();
      const rows =
        'SELECT id, status, HEX(claimed_by), claimed_at, published_at, attempts, last_error FROM outbox ORDER BY id';
      const before = await bed.sql(rows);
      const saved = await bed.saved();
      first.signal('SIGCONT');
      // Now it hears of what it had sent.
      for (const proxy of servers.kafkaProxies) proxy.thaw();
      await first.waitFor('relay-state', { fields: { to: 'standby' } });
      expect(await bed.sql(rows)).toEqual(before);
      expect((await bed.saved())?.epoch).toBe(saved?.epoch);
    } finally {
      for (const proxy of servers.kafkaProxies) proxy.thaw();
      first.signal('SIGCONT');
    }
    await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 50 });
    await bed.retired();
    const figures = await bed.expectDelivered({ faultInjected: true });
    expect(figures).toMatchObject({ committed: 170, lost: 0, reordered: 0, altered: 0 });
    expect(figures.duplicates).toBeLessThanOrEqual(100);
  });
});

test('I3 relays of different names that were not told a server id have different ones: both read at the same time', async () => {
  await using bed = await openBed();
  const own = { mysql: { ...config.mysql, serverId: undefined } };
  const first = await bed.start(own);
  const second = await bed.start({ ...own, name: `${bed.servers.database}-other` });
  await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 20 });
  await bed.retired();
  for (const relay of [first, second]) {
    expect(relay.alive()).toBe(true);
    expect(relay.lines().filter(({ event }) => event === 'binlog-streaming')).toHaveLength(1);
  }
});

function isBehind(known: readonly ReadRecord[]): (record: ReadRecord) => boolean {
  const ends = new Map<string, bigint>();
  for (const { topic, partition, offset } of known) ends.set(`${topic}/${partition}`, offset);
  return ({ topic, partition, offset }) => offset > (ends.get(`${topic}/${partition}`) ?? -1n);
}
