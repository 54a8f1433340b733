import { cp, rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isTenth } from '../stack/full.ts';
import { formatPosition } from '../../src/model/position.ts';
import type { DatabaseServer } from '../stack/handles.ts';
import { expectedRows } from '../stack/expected-rows.ts';
import { logHead, resetLogs } from '../stack/log-head.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { Proxy } from '../stack/proxy.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import type { CliProcess } from '../stack/relay-process.ts';
import { startMysql } from '../stack/stack.ts';
import { until } from '../stack/until.ts';

/** Of its own: its log is purged, reset and cut. */
let mysql: DatabaseServer;
beforeAll(async () => (mysql = await startMysql()));
afterAll(() => mysql.dispose());

const SWEPT_OFTEN = { sweep: { intervalMs: 100 }, failures: { backOffMs: 50, backOffCapMs: 200 } };

function openBed(): Promise<RelayBed> {
  return RelayBed.open({ mysql, topics: { orders: 2 }, config: SWEPT_OFTEN });
}

function insert(bed: RelayBed, count: number): Promise<void> {
  return insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count, aggregates: 3, perTransaction: 1 });
}

/** Rows delivered, everything saved, and the relay stopped. */
async function ranBefore(bed: RelayBed): Promise<void> {
  const relay = await bed.start();
  await insert(bed, 10);
  await bed.retired();
  expect((await relay.kill('SIGTERM')).code).toBe(0);
}

function linesOf(relay: CliProcess, event: string): readonly Record<string, unknown>[] {
  return relay.lines().filter((line) => line.event === event);
}

/** Said once, everything delivered from the table, no loop; and the position from then on is a good one. */
async function expectRecovered(bed: RelayBed, relay: CliProcess, detail: RegExp, committed: number): Promise<void> {
  const saved = await relay.waitFor('position-unusable');
  expect(saved).toMatchObject({ level: 'error', code: 'BINLOG_POSITION_UNUSABLE' });
  expect(saved['detail']).toMatch(detail);
  await insert(bed, 5);
  await bed.retired();
  await relay.waitFor('scope-released', { fields: { scope: 'everything' } });
  expect(linesOf(relay, 'position-unusable')).toHaveLength(1);
  expect(linesOf(relay, 'term-ended').length).toBeLessThanOrEqual(1);
  expect(linesOf(relay, 'tail-lost')).toEqual([]);
  await insert(bed, 5);
  await bed.retired();
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  const next = await bed.start();
  await insert(bed, 5);
  await bed.retired();
  expect(linesOf(next, 'position-unusable')).toEqual([]);
  expect(await bed.expectDelivered()).toMatchObject({
    committed: committed + 15,
    lost: 0,
    reordered: 0,
    duplicates: 0,
  });
}

test.for([
  { what: 'B5 beyond the end of its file', set: 'position = position + 10000000', detail: /ends at \d+.*reset.*crash/ },
  { what: 'B6 no end of an event', set: 'position = position + 1', detail: /no event ends there/ },
  {
    what: 'B6 no end of an event, and no transaction is known by which to tell',
    set: 'position = position + 1, last_begin_us = NULL',
    detail: /probably not an event boundary.*max_allowed_packet/,
  },
  { what: 'B7 past 4 GiB of a file', set: 'position = 4294967301', detail: /first 4 GiB/ },
  { what: 'in a file that is not there yet', set: "file = 'binlog.999999'", detail: /newest binlog.*reset/ },
  {
    what: 'S2 behind transactions that the server does not know',
    set: "gtid_set = CONCAT(gtid_set, ',11111111-2222-3333-4444-555555555555:1-7')",
    detail: /does not know transactions.*11111111-2222-3333-4444-555555555555:1-7/,
  },
])('a saved position $what: said once, all from the table, then on from the head', async ({ set, detail }) => {
  await using bed = await openBed();
  await ranBefore(bed);
  await insert(bed, 10);
  const before = (await bed.saved())!;
  await bed.sql(`UPDATE cdc_relay_offsets SET ${set}`);
  const saved = (await bed.saved())!;
  const relay = await bed.start();
  const told = await relay.waitFor('position-unusable');
  expect(told['saved']).toBe(formatPosition(saved));
  expect(told['now']).not.toBe(formatPosition(before));
  await expectRecovered(bed, relay, detail, 20);
});

