import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../integration/http/http-client.ts';
import { makeAuthority } from '../stack/certificates.ts';
import { type Certificate, type DatabaseServer, KAFKA_USER, type KafkaCluster } from '../stack/handles.ts';
import { insertRows } from '../stack/outbox-rows.ts';
import { freePort } from '../stack/ports.ts';
import { type Config, RelayBed } from '../stack/relay-bed.ts';
import { type CliOptions, startCli } from '../stack/relay-process.ts';
import { createRelayUser, type RelayUser } from '../stack/relay-user.ts';
import { startKafka, startMysql } from '../stack/stack.ts';
import { removeDirectory, temporaryDirectory } from '../stack/ward.ts';

/** With whatever somebody's encoding changes. */
const PASSWORD = 'p@ss/word "quoted" 100%';
const WRONG_SASL = 'wr0ng "p@ss" w/ord';
const CLIENT_SECRET = 'cl1ent "secret" & more';
const TOKEN = 'the "token" of/http+1';
const UNREADABLE = 'un@readable secret "x"';

let directory: string;
let certificate: Certificate;
let mysql: DatabaseServer;
let cluster: KafkaCluster;
let bed: RelayBed;
let user: RelayUser;
let endpoint: Server;
/** All that was told so far, by what told it. */
const outputs = new Map<string, string>();
let commands = 0;

