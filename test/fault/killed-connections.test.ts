import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Load } from '../stack/load.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { seededRandom } from '../stack/seeded-random.ts';
import { until } from '../stack/until.ts';

const KILLS = 60;

test('statements and connections of the relay are killed in MySQL, at random under load: it goes on', async () => {
  const seed = Number(process.env['CDC_RELAY_TEST_SEED'] ?? randomInt(2 ** 31));
  process.stderr.write(`killed connections: CDC_RELAY_TEST_SEED=${seed}\n`);
  const random = seededRandom(seed);
  await using bed = await RelayBed.open();
  const { database } = bed.servers;
  // Of its own, so that its connections are known, and with no more rights than the README asks for.
  const user = `r_${database.slice(2)}`;
  await bed.sql(`CREATE USER ${user} IDENTIFIED BY 'secret'`);
  await bed.sql(`GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO ${user}`);
  await bed.sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${database}.* TO ${user}`);
  try {
    const relay = await bed.start({ mysql: { user, password: 'secret' }, relay: { takeOverMs: 3_000, flushMs: 5 } });
    const load = new Load(bed.servers.pool, { topic: bed.topics[0], pauseMs: 5 });
    for (let kills = 0; kills < KILLS; kills++) {
      const connections = await bed.sql('SELECT id FROM performance_schema.processlist WHERE user = ?', [user]);
      if (connections.length > 0) {
        const victim = connections[Math.floor(random() * connections.length)];
        const what = random() < 0.6 ? 'QUERY' : 'CONNECTION';
        await bed.sql(`KILL ${what} ${String(victim['id'])}`).catch(() => undefined); // it has gone by itself
      }
      await sleep(random() * 100);
      expect(relay.alive(), relay.stderr().slice(-2_000)).toBe(true);
    }
    await load.stop();
    await bed.retired('outbox', { withinMs: 30_000 });
    await until(() => relay.alive(), { withinMs: 20_000, what: 'alive' });
    expect(await bed.expectDelivered({ faultInjected: true })).toMatchObject({ lost: 0, reordered: 0 });
  } finally {
    await bed.sql(`DROP USER ${user}`);
  }
});
