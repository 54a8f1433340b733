import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { isTenth } from '../stack/full.ts';
import { CheckpointWatch } from '../stack/checkpoint-watch.ts';
import { Load } from '../stack/load.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { seededRandom } from '../stack/seeded-random.ts';

const KILLS = 20;
/** A relay lives no longer than this after it has begun to read. */
const MOMENT_MS = 1_200;

test.skipIf(isTenth)('20 SIGKILLs at random moments under load: nothing lost, first deliveries in order', async () => {
  const seed = Number(process.env['CDC_RELAY_TEST_SEED'] ?? randomInt(2 ** 31));
  process.stderr.write(`random kills: CDC_RELAY_TEST_SEED=${seed}\n`);
  const random = seededRandom(seed);
  await using bed = await RelayBed.open({
    outboxes: [
      { table: 'marked', retire: 'mark' },
      { table: 'kept', retire: 'keep', topic: (fullName) => ({ fixed: fullName('kept') }) },
    ],
    topics: { orders: 4, kept: 2 },
  });
  // From the first position on every row counts.
  await (await bed.start()).kill();
  await using watch = new CheckpointWatch(bed.servers);
  const load = new Load(bed.servers.pool, {
    topic: bed.servers.topic('orders'),
    tables: ['marked', 'kept'],
    pauseMs: 10,
  });
  for (let kills = 0; kills < KILLS; kills++) {
    // Some are met while they start, most while they work.
    const relay = random() < 0.2 ? await bed.launch() : await bed.start();
    await sleep(random() * MOMENT_MS);
    await relay.kill();
  }
  const relay = await bed.start();
  await load.stop();
  await bed.retired('marked');
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  await watch.expectSound();
  // It was no standstill: positions were saved between the kills.
  expect(watch.seen.length).toBeGreaterThan(KILLS / 2);
  expect(load.failed).toBe(0);
  const marked = await bed.expectDelivered({ table: 'marked', topics: [bed.topics[0]], faultInjected: true });
  expect(marked.committed).toBeGreaterThan(500);
  await bed.expectDelivered({ table: 'kept', topic: bed.topics[1], topics: [bed.topics[1]], faultInjected: true });
});
