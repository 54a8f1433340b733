import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { type StatusReport, statusSchema } from '../../../src/commands/status-report.ts';
import { lockName } from '../../../src/store/leadership.ts';
import type { Finished } from '../../e2e/built-cli.ts';
import { logHead } from '../../stack/log-head.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { freePort } from '../../stack/ports.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { startCli } from '../../stack/relay-process.ts';
import { until } from '../../stack/until.ts';
import { CommandBed, numbers } from './command-bed.ts';

const NOWHERE = ['--set', 'http.port=0'];
const EVIL = '\u001b]0;gone\u0007\u202e';
/** What a topic can hold. */
const EVIL_TOPIC = 't\u001b]0;gone\u0007';
const NO_CONTROL = /^[\x20-\x7e\n]*$/;

async function report(bed: CommandBed, ...args: string[]): Promise<StatusReport> {
  const { stdout } = await bed.cli(['status', '--json', ...NOWHERE, ...args]);
  return statusSchema.parse(JSON.parse(stdout));
}

/** The lines of a report by their labels. */
function linesOf({ stdout }: Finished): Map<string, string[]> {
  let label = '';
  return Map.groupBy(stdout.trimEnd().split('\n'), (line) => (label = line.slice(0, 10).trim() || label));
}

/** As a relay that died left it. */
async function leave(bed: CommandBed): Promise<void> {
  const [{ uuid }] = await bed.sql('SELECT @@server_uuid AS uuid');
  const { file } = await logHead((text) => bed.sql(text));
  await bed.sql(
    `INSERT INTO cdc_relay_offsets (name, server_uuid, file, position, epoch, owner, last_commit_us)
     VALUES ('command-test', ?, ?, 4, 7, ?, 1)`,
    [uuid, file, `gone:1${EVIL}`],
  );
}

