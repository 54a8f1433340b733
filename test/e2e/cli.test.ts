import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Relayed } from '../integration/http/http-client.ts';
import { freePort } from '../stack/ports.ts';
import { until } from '../stack/until.ts';
import { runCli } from './built-cli.ts';

const SECRET = 'hunter2hunter2';
let cwd: string;

beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'cdc-relay-cli-'));
});

afterAll(() => {
  rmSync(cwd, { recursive: true });
});

function config(name: string, port = 1): string {
  const file = join(cwd, name);
  writeFileSync(
    file,
    `
name: orders
mysql: {host: 127.0.0.1, port: ${port}, user: relay, password: ${SECRET}, database: app, connectTimeoutMs: 500}
kafka: {brokers: ["127.0.0.1:9092"]}
outboxes: [{table: app.outbox}]
`,
  );
  return file;
}

describe('usage errors end with 2 and a hint on stderr', () => {
  test.each([
    [['migrat'], "unknown command 'migrat'", 'Did you mean migrate?'],
    [['migrate', '--prin'], "unknown option '--prin'", 'Did you mean --print?'],
    [['migrate', 'now'], 'too many arguments', '--help'],
    [['config', '--log-level', 'loud'], "argument 'loud' is invalid", 'debug, info, warn, error'],
    [['config', '--set'], 'argument missing', '--help'],
    [[], 'Usage: cdc-relay', 'migrate'],
  ])('%j', async (args, ...texts) => {
    const { code, stdout, stderr } = await runCli(args, { cwd });
    expect(code).toBe(2);
    expect(stdout).toBe('');
    for (const text of texts) expect(stderr).toContain(text);
  });
});

