import { createPool, type RowDataPacket } from 'mysql2/promise';
import { expect, test } from 'vitest';
import { Relayed } from '../integration/http/http-client.ts';
import { expectedRows } from '../stack/expected-rows.ts';
import { audit } from '../stack/invariants.ts';
import { Load } from '../stack/load.ts';
import { logHead } from '../stack/log-head.ts';
import { MovingAddress } from '../stack/moving-address.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { freePort } from '../stack/ports.ts';
import { readRecords } from '../stack/read-records.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import type { CliProcess } from '../stack/relay-process.ts';
import { caughtUp, demote, fallBehind, promote } from '../stack/replica.ts';
import { until } from '../stack/until.ts';

const WAYS = ['gtid', 'file'] as const;
const config = {
  mysql: { heartbeatMs: 1_000, connectTimeoutMs: 2_000, queryTimeoutMs: 3_000 },
  relay: { takeOverMs: 3_000 },
};
/** Acknowledged and not flushed, or claimed and not written back: some hundred under this load. */
const MOST_DUPLICATES = 1_000;

test.each(WAYS)('B8 S1 failover under load, replica by %s: the relay finds the new primary by itself', async (by) => {
  await using address = await MovingAddress.start({ by });
  await using bed = await RelayBed.open({ mysql: address.server, config });
  const relay = await bed.start();
  await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 20 });
  await bed.retired();
  const load = new Load(bed.servers.pool, { topic: bed.topics[0], pauseMs: 5 });
  await until(async () => (await bed.records()) > 500, { withinMs: 30_000, what: 'records under load' });
  const before = (await bed.saved())!;

  await demote(address.primary);
  await caughtUp(address.replica, address.primary);
  await promote(address.replica);
  address.move();
  address.proxy.cut();
  const { committed } = load;
  await expectNewBeginning(relay);
  await until(() => load.committed > committed + 300, { withinMs: 30_000, what: 'rows on the new primary' });
  await load.stop();
  await bed.retired('outbox', { withinMs: 60_000 });

  const after = (await bed.saved())!;
  expect(after.file).toBe(before.file); // of two logs
  expect(after.epoch).toBeGreaterThan(before.epoch);
  await relay.waitFor('sent-rows-compared', { fields: { missing: 0 } });
  const figures = await bed.expectDelivered({ faultInjected: true });
  expect(figures).toMatchObject({ lost: 0, reordered: 0, altered: 0 });
  expect(figures.duplicates).toBeLessThan(MOST_DUPLICATES);
  process.stderr.write(`failover by ${by}: ${JSON.stringify(figures)}\n`);
});

test('B8 failover while the relay is down: its next start begins anew on the new primary', async () => {
  await using address = await MovingAddress.start();
  await using bed = await RelayBed.open({ mysql: address.server, config });
  const rows = { topic: bed.topics[0], count: 300, perTransaction: 3 };
  const first = await bed.start();
  await insertRows(bed.servers.pool, rows);
  await until(async () => (await bed.records()) > 50, { withinMs: 30_000, what: 'records' });
  await first.kill();
  await insertRows(bed.servers.pool, rows);

  await demote(address.primary);
  await caughtUp(address.replica, address.primary);
  await promote(address.replica);
  await address.primary.kill();
  address.move();
  await insertRows(bed.servers.pool, rows).catch(() => insertRows(bed.servers.pool, rows)); // the first connection is dead
  const second = await bed.launch();
  await expectNewBeginning(second);
  await bed.retired('outbox', { withinMs: 60_000 });
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ lost: 0, reordered: 0, altered: 0 });
});

