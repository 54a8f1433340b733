import { expect, test } from 'vitest';
import { full } from '../stack/full.ts';
import { Proxy } from '../stack/proxy.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { startKafka } from '../stack/stack.ts';
import { TopicEnds } from '../stack/topic-ends.ts';
import { until } from '../stack/until.ts';

const MIB = 1_048_576;
const ROWS = full(20_000, 200_000);
const PAYLOAD_BYTES = 4_000;
/** Slower than MySQL and the relay can be, so that everything on the way fills up. */
const BYTES_PER_SECOND = full(10, 20) * MIB;

test(`a slow broker: ${ROWS} rows of 4 kB with 16 MiB in flight stay under 250 MB`, { timeout: 600_000 }, async () => {
  await using proxy = await Proxy.open({ host: '127.0.0.1', port: 9 });
  await using kafka = await startKafka({ listeners: { slow: { through: [`127.0.0.1:${proxy.port}`] } } });
  const [host, port] = kafka.listener('slow')[0].split(':');
  proxy.target = { host, port: Number(port) };
  await using bed = await RelayBed.open({
    kafka,
    topics: { orders: 6 },
    config: {
      kafka: { brokers: [`127.0.0.1:${proxy.port}`] },
      relay: { maxInFlightBytes: 16 * MIB },
    },
  });
  // Else the relay's own marks come by with both images of each row, and are garbage by the gigabyte.
  await bed.sql(`GRANT SESSION_VARIABLES_ADMIN ON *.* TO ${bed.user.user}`);
  const relay = await bed.start();
  proxy.bytesPerSecond = BYTES_PER_SECOND;
  const inserting = insertLarge(bed);
  await using ends = new TopicEnds(bed.servers, bed.topics);
  await until(async () => (await ends.records()) > ROWS / 20, { withinMs: 60_000, what: 'the first records' });
  // It is the broker that is waited for, not MySQL.
  await inserting;
  expect(await ends.records()).toBeLessThan(ROWS);
  await until(async () => (await ends.records()) >= ROWS, { withinMs: 500_000, what: `${ROWS} records`, everyMs: 200 });
  await bed.retired();
  const peakRssBytes = relay.peakRssBytes();
  process.stderr.write(`slow broker: ${ROWS} rows, peak RSS ${Math.round(peakRssBytes / 1e6)} MB\n`);
  expect(peakRssBytes).toBeLessThan(250e6);
  proxy.bytesPerSecond = Infinity;
  expect(relay.lines().some(({ event }) => event === 'lane-held')).toBe(false);
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  expect(await bed.expectDelivered()).toMatchObject({ committed: ROWS, delivered: ROWS, duplicates: 0 });
});

/** By the server itself: 200 rows to a transaction. */
async function insertLarge(bed: RelayBed): Promise<void> {
  for (let rows = 0; rows < ROWS; rows += 200) {
    await bed.sql(
      `INSERT INTO outbox (topic, aggregate_id, event_type, payload)
       WITH RECURSIVE n (n) AS (SELECT ? UNION ALL SELECT n + 1 FROM n WHERE n < ?)
       SELECT ?, CONCAT('order-', n % 500), 'placed', JSON_OBJECT('n', n, 'filler', REPEAT('x', ?)) FROM n`,
      [rows + 1, rows + 200, bed.topics[0], PAYLOAD_BYTES],
    );
  }
}
