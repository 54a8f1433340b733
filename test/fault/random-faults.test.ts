import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { expectSettled, KeptRelay, ProxiedServers } from '../stack/fault-stage.ts';
import { causeFaults, CLOCK, DATABASE, NETWORK, RELAY_AND_BROKER } from '../stack/faults.ts';
import { full } from '../stack/full.ts';
import { JumpingClock } from '../stack/jumping-clock.ts';
import { Ledger } from '../stack/ledger.ts';
import { expectLedger } from '../stack/ledger-audit.ts';
import { MixedWriters } from '../stack/mixed-writers.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { RowHolder } from '../stack/row-holder.ts';
import { seededRandom } from '../stack/seeded-random.ts';
import { eventually, until } from '../stack/until.ts';

/** `npm run test:fault -- --seed N --minutes M` sets both. */
const MINUTES = Number(process.env['CDC_RELAY_TEST_MINUTES'] ?? full(1, 5));
/** At the end something must become of what waits within this time. */
const STILL_MS = 30_000;
const RECOVERED_WITHIN_MS = 90_000;
const TOPIC_BYTES = 20_000;
/** Leaders move where there is somewhere to move to; a short run has no time for three brokers. */
const BROKERS = MINUTES > 2 ? 3 : 1;

const WAITS = "status IN ('pending', 'processing')";

test(
  `${MINUTES} min of random faults of processes, network and clock`,
  { timeout: MINUTES * 60_000 + RECOVERED_WITHIN_MS + 240_000 },
  async () => {
    const seed = Number(process.env['CDC_RELAY_TEST_SEED'] ?? randomInt(2 ** 31));
    process.stderr.write(`random faults: npm run test:fault -- --seed ${seed} --minutes ${MINUTES}\n`);
    const random = seededRandom(seed);
    await using servers = await ProxiedServers.start(
      { durable: true },
      { brokers: BROKERS, properties: { 'message.max.bytes': String(TOPIC_BYTES) } },
    );
    await using bed = await RelayBed.open({
      ...{ mysql: servers.mysql, kafka: servers.kafka, topics: { orders: 6, payments: 2 } },
    });
    await using clock = await JumpingClock.create();
    const config = {
      mysql: { ...servers.config.mysql, heartbeatMs: 500, connectTimeoutMs: 1_000, queryTimeoutMs: 3_000 },
      kafka: { ...servers.config.kafka, connectTimeoutMs: 500, requestTimeoutMs: 2_000 },
      relay: { laneStallMs: 3_000, takeOverMs: 3_000 },
      sweep: { intervalMs: 200 },
      // A partition that was set aside is tried again soon after its broker is back.
      failures: { backOffCapMs: 3_000 },
    };
    const relay = new KeptRelay(bed, config, clock);
    await (await relay.start()).waitFor('binlog-streaming');
    const ledger = new Ledger();
    const topics = bed.topics;
    const { pool } = bed.servers;
    const writers = new MixedWriters({
      ...{ pool, ledger, topics, run: seed, random: seededRandom(seed + 1), poisonBytes: 2 * TOPIC_BYTES },
    });
    await using holder = new RowHolder(pool, seededRandom(seed + 2));
    const beganMs = performance.now();
    const tell = (text: string): void => {
      process.stderr.write(`random faults: ${((performance.now() - beganMs) / 1_000).toFixed(1)} s ${text}\n`);
    };
    const committedUntilNow = async (): Promise<void> => {
      const within = { withinMs: RECOVERED_WITHIN_MS, what: 'what was committed by the end of a fault is out' };
      const [{ last }] = await eventually(() => bed.sql('SELECT COALESCE(MAX(id), 0) AS last FROM outbox'), within);
      const waits = `${WAITS} AND available_at <= UTC_TIMESTAMP(6) AND id <= ${String(last)}`;
      await bed.orTail(() => until(async () => (await bed.count('outbox', waits)) === 0, within));
    };
    const { counts, longestRecovery } = await causeFaults(
      { servers, relay, random },
      [...RELAY_AND_BROKER, ...DATABASE, ...NETWORK, ...CLOCK],
      { untilMs: beganMs + MINUTES * 60_000, mostPauseMs: 2_000, tell, recovered: committedUntilNow },
    );
    tell('the last fault is over');
    await writers.stop();
    await holder[Symbol.asyncDispose]();
    await expectSettled(bed, relay, STILL_MS);
    tell('nothing waits any more');
    expect(await relay.stop()).toBe(0);
    const figures = await bed.orTail(() => expectLedger(bed.servers, { ledger, topics }));
    const { transactions, errors } = writers;
    const told = {
      ...figures,
      transactions,
      holds: holder.holds,
      errors: errors.length,
      faults: counts,
      longestRecovery,
      starts: relay.starts,
    };
    tell(JSON.stringify(told));
    expect(relay.failures).toEqual([]);
    expect(figures.committed).toBeGreaterThan(MINUTES * 500);
  },
);