test('a dead relay: what waits and why, escaped, with what to do; exit 1 because rows wait', async () => {
  await using bed = await CommandBed.open();
  expect(await bed.cli(['status', ...NOWHERE])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^STOPPED/) as string,
  });
  await leave(bed);
  const seconds = (ago: number): string => `UTC_TIMESTAMP(6) - INTERVAL ${ago} SECOND`;
  const rows = (topic: string, key: string, status: string, ago: number, count: number): Promise<unknown> =>
    bed.sql(
      `INSERT INTO outbox (topic, aggregate_id, payload, status, available_at, last_error)
       SELECT ?, ?, '{}', '${status}', ${seconds(ago)}, ? FROM ${numbers(count)}`,
      [topic, key, `ROW_ENCODING: ${EVIL}`],
    );
  await rows('orders', 'agg-1', 'pending', 840, 37);
  await rows('orders', 'AGG-1', 'pending', 5, 2);
  await rows('orders', 'agg-1', 'failed', 240, 3);
  await rows(EVIL_TOPIC, `k${EVIL}`, 'pending', 400, 4);
  await rows('orders', 'later', 'pending', -600, 12);
  const park = `INSERT INTO cdc_relay_parked (relay, kind, topic, \`partition\`, key_bytes, partitions, not_before, attempts,
    reason, since, outbox, row_id) VALUES ('command-test', ?, ?, ?, ?, ?, ${seconds(-40)}, 7, ?, ${seconds(842)}, ?, ?)`;
  await bed.sql(park, ['pair', 'orders', 0, Buffer.from('agg-1'), 3, 'ROW_ENCODING', `${bed.database}.outbox`, '81']);
  await bed.sql('UPDATE cdc_relay_parked SET not_before = NULL');
  await bed.sql(park, ['topic', EVIL_TOPIC, -1, '', 0, `R${EVIL}`, null, null]);
  await bed.sql(
    `INSERT INTO cdc_relay_jobs (relay, kind, spec, state, started_at) VALUES ('command-test', 'reconcile', '{}', 'running', ${seconds(24)})`,
  );

  const shown = await bed.cli(['status', ...NOWHERE]);
  expect(shown).toMatchObject({ code: 1, stderr: '' });
  expect(shown.stdout).toMatch(NO_CONTROL);
  const lines = linesOf(shown);
  expect([...lines.keys()]).toEqual([
    ...['STOPPED', 'lag', 'position', 'purge', 'outbox', 'parked', 'failed', 'job', 'next'],
  ]);
  expect(lines.get('STOPPED')).toEqual([expect.stringMatching(/no leader, no standby$/)]);
  // What is parked is told apart: the lag is of what waits beside it.
  expect(lines.get('lag')).toEqual([expect.stringMatching(/^lag {7}\d+(\.\d)? s, 43 rows, .* of binlog$/)]);
  expect(lines.get('outbox')).toEqual([
    expect.stringMatching(/pending 43 \(oldest 14 m \d+ s\) {3}delayed 12 \(next in 9 m \d+ s\) {3}failed 3$/),
  ]);
  expect(lines.get('parked')).toEqual([
    expect.stringMatching(/^parked {4}topic t\\x1b.* for 14 m \d+ s {3}R\\x1b.* next try in \d+ s {3}4 rows wait$/),
    expect.stringMatching(/^ {10}orders \/ agg-1 .* until somebody acts -> cdc-relay failed show 81 .* 37 rows wait$/),
  ]);
  expect(lines.get('failed')).toEqual([
    expect.stringMatching(/^failed {4}3 rows, .* ago: ROW_ENCODING {3}-> cdc-relay failed list$/),
  ]);
  expect(lines.get('job')).toEqual([expect.stringMatching(/reconcile running {3}for [2-5]\d s/)]);

  const told = await report(bed);
  expect(told).toMatchObject({ state: 'STOPPED', source: 'database', standbys: 0, parked: { total: 2 }, passed: [] });
  expect(told.lagMs).toBeGreaterThan(4_000);
  expect(told.lagMs).toBeLessThan(60_000);

  // Somebody leads, and asks for nothing; a pause stands in the table. What waits has just come.
  await bed.sql("UPDATE outbox SET available_at = UTC_TIMESTAMP(6) WHERE aggregate_id = BINARY 'AGG-1'");
  const leader = await bed.connect();
  await leader.query('SELECT GET_LOCK(?, 0)', [lockName(bed.database, 'command-test')]);
  const led = await bed.cli(['status', ...NOWHERE]);
  expect(led.code).toBe(0);
  expect(led.stdout).toMatch(/^FLOWING .* leader gone:1\\x1b/);
  expect(led.stdout).toMatch(NO_CONTROL);
  await bed.sql('UPDATE cdc_relay_offsets SET paused_at = UTC_TIMESTAMP(6), paused_by = ?', [EVIL]);
  const paused = await bed.cli(['status', ...NOWHERE]);
  expect(paused.stdout).toMatch(/^PAUSED {4}/);
  expect(paused.stdout).toMatch(NO_CONTROL);
});

test('thresholds as exit codes: a line says what is passed, and by how much', async () => {
  await using bed = await CommandBed.open();
  await leave(bed);
  await bed.insert({ topic: 'orders', aggregate_id: 'a', available_at: '2026-01-01 00:00:00' });
  const lag = await bed.cli(['status', ...NOWHERE, '--max-lag', '60s', '--max-failed', '0']);
  expect(lag.code).toBe(1);
  expect(linesOf(lag).get('passed')).toEqual([expect.stringMatching(/lag \d+ d .*, allowed 1 m 0 s \(--max-lag\)$/)]);
  const good = ['--max-lag', '3650d', '--max-failed', '0', '--max-parked', '0', '--min-headroom', '1s'];
  expect(await bed.cli(['status', ...NOWHERE, ...good])).toMatchObject({ code: 0, stderr: '' });
  expect((await bed.cli(['status', ...NOWHERE, '--max-lag', 'soon'])).code).toBe(2);
});

