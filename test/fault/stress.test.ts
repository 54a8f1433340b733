import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { expect, test } from 'vitest';
import { expectedRows } from '../stack/expected-rows.ts';
import { expectSettled, KeptRelay, ProxiedServers } from '../stack/fault-stage.ts';
import { causeFaults, RELAY_AND_BROKER } from '../stack/faults.ts';
import { full } from '../stack/full.ts';
import { Ledger } from '../stack/ledger.ts';
import { expectLedger } from '../stack/ledger-audit.ts';
import { MixedWriters } from '../stack/mixed-writers.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { RowHolder } from '../stack/row-holder.ts';
import { seededRandom } from '../stack/seeded-random.ts';
import { eventually } from '../stack/until.ts';

const DURATION_MS = full(20_000, 300_000);
/** At the end something must become of what waits within this time. */
const STILL_MS = 30_000;
/** Of a batch, and so of a record. */
const TOPIC_BYTES = 20_000;
const LIMIT = { 'max.message.bytes': String(TOPIC_BYTES) };
/** On a machine full of servers. Who waits for a lock that nobody gives back waits for 50 s. */
const SLOWEST_MS = 15_000;

const CONFIG = {
  kafka: { connectTimeoutMs: 500, requestTimeoutMs: 2_000 },
  relay: { laneStallMs: 3_000, takeOverMs: 3_000 },
  sweep: { intervalMs: 200 },
  // A partition that was set aside is tried again soon after its broker is back.
  failures: { backOffCapMs: 3_000 },
};

test(
  `${DURATION_MS / 1_000} s of everything at once, while relay and broker are killed and frozen`,
  { timeout: DURATION_MS + 240_000 },
  async () => {
    const seed = Number(process.env['CDC_RELAY_TEST_SEED'] ?? randomInt(2 ** 31));
    process.stderr.write(`stress: CDC_RELAY_TEST_SEED=${seed}\n`);
    const random = seededRandom(seed);
    await using servers = await ProxiedServers.start({}, {});
    await using bed = await RelayBed.open({
      mysql: servers.mysql,
      kafka: servers.kafka,
      topics: { orders: 6, payments: 2 },
    });
    const { pool, topic } = bed.servers;
    const relay = new KeptRelay(bed, CONFIG);
    await (await relay.start()).waitFor('binlog-streaming');
    const ledger = new Ledger();
    const topics = [...bed.topics, topic('late')];
    await lowerLimits(bed, ledger);
    const writers = new MixedWriters({
      ...{ pool, ledger, topics, run: seed, random: seededRandom(seed + 1), poisonBytes: 2 * TOPIC_BYTES },
    });
    await using holder = new RowHolder(pool, seededRandom(seed + 2));
    const stage = { servers, relay, random };
    const beganMs = performance.now();
    const tell = (text: string): void => {
      process.stderr.write(`stress: ${((performance.now() - beganMs) / 1_000).toFixed(1)} s ${text}\n`);
    };
    const faulting = causeFaults(stage, RELAY_AND_BROKER, {
      ...{ untilMs: beganMs + DURATION_MS, mostPauseMs: 2_000, tell },
    });
    await sleep(DURATION_MS / 2);
    expect(await bed.count('outbox', `topic = '${topic('late')}' AND status = 'published'`)).toBe(0);
    await eventually(() => bed.servers.createTopics({ late: 3 }, LIMIT), {
      withinMs: 30_000,
      what: 'the topic that was missing',
    });
    const { counts: faults } = await faulting;
    tell('the last fault is over');
    await writers.stop();
    await holder[Symbol.asyncDispose]();
    await expectSettled(bed, relay, STILL_MS);
    tell('nothing waits any more');
    expect(await relay.stop()).toBe(0);
    const figures = await expectLedger(bed.servers, { ledger, topics });
    const { transactions, slowestMs, errors } = writers;
    const told = { ...figures, transactions, holds: holder.holds, faults, starts: relay.starts, slowestMs };
    tell(JSON.stringify(told));
    expect(relay.failures).toEqual([]);
    expect(errors).toEqual([]);
    expect(slowestMs).toBeLessThan(SLOWEST_MS);
    expect(figures.committed).toBeGreaterThan(DURATION_MS / 100);
    expect(figures.failed).toBeGreaterThan(0);
    expect(holder.holds).toBeGreaterThan(0);
  },
);

/**
 * Topics that take less than the relay believes: it asks again half a minute later only. Until then it is the broker
 * that refuses, batch by batch.
 */
async function lowerLimits(bed: RelayBed, ledger: Ledger): Promise<void> {
  const { pool } = bed.servers;
  for (const topic of bed.topics) await insertRows(pool, { topic, count: 1 });
  for (const { eventId } of await expectedRows(pool, { table: 'outbox' })) {
    ledger.row(eventId, 'plain', { committingMs: 0, committedMs: 0, fate: 'committed' });
  }
  await bed.retired();
  const admin = bed.servers.kafka.admin();
  await admin.connect();
  try {
    const configEntries = Object.entries(LIMIT).map(([name, value]) => ({ name, value }));
    const resources = bed.topics.map((name) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name, configEntries }));
    await admin.alterConfigs({ validateOnly: false, resources });
  } finally {
    await admin.disconnect();
  }
}