test('S1 the old primary only reads and lives on, and no connection ends: the idle relay leaves it', async () => {
  await using address = await MovingAddress.start();
  await using bed = await RelayBed.open({ mysql: address.server, config });
  const port = await freePort();
  const relay = await bed.start({ http: { port } });
  const rows = { topic: bed.topics[0], count: 200, perTransaction: 2 };
  await insertRows(bed.servers.pool, rows);
  await bed.retired();

  await caughtUp(address.replica, address.primary);
  await demote(address.primary);
  await promote(address.replica);
  address.move();
  const { host, user, password } = address.replica;
  const pool = createPool({ host, port: address.replica.port, user, password, database: bed.servers.database });
  try {
    await insertRows(pool, rows);
    await expectNewBeginning(relay);
    const there = async (): Promise<boolean> => (await bed.records()) >= 400;
    await until(there, { withinMs: 30_000, what: 'the rows of the new primary' });
    expect(await bed.count('outbox')).toBe(200); // this pool still looks at the old one
    // What the relay says of itself is about the new one, too.
    const isThere = async (): Promise<boolean> => {
      const end = await logHead(async (text) => (await pool.query<RowDataPacket[]>(text))[0]);
      const { head } = await new Relayed(port).status();
      return head?.file === end.file && head.offset === end.offset;
    };
    await until(isThere, { withinMs: 15_000, what: 'the head of the new primary in the status' });
  } finally {
    await pool.end();
  }
  address.proxy.cut();
  await until(() => bed.count('outbox').catch(() => 0), { withinMs: 20_000, what: 'the new primary' });
  await bed.retired();
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ committed: 400, lost: 0, reordered: 0 });
});

test.each(WAYS)(
  'S1 a replica by %s, promoted while it was behind: its rows go out, what it lacks is told',
  async (by) => {
    await using address = await MovingAddress.start({ by });
    const outboxes = [
      { table: 'outbox', retire: 'mark' },
      { table: 'deleted', retire: 'delete' },
    ] as const;
    await using bed = await RelayBed.open({ mysql: address.server, config, outboxes });
    const { pool, database } = bed.servers;
    const relay = await bed.start();
    const insert = async (count: number, prefix: string): Promise<void> => {
      for (const { table } of outboxes)
        await insertRows(pool, { topic: bed.topics[0], table, count, prefix, perTransaction: 7 });
    };
    const settled = async (): Promise<void> => {
      await bed.retired('outbox');
      await until(async () => (await bed.count('deleted')) === 0, { withinMs: 20_000, what: 'deleted rows' });
    };
    await insert(100, 'both');
    await settled();
    await caughtUp(address.replica, address.primary);
    await fallBehind(address.replica);
    await insert(60, 'one');
    await settled();
    const onOld = await expectedRows(pool, { table: 'outbox' });

    await address.primary.kill();
    await promote(address.replica);
    address.move();
    await expectNewBeginning(relay);
    for (const { table } of outboxes) {
      const line = await relay.waitFor('sent-rows-missing', { fields: { table: `${database}.${table}` } });
      expect(line).toMatchObject({ level: 'error', rows: 60, ids: '101..160' });
    }
    // They get the ids of rows that the old primary had, and that were published there.
    await insertRetrying(() => insert(40, 'new'));
    await settled();
    const onNew = await expectedRows(pool, { table: 'outbox' });
    expect(onNew.at(-1)!.id).toBe('140');
    const known = new Set(onNew.map(({ eventId }) => eventId));
    const rows = [...onOld.filter(({ eventId }) => !known.has(eventId)), ...onNew];
    const records = await readRecords(bed.servers.kafka, bed.topics);
    const ofOutbox = new Set(rows.map(({ eventId }) => eventId));
    const mine = records.filter(({ headers }) => ofOutbox.has(String(headers['id'])));
    const { figures, offences } = audit(rows, mine, { faultInjected: true });
    expect(offences).toEqual([]);
    expect(figures).toMatchObject({ committed: 200, delivered: 200, lost: 0, reordered: 0, altered: 0 });
  },
);

async function expectNewBeginning(relay: CliProcess, withinMs = 60_000): Promise<void> {
  await relay.waitFor('position-unusable', { fields: { code: 'MYSQL_FOREIGN_SERVER' }, withinMs });
  await relay.waitFor('relay-state', { fields: { from: 'leading', to: 'flowing' }, withinMs });
}

async function insertRetrying(insert: () => Promise<void>): Promise<void> {
  await insert().catch(() => insert());
}