describe('a log that was purged', () => {
  test('B4 while the relay was down: one message, the rows of the purged log from the table', async () => {
    await using bed = await openBed();
    await ranBefore(bed);
    const { file } = (await bed.saved())!;
    await insert(bed, 3);
    await bed.sql('FLUSH BINARY LOGS');
    const [oldest] = (await bed.sql('SHOW BINARY LOGS')).slice(-1);
    await bed.sql(`PURGE BINARY LOGS TO '${String(oldest['Log_name'])}'`);
    await insert(bed, 2);
    const relay = await bed.start();
    await expectRecovered(bed, relay, new RegExp(`${file}:.*purged.*oldest.*${String(oldest['Log_name'])}`), 15);
  });

  test.for(['SIGTERM', 'cut'] as const)(
    'B3 with an idle outbox on a busy server: the checkpoint has followed the log (%s)',
    async (end) => {
      await using proxy = await Proxy.open(mysql);
      await using bed = await RelayBed.open({
        mysql,
        config: { ...SWEPT_OFTEN, mysql: { host: '127.0.0.1', port: proxy.port } },
      });
      let relay = await bed.start();
      await insert(bed, 5);
      await bed.retired();
      await bed.sql('CREATE TABLE busy (id INT PRIMARY KEY AUTO_INCREMENT)');
      for (let n = 0; n < 5; n++) {
        await bed.sql('INSERT INTO busy VALUES (); FLUSH BINARY LOGS; INSERT INTO busy VALUES ()');
      }
      // Nothing in the newest file but its head: the last transaction lies in a file that goes.
      await bed.sql('FLUSH BINARY LOGS');
      const newest = String((await bed.sql('SHOW BINARY LOGS')).at(-1)!['Log_name']);
      await until(async () => (await bed.saved())?.file === newest, {
        withinMs: 20_000,
        what: `a checkpoint in ${newest}`,
      });
      await bed.sql(`PURGE BINARY LOGS TO '${newest}'`);
      if (end === 'cut') {
        const lines = relay.lines().length;
        proxy.cut();
        await relay.waitFor('binlog-streaming', { after: lines });
      } else {
        expect((await relay.kill(end)).code).toBe(0);
        relay = await bed.start();
        await relay.waitFor('start-at-checkpoint');
      }
      await insert(bed, 5);
      await bed.retired();
      expect(linesOf(relay, 'position-unusable')).toEqual([]);
      expect(await bed.expectDelivered()).toMatchObject({ committed: 10, lost: 0, duplicates: 0 });
    },
  );
});

test('a stream that is cut again and again goes on behind the last transaction, whatever that was: nothing twice', async () => {
  await using proxy = await Proxy.open(mysql);
  await using bed = await RelayBed.open({
    mysql,
    // The lock's connection is cut too: what is on its way when a ping finds that out may come twice, another matter.
    config: {
      ...SWEPT_OFTEN,
      mysql: { host: '127.0.0.1', port: proxy.port },
      relay: { takeOverMs: 120_000 },
    },
  });
  const relay = await bed.start();
  await bed.sql('CREATE TABLE other (id INT PRIMARY KEY)');
  const last = [
    () => insert(bed, 1),
    () => bed.sql('INSERT INTO other VALUES (1)'),
    () => bed.sql('ALTER TABLE other ADD COLUMN c INT'),
    () => bed.sql("XA START 'a'; INSERT INTO other VALUES (2, 2); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a'"),
    () => bed.sql('FLUSH BINARY LOGS'),
  ];
  for (const write of last) {
    await insert(bed, 5);
    await write();
    await bed.retired();
    const lines = relay.lines().length;
    proxy.cut();
    await relay.waitFor('binlog-streaming', { after: lines });
  }
  await insert(bed, 5);
  await bed.retired();
  expect(linesOf(relay, 'position-unusable')).toEqual([]);
  expect(await bed.expectDelivered()).toMatchObject({ committed: 31, lost: 0, reordered: 0, duplicates: 0 });
});

describe('another log under the same names', () => {
  test('S2 reset, and grown past the checkpoint with a GTID set that contains the saved one', async () => {
    await using bed = await openBed();
    await resetLogs((text) => bed.sql(text));
    await ranBefore(bed);
    const saved = (await bed.saved())!;
    await resetLogs((text) => bed.sql(text));
    const isPast = async (): Promise<boolean> => {
      await insert(bed, 10);
      return (await logHead((text) => bed.sql(text))).offset > 2 * saved.offset;
    };
    await until(isPast, { withinMs: 20_000, what: 'a log that is longer than it was' });
    const [{ inside }] = await bed.sql(
      'SELECT GTID_SUBSET(gtid_set, @@GLOBAL.gtid_executed) AS inside FROM cdc_relay_offsets',
    );
    expect(Number(inside)).toBe(1);
    const committed = await bed.count('outbox');
    const relay = await bed.start();
    await expectRecovered(bed, relay, /./, committed);
  });

  test.skipIf(isTenth)(
    'S2 a backup of the whole server is put back under a running relay: its position goes back with it',
    async () => {
      await using bed = await openBed();
      const [{ directory }] = await bed.sql('SELECT @@datadir AS directory');
      const data = String(directory).replace(/\/$/, '');
      const relay = await bed.start();
      await insert(bed, 10);
      await bed.retired();
      await mysql.stop();
      await cp(data, `${data}.backup`, { recursive: true });
      await mysql.start();
      await insert(bed, 10);
      await bed.retired();
      const { pool } = bed.servers;
      const before = await expectedRows(pool, { table: 'outbox' });
      await mysql.stop();
      await rm(data, { recursive: true });
      await cp(`${data}.backup`, data, { recursive: true });
      await mysql.start();
      // Their ids come again: rows of another history.
      await insert(bed, 15);
      await bed.retired();
      const after = await expectedRows(pool, { table: 'outbox' });
      const there = new Set(before.map(({ eventId }) => eventId));
      const rows = [...before, ...after.filter(({ eventId }) => !there.has(eventId))];
      expect(rows).toHaveLength(35);
      expect(relay.alive()).toBe(true);
      expect(await bed.expectDelivered({ rows, faultInjected: true })).toMatchObject({
        lost: 0,
        altered: 0,
        reordered: 0,
      });
    },
  );
});
