import { readdirSync, readlinkSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Relayed } from '../integration/http/http-client.ts';
import { ProxiedServers } from '../stack/fault-stage.ts';
import { full } from '../stack/full.ts';
import { Load } from '../stack/load.ts';
import type { Proxy } from '../stack/proxy.ts';
import { freePort } from '../stack/ports.ts';
import { RelayBed } from '../stack/relay-bed.ts';
import { type CliProcess, startCli } from '../stack/relay-process.ts';
import { until } from '../stack/until.ts';

const HEARTBEAT_MS = 1_000;
/** Silence is known for what it is after three heartbeats; the machine may be busy. Nothing else would end it so soon. */
const NOTICED_MS = 3 * HEARTBEAT_MS + 5_000;
/** The sweep rests so long between two looks, where a look takes some 50 ms (S28): nobody asks anything meanwhile. */
const REST_MS = 5_000;
const config = {
  mysql: { heartbeatMs: HEARTBEAT_MS, connectTimeoutMs: 1_000, queryTimeoutMs: 2_000 },
  kafka: { connectTimeoutMs: 1_000, requestTimeoutMs: 2_500 },
  relay: { takeOverMs: 4_000 },
  sweep: { intervalMs: 500 },
};

/** Nothing comes through any more; or the server, too, knows that the connection is gone. */
const BOTH: readonly ('silence' | 'forget')[] = ['silence', 'forget'];

const ENDS = [
  ['sweep-failed', 'sweep-recovered'],
  ['pause-unknown', 'pause-known'],
  ['flush-failed', 'flush-recovered'],
] as const;

const sends = (text: string) => (chunk: Buffer) => chunk.includes(text);
/** By what only that connection of the relay sends. */
const KINDS = {
  /** COM_BINLOG_DUMP or COM_BINLOG_DUMP_GTID: the first packet of a command, behind its length and number. */
  dump: (chunk: Buffer) => chunk.length > 4 && chunk[3] === 0 && (chunk[4] === 0x12 || chunk[4] === 0x1e),
  leader: sends('SELECT GET_LOCK('),
  statements: sends('gtid_set = '),
  sweep: sends('SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6)'),
};

let servers: ProxiedServers;
let bed: RelayBed;
let relay: CliProcess;
let health: Relayed;
let load: Load;
beforeAll(async () => {
  servers = await ProxiedServers.start({}, {});
  bed = await RelayBed.open({ mysql: servers.mysql, kafka: servers.kafka, config });
  servers.mysqlProxy.kinds = KINDS;
  for (const proxy of servers.kafkaProxies) proxy.kinds = { all: () => true };
  const port = await freePort();
  health = new Relayed(port);
  relay = await bed.start({
    mysql: { ...config.mysql, ...servers.config.mysql },
    kafka: { ...config.kafka, ...servers.config.kafka },
    http: { port },
  });
  load = new Load(bed.servers.pool, { topic: bed.topics[0], writers: 2, pauseMs: 20 });
  await until(() => health.isReady(), { withinMs: 20_000, what: 'a relay that is ready' });
});
afterAll(async () => {
  await load.stop();
  await bed[Symbol.asyncDispose]();
  await servers[Symbol.asyncDispose]();
});

describe('I1 one connection says nothing any more, and nobody is told', () => {
  const events = {
    dump: { names: ['tail-lost'], code: 'BINLOG_SILENT' },
    leader: { names: ['leader-lock-lost'], code: 'MYSQL_QUERY_TIMEOUT' },
    statements: { names: ['flush-failed'], code: 'MYSQL_QUERY_TIMEOUT' },
    // Who asks next over it: the sweep, or whether to pause.
    sweep: { names: ['sweep-failed', 'pause-unknown'], code: 'MYSQL_QUERY_TIMEOUT' },
  };
  const hows = full(BOTH.slice(0, 1), BOTH);
  const cases = (Object.keys(events) as (keyof typeof events)[]).flatMap((kind) =>
    (kind === 'dump' ? BOTH : hows).map((how) => ({ kind, how })),
  );

  test.each(cases)('$kind ($how): noticed, and gone on with another', async ({ kind, how }) => {
    const { names, code } = events[kind];
    const isThere = (): boolean => silenced(servers.mysqlProxy, how, kind) > 0;
    const before = relay.lines().length;
    await until(isThere, { withinMs: 20_000, what: `a connection of the kind ${kind}` });
    const isNoticed = (): boolean =>
      relay
        .lines()
        .slice(before)
        .some((line) => names.includes(line.event) && line['code'] === code);
    const withinMs = NOTICED_MS + (kind === 'sweep' ? REST_MS : 0);
    await bed.orTail(() => until(isNoticed, { withinMs, what: `${names.join(' or ')} with ${code}` }));
    await flowsAgain();
    // What fails again before it has been answered is not told again.
    await until(isAnswered, { withinMs: 20_000, what: 'sweep-recovered and pause-known' });
  });

  test.each(hows)('all of Kafka (%s)', async (how) => {
    const before = relay.lines().length;
    expect(silenced(servers.kafkaProxies[0], how, 'all')).toBeGreaterThan(0);
    await relay.waitFor('lane-held', { after: before, withinMs: NOTICED_MS });
    await flowsAgain();
  });

  test.each(BOTH)('all of MySQL at once (%s)', async (how) => {
    const before = relay.lines().length;
    servers.mysqlProxy.kinds = { ...KINDS, all: () => true };
    // The pings tell which connections there are.
    const open = (): boolean => silenced(servers.mysqlProxy, how, 'all') > 0;
    await until(open, { withinMs: 20_000, what: 'a connection' });
    for (const kind of Object.keys(KINDS)) silenced(servers.mysqlProxy, how, kind);
    // The term ends by what is noticed first: the lock, or a sweep that cannot go on.
    const hasEnded = (): boolean =>
      relay
        .lines()
        .slice(before)
        .some(({ event }) => event === 'leader-lock-lost' || event === 'term-ended');
    await bed.orTail(() => until(hasEnded, { withinMs: NOTICED_MS, what: 'the end of the term' }));
    await flowsAgain();
    servers.mysqlProxy.kinds = KINDS;
  });

  test('what was given up is closed: no socket waits for an answer that will not come', async () => {
    await until(() => sockets(relay.pid) < 20, { withinMs: 20_000, what: 'few sockets' });
  });
});