test('help and version go to stdout and end with 0', async () => {
  const help = await runCli(['--help'], { cwd });
  expect(help).toMatchObject({ code: 0, stderr: '' });
  for (const word of ['migrate', 'config', '--set <key=value>', 'Exit codes: 0 good; 1 a finding']) {
    expect(help.stdout).toContain(word);
  }
  expect((await runCli(['migrate', '--help'], { cwd })).stdout).toMatch(/Examples:\n {2}cdc-relay migrate\n/);
  const version = await runCli(['--version'], { cwd });
  expect(version).toMatchObject({ code: 0, stderr: '' });
  expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('a faulty configuration ends with 2, all faults on stderr, nothing on stdout', async () => {
  const file = join(cwd, 'faulty.yaml');
  writeFileSync(file, `name: orders\nmysql: {pasword: ${SECRET}}\nkafka: {compression: lz4}\n`);
  const { code, stdout, stderr } = await runCli(['migrate', '-c', 'faulty.yaml'], { cwd });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^config: \d faults in faulty.yaml\n/);
  expect(stderr).toContain('mysql.pasword      unknown key; did you mean mysql.password? (line 2)');
  expect(stderr).toContain('"lz4" is not one of none, gzip, zstd');
  expect(stderr).not.toContain(SECRET);
});

test('without a file, faults name the environment; with CDC_RELAY_CONFIG or cdc-relay.yaml there is one', async () => {
  const none = await runCli(['config', '--check'], { cwd, environment: { CDC_RELAY_MYSQL_PORT: 'x' } });
  expect(none.code).toBe(2);
  expect(none.stderr).toMatch(/^config: \d+ faults without a file: there is no cdc-relay.yaml here, .*--config/);
  expect(none.stderr).toContain('(CDC_RELAY_MYSQL_PORT)');

  const file = config('elsewhere.yaml');
  const named = await runCli(['config', '--check'], { cwd, environment: { CDC_RELAY_CONFIG: file } });
  expect(named).toMatchObject({ code: 0, stdout: `config: good (${file})\n`, stderr: '' });

  const home = mkdtempSync(join(cwd, 'home-'));
  writeFileSync(join(home, 'cdc-relay.yaml'), 'name: orders\n');
  const found = await runCli(['config', '--check'], { cwd: home });
  expect(found.stderr).toMatch(/^config: \d+ faults in cdc-relay.yaml\n/);
});

test('K1: config prints what holds and no secret', async () => {
  const file = config('good.yaml');
  const environment = {
    CDC_RELAY_KAFKA_SASL_MECHANISM: 'plain',
    CDC_RELAY_KAFKA_SASL_USERNAME: 'u',
    CDC_RELAY_KAFKA_SASL_PASSWORD: SECRET,
  };
  const text = await runCli(['config', '-c', file, '--set', 'relay.flushMs=7'], { cwd, environment });
  expect(text).toMatchObject({ code: 0, stderr: '' });
  expect(text.stdout).toContain('flushMs: 7\n');
  expect(text.stdout).toContain('password: "[redacted]"\n');
  expect(text.stdout).not.toContain(SECRET);
  const json = await runCli(['config', '-c', file, '--json'], { cwd, environment });
  expect(JSON.parse(json.stdout)).toMatchObject({ version: 1, file, config: { name: 'orders', mysql: { port: 1 } } });
  expect(json.stdout).not.toContain(SECRET);
});

test('migrate --print needs no server; what it prints has the names filled in and quoted', async () => {
  const { code, stdout, stderr } = await runCli(
    ['migrate', '--print', '-c', config('print.yaml'), '--set', 'mysql.database=re`lay'],
    { cwd },
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('CREATE TABLE IF NOT EXISTS `re``lay`.cdc_relay_offsets (');
  expect(stdout).toContain('CREATE TABLE IF NOT EXISTS `re``lay`.cdc_relay_parked (');
  expect(stdout).toContain('CREATE TABLE IF NOT EXISTS `app`.`outbox` (');
  expect(stdout).not.toContain('{{');
});

test('a server that cannot be reached ends with 3, and says what to do', async () => {
  const { code, stdout, stderr } = await runCli(['migrate', '-c', config('down.yaml')], { cwd });
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
  expect(stderr).toMatch(
    /^error: connecting to 127.0.0.1:1: ECONNREFUSED \(MYSQL_UNREACHABLE\)\n {2}server +127.0.0.1:1\n {2}fix +\S/,
  );
  expect(stderr).not.toContain(SECRET);
});

/** A server that accepts connections and says nothing. */
async function muteServer(): Promise<{ port: number; reached: Promise<unknown> } & Disposable> {
  const { promise: reached, resolve: onReached } = Promise.withResolvers<unknown>();
  const server = createServer((socket) => {
    sockets.push(socket);
    onReached(socket);
  });
  const sockets: Socket[] = [];
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    reached,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test('a server that accepts and says nothing ends with 3 too, within the time-out', async () => {
  using mute = await muteServer();
  const { code, stderr } = await runCli(['migrate', '-c', config('mute.yaml', mute.port)], { cwd, withinMs: 20_000 });
  expect(code).toBe(3);
  expect(stderr).toContain('MYSQL_UNREACHABLE');
});

test('Ctrl-C ends with 130', async () => {
  using mute = await muteServer();
  const args = ['migrate', '-c', config('slow.yaml', mute.port), '--set', 'mysql.connectTimeoutMs=60000'];
  const outcome = await runCli(args, { cwd, interrupt: mute.reached });
  expect(outcome).toEqual({
    code: 130,
    signal: null,
    stdout: '',
    stderr: 'interrupted: what was created stays; run it again\n',
  });
});

test('a result that cannot be written ends with 1, whatever was found', async () => {
  const { code, stderr } = await runCli(['migrate', '--print', '-c', config('full.yaml')], { cwd, full: 'stdout' });
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'error: the result cannot be written: ENOSPC\n' });
});

test('a log that cannot be written ends nothing', async () => {
  const port = await freePort();
  const relay = new Relayed(port);
  const args = ['run', '-c', config('logless.yaml'), '--set', `http.port=${port}`];
  // It has told of its start, and waits for MySQL.
  const interrupt = until(async () => (await relay.ready()) !== null, { withinMs: 20_000, what: 'an answer' });
  const { code, signal } = await runCli(args, { cwd, full: 'stderr', interrupt });
  expect({ code, signal }).toEqual({ code: 0, signal: null });
  const refused = await runCli(['migrate', '-c', config('silent.yaml')], { cwd, full: 'stderr' });
  expect(refused.code).toBe(3);
});
