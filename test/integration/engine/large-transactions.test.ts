import { expect, test } from 'vitest';
import { CheckpointWatch } from '../../stack/checkpoint-watch.ts';
import { isMariadb, startDatabase } from '../../stack/flavour.ts';
import { full } from '../../stack/full.ts';
import { insertInto, insertRows } from '../../stack/outbox-rows.ts';
import { PlainConsumer } from '../../stack/plain-consumer.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { type CliProcess, startCli } from '../../stack/relay-process.ts';
import { until } from '../../stack/until.ts';

const MIB = 1_048_576;
const HEAP_MIB = 256;
/** The heap, the lanes' buffers and the runtime itself; a transaction of 600 MB is far beyond. */
const RSS_MIB = 420;
const ROWS = full(50_000, 500_000);
const ROW_BYTES = 1_200;
const AGGREGATES = 10;
const WITHIN_MS = full(60_000, 400_000);

/** A tenth of the rows still has to be more than is kept. */
const BOUND = { maxTransactionBytes: full(16, 64) * MIB };

/** The relay with little memory; leading and reading when this returns. */
async function startSmall(bed: RelayBed): Promise<CliProcess> {
  const process = await startCli(['run'], {
    config: bed.config({ relay: BOUND }),
    nodeFlags: [`--max-old-space-size=${HEAP_MIB}`],
  });
  bed.relays.push(process);
  await process.waitFor('binlog-streaming');
  return process;
}

const COMPRESSION = ['binlog_transaction_compression = OFF', 'binlog_transaction_compression = ON'];

/** Counts rows of `insertRows`: of each aggregate, all and in order, or it is told which is not. */
function counter(): { rows: number; offence: string | null; take: (key: string, value: string) => void } {
  const next = new Map<string, number>();
  const state = {
    rows: 0,
    offence: null as string | null,
    take(key: string, value: string) {
      const n = Number(/"n": (\d+)/.exec(value)?.[1]);
      const expected = next.get(key) ?? Number(key.split('-')[1]);
      if (n !== expected) state.offence ??= `${key}: row ${n} where row ${expected} was to come`;
      next.set(key, n + AGGREGATES);
      state.rows += 1;
    },
  };
  return state;
}

test(
  `A10 a transaction of ${ROWS} rows of 1.2 kB within a heap of ${HEAP_MIB} MiB: all, once, in order`,
  { timeout: 3 * WITHIN_MS + 60_000 },
  async () => {
    await using bed = await RelayBed.open();
    const topic = bed.servers.topic('orders');
    const relay = await startSmall(bed);
    await using watch = new CheckpointWatch(bed.servers);
    const counted = counter();
    const consumer = new PlainConsumer(bed.servers.kafka, [topic], ({ key, value }) => {
      counted.take(String(key), String(value));
    });
    await consumer.start();
    await insertRows(bed.servers.pool, { topic, count: ROWS, payloadBytes: ROW_BYTES, aggregates: AGGREGATES });
    await until(() => counted.rows >= ROWS || counted.offence !== null, { withinMs: WITHIN_MS, what: `${ROWS} rows` });
    await bed.retired('outbox', { withinMs: WITHIN_MS });
    await consumer.stop();
    expect(counted.offence).toBeNull();
    expect(await bed.records()).toBe(ROWS);
    expect((await relay.kill('SIGTERM')).code).toBe(0);
    await watch.expectSound();
    expect(relay.lines().map(({ event }) => event)).toContain('binlog-second-read');
    expect(relay.peakRssBytes() / MIB).toBeLessThan(RSS_MIB);
  },
);