describe('I1 what is killed or stands still', () => {
  test('the dump thread is killed: the next one begins at once', async () => {
    const before = relay.lines().length;
    const [{ id }] = await bed.sql("SELECT id FROM performance_schema.processlist WHERE command LIKE 'Binlog Dump%'");
    await bed.sql(`KILL ${String(id)}`);
    await relay.waitFor('tail-lost', { fields: { code: 'BINLOG_CONNECTION_LOST' }, after: before, withinMs: 20_000 });
    await flowsAgain();
  });

  test('MySQL stands still: UNKNOWN, `status` fails and says why within its time, and it goes on by itself', async () => {
    const before = relay.lines().length;
    await servers.mysql.freeze();
    try {
      // Which connection is the first to notice is a matter of chance.
      const noticed = (): boolean => relay.lines().slice(before).some(isLoss);
      await until(noticed, { withinMs: NOTICED_MS, what: 'a connection that is known to be lost' });
      await using status = await startCli(['status'], { config: bed.config() });
      const beganMs = performance.now();
      expect((await status.exited).code).toBeGreaterThan(0);
      expect(performance.now() - beganMs).toBeLessThan(15_000);
      expect(status.stderr()).toContain('MYSQL_UNREACHABLE');
      const isUnknown = async (): Promise<boolean> => (await health.ready())?.state === 'UNKNOWN';
      await until(isUnknown, { withinMs: 20_000, what: 'UNKNOWN' });
    } finally {
      await servers.mysql.thaw();
    }
    await flowsAgain();
    await until(() => health.isReady(), { withinMs: 20_000, what: 'a relay that is ready again' });
  });
});

test('through all that it was one process, nothing was lost, and nothing came out of order', async () => {
  await load.stop();
  await bed.retired('outbox', { withinMs: 60_000 });
  expect(relay.alive()).toBe(true);
  const figures = await bed.expectDelivered({ faultInjected: true });
  expect(figures).toMatchObject({ lost: 0, reordered: 0, altered: 0 });
  process.stderr.write(`silence: ${JSON.stringify(figures)}\n`);
});

/** Nothing that is asked over and over has failed last time. */
function isAnswered(): boolean {
  return ENDS.every(([failed, over]) => {
    const last = relay.lines().findLast(({ event }) => event === failed || event === over);
    return last?.event !== failed;
  });
}

function isLoss({ event }: { readonly event: string }): boolean {
  return ['tail-lost', 'leader-lock-lost', 'flush-failed', 'sweep-failed'].includes(event);
}

function silenced(proxy: Proxy, how: 'silence' | 'forget', kind: string): number {
  return how === 'silence' ? proxy.silence(kind) : proxy.forget(kind);
}

/** Rows that are written from now on are sent and retired. */
async function flowsAgain(): Promise<void> {
  const [{ last }] = await bed.sql('SELECT MAX(id) AS last FROM outbox');
  const [{ now }] = await bed.sql('SELECT UTC_TIMESTAMP(6) AS now');
  const isOut = `published_at > '${String(now)}' AND id > ${String(last)}`;
  const flows = async (): Promise<boolean> => (await bed.count('outbox', isOut)) > 20;
  await bed.orTail(() => until(flows, { withinMs: 20_000, what: 'rows that flow again', everyMs: 50 }));
  expect(relay.alive()).toBe(true);
}

/** Of a process, open now (Linux). */
function sockets(pid: number): number {
  const ofSocket = (name: string): boolean => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${name}`).startsWith('socket:');
    } catch {
      return false; // closed in this moment
    }
  };
  return readdirSync(`/proc/${pid}/fd`).filter(ofSocket).length;
}