beforeAll(async () => {
  directory = await temporaryDirectory();
  certificate = await (await makeAuthority()).issue();
  const listeners = { saslplain: { sasl: 'plain' }, oauth: { sasl: 'oauthbearer' } } as const;
  [mysql, cluster] = await Promise.all([startMysql({ certificate }), startKafka({ listeners })]);
  bed = await RelayBed.open({ mysql, kafka: cluster, topics: { orders: 1 } });
  user = await createRelayUser((text) => bed.sql(text), bed.servers.database, PASSWORD);
  // It repeats the secret that it was sent, as some do.
  endpoint = createServer((request, response) => {
    response.writeHead(401, { 'content-type': 'application/json' });
    const sent = Buffer.from(request.headers.authorization!.replace('Basic ', ''), 'base64').toString();
    response.end(JSON.stringify({ error: 'invalid_client', error_description: `${sent} ${CLIENT_SECRET}` }));
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
}, 120_000);
afterAll(async () => {
  endpoint.close();
  await bed[Symbol.asyncDispose]();
  await Promise.all([mysql.dispose(), cluster.dispose()]);
  await removeDirectory(directory);
});

/** Each secret as it is and as it is written in URLs, JSON, base64, and in the exchange of SASL PLAIN. */
function forms(): string[] {
  const { cert, key } = certificate;
  const keyLines = key.split('\n').filter((line) => line.length > 20 && !line.startsWith('-----'));
  expect(keyLines.length).toBeGreaterThan(10);
  expect(cert).not.toContain(keyLines[1]);
  const names = [user.user, KAFKA_USER.username];
  const texts = [PASSWORD, WRONG_SASL, CLIENT_SECRET, TOKEN, UNREADABLE, KAFKA_USER.password, ...keyLines];
  return texts.flatMap((text) => {
    const plain = names.map((name) => Buffer.from(`\0${name}\0${text}`));
    const pair = [Buffer.from(text), ...names.map((name) => Buffer.from(`${name}:${text}`)), ...plain];
    const base64 = pair.flatMap((bytes) => [
      bytes.toString('base64'),
      bytes.toString('base64url'),
      bytes.toString('hex'),
    ]);
    const whole = base64.map((encoded) => encoded.replace(/=+$/, ''));
    const url = encodeURIComponent(text);
    return [text, url, url.replaceAll('%20', '+'), JSON.stringify(text).slice(1, -1), ...whole];
  });
}

function config(over: Config = {}): object {
  const { ca, cert, key } = certificate;
  return bed.config({
    ...over,
    mysql: { ...user, tls: { ca, cert, key }, ...over.mysql },
    kafka: { brokers: cluster.listener('saslplain'), sasl: { mechanism: 'plain', ...KAFKA_USER }, ...over.kafka },
    http: { token: TOKEN, ...over.http },
  });
}

/** To its end; says how it ended. */
async function cli(
  args: readonly string[],
  options: CliOptions = { config: config() },
  name = `${++commands} ${args.join(' ')}`,
): Promise<number | null> {
  await using command = await startCli([...args, '--log-level', 'debug'], options);
  const { code } = await command.exited;
  outputs.set(name, command.stdout() + command.stderr());
  return code;
}

async function runAndAsk(): Promise<void> {
  const port = await freePort();
  await using relay = await startCli(['run', '--log-level', 'debug'], { config: config({ http: { port } }) });
  await relay.waitFor('binlog-streaming');
  await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 20 });
  const payload = JSON.stringify(randomBytes(1_500_000).toString('hex'));
  const tooLarge = 'INSERT INTO outbox (topic, aggregate_id, payload) VALUES (?, ?, ?)';
  await bed.sql(tooLarge, [bed.topics[0], 'too large', payload]);
  await bed.sql(tooLarge, [`${bed.servers.database}.missing`, 'no topic', '1']);
  await relay.waitFor('row-failed');
  await relay.waitFor('scope-parked');
  const headers = { authorization: `Bearer ${TOKEN}` };
  const asked = ['/', '/livez', '/readyz', '/status', '/metrics', '/history', '/failed', '/parked', '/nothing'];
  const answers = [
    ...asked.map((path) => ask(port, path, { headers })),
    ...asked.map((path) => ask(port, path, { headers: { authorization: `Bearer ${WRONG_SASL}` } })),
    ask(port, '/pause', { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{"a"' }),
    ask(port, `/jobs/${encodeURIComponent(TOKEN)}/cancel`, { method: 'POST', headers }),
  ];
  for (const answer of await Promise.all(answers))
    outputs.set(`answer ${String(outputs.size)}`, JSON.stringify(answer));
  expect((await relay.kill('SIGTERM')).code).toBe(0);
  outputs.set('run', relay.stdout() + relay.stderr());
}

/** A driver's error, with all that drivers attach to theirs, that nobody catches. */
async function crash(): Promise<number | null> {
  const preload = join(directory, 'crash.mjs');
  const text = `cannot log in as mysql://u:${encodeURIComponent(PASSWORD)}@h with ${PASSWORD}`;
  const properties = { sql: `SET PASSWORD = '${PASSWORD}'`, config: { password: PASSWORD, token: TOKEN } };
  writeFileSync(
    preload,
    `setTimeout(() => { const cause = new Error(${JSON.stringify(text)});
      throw Object.assign(new Error(${JSON.stringify(text)}, { cause }), ${JSON.stringify(properties)}); }, 1500);`,
  );
  return cli(['run'], { config: config(), nodeFlags: [`--import=${preload}`] });
}

const FAULTY: readonly [key: string, over: Readonly<Record<string, object>>][] = [
  ['password', { mysql: { password: [PASSWORD] } }],
  ['mysql.password', { mysql: { password: { [PASSWORD]: PASSWORD } } }],
  ['key', { mysql: { tls: { key: UNREADABLE, cert: UNREADABLE } } }],
  ['passwordFile', { mysql: { password: PASSWORD, passwordFile: UNREADABLE } }],
  ['url', { mysql: { url: `mysql://u:${UNREADABLE}@@h:x/` } }],
  ['host', { mysql: { host: { a: PASSWORD }, user: [UNREADABLE] } }],
  ['mechanism', { kafka: { sasl: { mechanism: UNREADABLE, password: WRONG_SASL } } }],
  [
    'tokenEndpoint',
    { kafka: { sasl: { mechanism: 'oauthbearer', tokenEndpoint: UNREADABLE, clientSecret: [CLIENT_SECRET] } } },
  ],
  ['token', { http: { token: [TOKEN] } }],
  ['pasword', { mysql: { pasword: PASSWORD } }],
];

test('K1 no secret is told: not by any command, answer or crash, at the lowest level, in any form', async () => {
  const url = `mysql://${user.user}:${encodeURIComponent(PASSWORD)}@${bed.servers.mysql.host}:${bed.servers.mysql.port}/${bed.servers.database}`;
  const tokenEndpoint = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/token`;
  const oauth = { mechanism: 'oauthbearer', tokenEndpoint, clientId: KAFKA_USER.username, clientSecret: CLIENT_SECRET };
  const byOauth = config({ kafka: { brokers: cluster.listener('oauth'), sasl: oauth }, name: 'oauth' });

  await runAndAsk();
  const [crashed, ...ends] = await Promise.all([
    crash(),
    cli(['run'], { config: config({ mysql: { password: UNREADABLE } }) }),
    cli(['run'], {
      config: config({
        name: 'sasl',
        kafka: { sasl: { mechanism: 'plain', username: 'relay', password: WRONG_SASL } },
      }),
    }),
    cli(['run'], { config: byOauth }),
  ]);
  expect(crashed).toBe(1);
  expect(ends).toEqual([4, 4, 4]);
  expect([...outputs].find(([name, text]) => name.endsWith(' run') && text.includes('"crashed"'))).toBeDefined();

  const asked = [
    'config', 'config --json', 'config --check', 'check', 'check --json --all', 'status', 'status --json', 'failed list',
    'failed list --json', 'verify', 'resync list', `adopt ${bed.servers.database}.outbox --dry-run`, 'migrate --print',
  ]; // prettier-ignore
  const byUrl = { env: { CDC_RELAY_MYSQL_URL: url }, config: config() };
  for (const half of [asked.slice(0, 6), asked.slice(6)]) {
    await Promise.all(half.map((command) => cli(command.split(' '))));
  }
  const [set, ...others] = await Promise.all([
    cli(['status', '--set', `mysql.password=${UNREADABLE}`]),
    cli(['config'], byUrl),
    cli(['status', '--json'], byUrl),
    cli(['check', '--json'], { config: byOauth }),
  ]);
  expect([set, ...others.slice(0, 1)]).toEqual([2, 0]);
  const faults = FAULTY.map(async ([key, fault]) => {
    const whole = config() as Readonly<Record<string, object>>;
    const sections = Object.entries(fault).map(([name, keys]) => [name, { ...whole[name], ...keys }] as const);
    const faulty = { ...whole, ...Object.fromEntries(sections) };
    expect(await cli(['config', '--check'], { config: faulty }, key), key).toBe(2);
    expect(outputs.get(key), key).toContain(key);
  });
  await Promise.all(faults);

  const wanted = forms();
  const told = (text: string): string[] => wanted.filter((form) => text.includes(form));
  expect(told(`before ${PASSWORD}`)).not.toEqual([]);
  expect([...outputs].flatMap(([name, text]) => told(text).map((form) => `${name}: ${form}`))).toEqual([]);
  for (const [name, text] of outputs) expect(text.length, name).toBeGreaterThan(2);
}, 120_000);