test(
  `A10 ${ROWS} rows of another table and one outbox row, and the same compressed`,
  { timeout: 3 * WITHIN_MS + 60_000 },
  async () => {
    await using bed = await RelayBed.open();
    const topic = bed.servers.topic('orders');
    const relay = await startSmall(bed);
    await bed.sql('CREATE TABLE other LIKE outbox');
    const connection = await bed.servers.pool.getConnection();
    // MariaDB compresses events, not transactions.
    const settings = isMariadb() ? ['binlog_row_image = FULL'] : COMPRESSION;
    try {
      for (const setting of settings) {
        await connection.query(`SET SESSION ${setting}`);
        await connection.beginTransaction();
        await insertInto(connection, { topic, table: 'other', count: ROWS, payloadBytes: ROW_BYTES });
        await insertInto(connection, { topic, count: 1 });
        await connection.commit();
      }
    } finally {
      connection.destroy();
    }
    await bed.retired('outbox', { withinMs: WITHIN_MS });
    expect(await bed.expectDelivered()).toMatchObject({ committed: settings.length, duplicates: 0 });
    expect(relay.peakRssBytes() / MIB).toBeLessThan(RSS_MIB);
  },
);

/** Little goes out at once, so that a transaction of 6 MB takes its time. */
const SLOW = {
  kafka: { batchBytes: 16_384 },
  relay: { maxInFlightBytes: 65_536, maxTransactionBytes: MIB },
};
const COUNT = 4_000;

test('SIGTERM in the midst of a transaction that comes in pieces: it is routed to its end, nothing is sent twice', async () => {
  await using bed = await RelayBed.open({ topics: { orders: 1 }, config: SLOW });
  const topic = bed.servers.topic('orders');
  const relay = await bed.start();
  await insertRows(bed.servers.pool, { topic, count: COUNT, payloadBytes: 1_500 });
  await until(async () => (await bed.records()) > 0, { withinMs: 20_000, what: 'the first records', everyMs: 2 });
  expect(await relay.kill('SIGTERM')).toMatchObject({ code: 0, signal: null });
  await bed.start();
  await insertRows(bed.servers.pool, { topic, count: 1 });
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ committed: COUNT + 1, duplicates: 0 });
});

test('A9 SIGKILL in the midst of it: all rows arrive, the checkpoint is never inside', async () => {
  await using bed = await RelayBed.open({ topics: { orders: 2 }, config: SLOW });
  const topic = bed.servers.topic('orders');
  const relay = await bed.start();
  await using watch = new CheckpointWatch(bed.servers);
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await insertRows(bed.servers.pool, { topic, count: COUNT, payloadBytes: 3_000 });
  await until(async () => (await bed.records()) > COUNT / 4, { withinMs: 20_000, what: 'a part of it', everyMs: 2 });
  await relay.kill();
  expect(await bed.records()).toBeLessThan(COUNT);
  await bed.start();
  await bed.retired();
  await watch.expectSound();
  const figures = await bed.expectDelivered({ faultInjected: true });
  expect(figures).toMatchObject({ committed: COUNT + 10, delivered: COUNT + 10 });
  expect(figures.duplicates).toBeGreaterThan(0);
});

test('the dump is killed in the midst of it: a new term begins before it, and the checkpoint gets behind it', async () => {
  await using mysql = await startDatabase();
  await using bed = await RelayBed.open({ mysql, topics: { orders: 1 }, config: SLOW });
  const topic = bed.servers.topic('orders');
  const relay = await bed.start();
  await using watch = new CheckpointWatch(bed.servers);
  // The socket's buffers hold some megabytes beyond what is read.
  const count = 4 * COUNT;
  await insertRows(bed.servers.pool, { topic, count, payloadBytes: 3_000 });
  await until(async () => (await bed.records()) > 0, { withinMs: 20_000, what: 'the first records', everyMs: 2 });
  const [dump] = await bed.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'");
  await bed.sql(`KILL ${String(dump['ID'])}`);
  await relay.waitFor('term-ended');
  await insertRows(bed.servers.pool, { topic, count: 10 });
  await bed.retired('outbox', { withinMs: 60_000 });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  await watch.expectSound();
  expect((await bed.saved())?.offset).toBeGreaterThan(count * 3_000);
  expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ committed: count + 10, lost: 0 });
});
