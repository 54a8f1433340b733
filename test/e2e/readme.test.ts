import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { statusSchema } from '../../src/commands/status-report.ts';
import { freePort } from '../stack/ports.ts';
import { readRecords } from '../stack/read-records.ts';
import { type CliProcess, startCli } from '../stack/relay-process.ts';
import { type TestBed, testBed } from '../stack/test-bed.ts';
import { until } from '../stack/until.ts';

/*
 * The five minutes of the README, as they are written there: its settings, its grants, its configuration, its row.
 * Only names and addresses are the test's own.
 */

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

let bed: TestBed;
let user: string;
let relay: CliProcess | null = null;

beforeAll(async () => {
  bed = await testBed();
  user = `u_${bed.database}`;
  await bed.createTopics({ orders: 3 });
});

afterAll(async () => {
  await relay?.[Symbol.asyncDispose]();
  await bed.pool.query(`DROP USER IF EXISTS '${user}'@'%'`);
  await bed[Symbol.asyncDispose]();
});

/** The README's code of one language that has this in it, without its indentation. */
function code(language: string, having: string): string {
  const blocks = [...README.matchAll(/^ *```(\w*)\n([\s\S]*?)^ *```$/gm)];
  const block = blocks.find(([, name, text]) => name === language && text.includes(having));
  if (block === undefined) throw new Error(`the README has no ${language} with ${having}`);
  return block[2].replaceAll(/^ {3}/gm, '');
}

/** As the test names things. */
function renamed(text: string): string {
  return text.replaceAll("'cdc_relay'", `'${user}'`).replaceAll(/\bapp\b/g, bed.database);
}

test('the settings of my.cnf are those of the server that everything here is tested on', async () => {
  for (const [, name, value] of code('ini', 'log_bin').matchAll(/^(\w+) *= *(\w+)$/gm)) {
    const [rows] = await bed.pool.query('SHOW GLOBAL VARIABLES LIKE ?', [name]);
    const [{ Value: actual }] = rows as { Value: string }[];
    if (name === 'log_bin') expect(actual).toBe('ON');
    else if (name === 'binlog_expire_logs_seconds') expect(Number(actual)).toBeGreaterThan(0);
    else expect(actual, name).toBe(value);
  }
});

test('its grants, its configuration and its row give the record that it promises', async () => {
  await bed.pool.query(renamed(code('sql', 'CREATE USER')));
  const config = parse(code('yaml', 'name: orders')) as Record<string, Record<string, unknown>>;
  delete config['mysql']['passwordFile'];
  Object.assign(config['mysql'], {
    ...{ host: bed.mysql.host, port: bed.mysql.port, user, password: 'a long password', database: bed.database },
  });
  config['kafka']['brokers'] = bed.brokers;
  const named = { ...config, outboxes: [{ table: `${bed.database}.outbox` }], http: { port: await freePort() } };

  await using check = await startCli(['config', '--check'], { config: named });
  expect((await check.exited).code).toBe(0);
  await using migrate = await startCli(['migrate'], { config: named });
  expect((await migrate.exited).code, migrate.stderr()).toBe(0);
  relay = await startCli(['run'], { config: named });
  await relay.waitFor('binlog-streaming');

  const insert = renamed(code('sql', 'INSERT INTO app.outbox'));
  await bed.pool.query(insert.replace("('orders'", `('${bed.topic('orders')}'`));
  const record = await until(async () => (await readRecords(bed.kafka, [bed.topic('orders')])).at(0), {
    withinMs: 20_000,
    what: 'the record of the README',
  });
  expect(record.key?.toString()).toBe('order-42');
  expect(record.value?.toString()).toBe('{"total": 99.5}');
  const [rows] = await bed.pool.query('SELECT BIN_TO_UUID(idempotency_key) AS id FROM outbox');
  const [{ id }] = rows as { id: string }[];
  const headers = Object.entries(record.headers).map(([name, value]) => [name, String(value)]);
  expect(Object.fromEntries(headers)).toEqual({ id, 'event-type': 'OrderPlaced' });

  await until(async () => (await status(named)).includes('pending 0'), { withinMs: 20_000, what: 'pending 0' });
  const shown = code('', 'FLOWING').trim().split('\n');
  const printed = (await status(named)).trim().split('\n');
  // A broker that has just started may have refused something once: that is told, and is not of the README.
  expect(printed.filter((line) => !line.startsWith('error ')).map(words)).toEqual(shown.map(words));
  const report = statusSchema.parse(JSON.parse(await status(named, '--json')));
  expect(report).toMatchObject({ name: 'orders', state: 'FLOWING', lagMs: 0 });

  // The database answers for a relay that is dead.
  await relay.kill('SIGKILL');
  await until(async () => (await status(named)).startsWith('STOPPED'), { withinMs: 20_000, what: 'STOPPED' });
});

async function status(config: object, ...options: string[]): Promise<string> {
  await using command = await startCli(['status', ...options], { config });
  await command.exited;
  return command.stdout();
}

/** The words of a line of figures: what stands between the figures and names; units go with the figures. */
function words(line: string): string[] {
  return line.split(/\s+/).filter((word) => /^[a-z()]{3,},?$/i.test(word));
}