test('no database: UNKNOWN, exit 3, as JSON too; what listens where the relay should is told', async () => {
  await using bed = await CommandBed.open();
  let code = 401;
  const server = createServer((_, answer) => {
    answer.statusCode = code;
    answer.end(JSON.stringify({ relay: EVIL }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = String((server.address() as AddressInfo).port);
  const away = ['--set', `mysql.port=${await freePort()}`, '--set', `http.port=${port}`];
  try {
    const shown = await bed.cli(['status', ...away]);
    expect(shown).toMatchObject({ code: 3, stderr: expect.stringContaining('MYSQL_UNREACHABLE') as string });
    const [verdict, relay] = shown.stdout.split('\n');
    expect(verdict).toMatch(/^UNKNOWN {3}command-test on 127\.0\.0\.1:\d+: the database cannot be reached$/);
    expect(relay).toBe(`relay     what listens at 127.0.0.1:${port} wants another http.token`);
    code = 200;
    const json = await bed.cli(['status', '--json', ...away]);
    expect(json.code).toBe(3);
    expect(statusSchema.parse(JSON.parse(json.stdout))).toMatchObject({
      ...{ state: 'UNKNOWN', lagMs: null, outboxes: [] },
      relay: { as: 'unclear', detail: expect.stringContaining('no relay') as string },
    });
  } finally {
    server.close();
  }
});

test('a relay that runs: its own word, and the view from its standby; --watch tells each change until Ctrl-C: 130', async () => {
  await using bed = await RelayBed.open();
  const [port, other] = [await freePort(), await freePort()];
  const status = async (at: number, ...args: string[]): Promise<{ code: number | null; stdout: string }> => {
    await using command = await startCli(['status', ...args], { config: bed.config({ http: { port: at } }) });
    const { code } = await command.exited;
    return { code, stdout: command.stdout() };
  };
  const json = async (at: number): Promise<StatusReport> =>
    statusSchema.parse(JSON.parse((await status(at, '--json')).stdout));
  await using watch = await startCli(['status', '--watch'], { config: bed.config({ http: { port } }) });
  const words = (): (string | undefined)[] =>
    watch
      .stdout()
      .trimEnd()
      .split('\n')
      .map((line) => /^\S+Z {3}([A-Z ]+) t_.* lag /.exec(line)?.[1]);
  await until(() => words()[0] === 'STOPPED', { withinMs: 20_000, what: 'the first line' });

  await bed.start({ http: { port } });
  const second = await bed.launch({ http: { port: other } });
  await second.waitFor('relay-state', { fields: { to: 'standby' } });
  await insertRows(bed.servers.pool, { topic: bed.servers.topic('orders'), count: 50 });
  await bed.retired();
  await until(async () => (await json(port)).state === 'FLOWING', { withinMs: 20_000, what: 'FLOWING' });

  const good = await status(port, '--max-lag', '60s', '--max-failed', '0', '--max-parked', '0', '--min-headroom', '1h');
  expect(good.code).toBe(0);
  expect(good.stdout).toMatch(/^FLOWING .*leader \S+:\d+ \(up \d+(\.\d)? s\), epoch 1, 1 standby\n/);
  expect(good.stdout).toMatch(/^rate {6}\d+(\.\d)? rows\/s now, \d+(\.\d)? over 15 min$/m);
  const [leads, stands] = await Promise.all([json(port), json(other)]);
  expect(leads).toMatchObject({ state: 'FLOWING', source: 'relay', standbys: 1, relay: { as: 'leader' } });
  expect(leads.rate!.over15MinRowsPerSecond).toBeGreaterThan(0);
  expect(stands).toMatchObject({
    ...{ state: 'FLOWING', source: 'database', rate: null, relay: { as: 'standby' } },
    leader: { ...leads.leader, upMs: null },
  });

  await until(() => words().at(-1) === 'FLOWING', { withinMs: 20_000, what: 'a line that says FLOWING' });
  expect(await watch.kill('SIGINT')).toMatchObject({ code: 130 });
  expect(words()).not.toContain(undefined);
  expect(watch.stdout()).toMatch(NO_CONTROL);
});
