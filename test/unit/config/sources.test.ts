import fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { KEYS, keyAt } from '../../../src/config/keys.ts';
import { type LoadedConfig, loadConfig } from '../../../src/config/load.ts';
import type { Path } from '../../../src/config/paths.ts';
import { derivedServerId } from '../../../src/config/settings.ts';
import { valueOf } from '../../../src/model/secret.ts';
import { ConfigDir, faultLines, settings, VALID } from './config-dir.ts';

const EXAMPLE = new URL('../../../config/cdc-relay.example.yaml', import.meta.url).pathname;

test('flags go before variables, variables before the file, the file before defaults', () => {
  using dir = new ConfigDir();
  const yaml = `${VALID}relay: {flushMs: 1, flushRows: 1, shutdownMs: 1000}\n`;
  const { relay, mysql, kafka } = settings(
    dir.load(
      yaml,
      {
        CDC_RELAY_FLUSH_ROWS: '2',
        CDC_RELAY_SHUTDOWN_MS: '2000',
        CDC_RELAY_MYSQL_HOST: 'db2',
        CDC_RELAY_KAFKA_BROKERS: 'b1:9092, [::1]:9093',
        CDC_RELAY_MYSQL_USER: '',
      },
      ['relay.shutdownMs=3000', 'mysql.port=3307', 'mysql.host=db3'],
    ),
  );
  expect(relay).toMatchObject({ flushMs: 1, flushRows: 2, shutdownMs: 3000, takeOverMs: 10_000, start: null });
  expect(mysql).toMatchObject({ host: 'db3', port: 3307, user: 'relay', tls: null });
  expect(kafka).toMatchObject({ brokers: ['b1:9092', '[::1]:9093'], clientId: 'cdc-relay-orders', createTopics: null });
});

test('everything can come from the environment', () => {
  const loaded = loadConfig({
    file: null,
    sets: [],
    environment: {
      CDC_RELAY_NAME: 'orders',
      CDC_RELAY_START: '{file: binlog.000127, offset: 157}',
      CDC_RELAY_MYSQL_URL: 'mysql://relay:p%40ss%2Fword@db1:3307/app',
      CDC_RELAY_MYSQL_TLS: 'true',
      CDC_RELAY_MYSQL_TLS_VERIFY: 'false',
      CDC_RELAY_KAFKA_BROKERS: 'b1:9092',
      CDC_RELAY_KAFKA_TLS: 'true',
      CDC_RELAY_KAFKA_SASL_MECHANISM: 'oauthbearer',
      CDC_RELAY_KAFKA_SASL_TOKEN_ENDPOINT: 'https://idp.example/token',
      CDC_RELAY_KAFKA_SASL_CLIENT_ID: '007',
      CDC_RELAY_KAFKA_SASL_CLIENT_SECRET: '12345',
      CDC_RELAY_KAFKA_CREATE_TOPICS_PARTITIONS: '3',
      CDC_RELAY_OUTBOXES:
        '[{table: "`my.app`.`out``box`", retire: keep, topic: {fixed: orders}, columns: {createdAt: null}}]',
      LOG_LEVEL: 'WARNING',
    },
  });
  if (!loaded.ok) throw new Error(loaded.report);
  expect(loaded.settings).toMatchObject({
    relay: { name: 'orders', start: { kind: 'position', file: 'binlog.000127', offset: 157 } },
    mysql: { host: 'db1', port: 3307, user: 'relay', password: 'p@ss/word', database: 'app', tls: { verify: false } },
    kafka: {
      tls: { verify: true },
      sasl: { mechanism: 'oauthbearer', clientId: '007', clientSecret: '12345' },
      createTopics: { partitions: 3, replicationFactor: 1 },
    },
    outboxes: [
      {
        schema: 'my.app',
        table: 'out`box',
        retire: 'keep',
        topic: { kind: 'fixed', topic: 'orders' },
        columns: { createdAt: null, publishedAt: 'published_at' },
      },
    ],
  });
  expect(loaded.log).toEqual({ level: 'warn', format: 'auto' });
  expect(loaded.secrets.values().toSorted()).toEqual(['12345', 'p@ss/word']);
});

const password = (loaded: LoadedConfig): string => valueOf(settings(loaded).mysql.password);

test('a secret from a file: by key relative to the configuration, by variable, and over a lower source', () => {
  using dir = new ConfigDir();
  dir.write('password', 'from the file\n');
  const byKey = VALID.replace('password: hunter2hunter2', 'passwordFile: password');
  expect(password(dir.load(byKey))).toBe('from the file');
  expect(password(dir.load(byKey, { CDC_RELAY_MYSQL_PASSWORD: 'from the variable' }))).toBe('from the variable');
  const other = dir.write('other', 'from the other file\r\n');
  expect(password(dir.load(VALID, { CDC_RELAY_MYSQL_PASSWORD_FILE: other }))).toBe('from the other file');
  expect(password(dir.load(byKey, {}, [`mysql.passwordFile=${other}`]))).toBe('from the other file');
  const url = dir.write('url', 'mysql://root@db9/app\n');
  const byUrl = dir.load(byKey, { CDC_RELAY_MYSQL_URL_FILE: url });
  expect(settings(byUrl).mysql.host).toBe('db9');
  expect(valueOf(settings(byUrl).mysql.user)).toBe('root');
  expect(password(byUrl)).toBe('from the file');
  expect(faultLines(dir.load(VALID, { CDC_RELAY_MYSQL_PASSWORD: 'a', CDC_RELAY_MYSQL_PASSWORD_FILE: 'b' }))).toEqual([
    '  mysql.passwordFile  given beside password; expected one of them (CDC_RELAY_MYSQL_PASSWORD_FILE)',
  ]);
  dir.write('empty', '\n');
  expect(faultLines(dir.load(byKey.replace('File: password', 'File: empty')))[0]).toContain('the file is empty');
});

test('a URL gives place key by key; one without a password means none', () => {
  using dir = new ConfigDir();
  const yaml = VALID.replace(/ {2}host[^]*app\n/, '  url: mysql://relay@db1/app\n');
  expect(settings(dir.load(yaml)).mysql).toMatchObject({ host: 'db1', port: 3306, user: 'relay', password: '' });
  expect(settings(dir.load(yaml, { CDC_RELAY_MYSQL_HOST: 'db2' })).mysql).toMatchObject({ host: 'db2', user: 'relay' });
  expect(settings(dir.load(VALID, { CDC_RELAY_MYSQL_URL: 'mysql://[::1]:1/x' })).mysql).toMatchObject({
    host: '::1',
    port: 1,
    database: 'x',
    password: 'hunter2hunter2',
  });
});

test('a higher topic rule replaces the file’s', () => {
  using dir = new ConfigDir();
  const loaded = dir.load(`${VALID}    topic: {fixed: a}\n`, {}, ['outboxes[0].topic.template=o.{event_type}']);
  expect(settings(loaded).outboxes[0].topic).toEqual({ kind: 'template', template: 'o.{event_type}' });
});

test('variables: slips are faults, other programs’ variables are not', () => {
  using dir = new ConfigDir();
  expect(faultLines(dir.load(VALID, { CDC_RELAY_MYSQL_PASWORD: 'hunter2hunter2' }))).toEqual([
    '  unknown variable; did you mean CDC_RELAY_MYSQL_PASSWORD? (CDC_RELAY_MYSQL_PASWORD)',
  ]);
  const links = { CDC_RELAY_MYSQL_PORT: 'tcp://10.0.0.1:3306', CDC_RELAY_MYSQL_PORT_3306_TCP_ADDR: '10.0.0.1' };
  expect(settings(dir.load(VALID, links)).mysql.port).toBe(3306);
});

test.each([
  ['mysql.passwrd=x', 'mysql.passwrd  unknown key; did you mean mysql.password? (--set)'],
  ['mysql.password=hunter2hunter2', 'set CDC_RELAY_MYSQL_PASSWORD or CDC_RELAY_MYSQL_PASSWORD_FILE (--set)'],
  ['relay.flushMs', 'expected key=value'],
  ['=1', 'expected key=value'],
  ['outboxes[3].retire=keep', 'outboxes[3].retire  outboxes has 1 entry (--set)'],
  ['relay.__proto__.x=1', 'unknown key'],
  ['kafka.sasl={a: [}', 'expected YAML or JSON'],
])('--set %s is a fault: %s', (set, expected) => {
  using dir = new ConfigDir();
  const lines = faultLines(dir.load(VALID, {}, [set])).join('\n');
  expect(lines).toContain(expected);
  expect(lines).not.toContain('hunter2');
});

test('the sweep, failures, retention and limits: defaults, and what is written', () => {
  using dir = new ConfigDir();
  const plain = settings(dir.load(VALID));
  expect(plain.sweep).toEqual({ mode: 'tail', intervalMs: 1000, batchRows: 1000 });
  expect(plain.failures).toEqual({
    maxAttempts: 10,
    backOffMs: 1000,
    backOffCapMs: 60_000,
    onExhausted: 'release',
    deadLetterTopic: null,
  });
  expect(plain.relay.laneStallMs).toBe(10_000);
  expect(plain.outboxes[0]).toMatchObject({ validateJson: false, retention: null, limits: null });
  const written = `${VALID.replace('app.outbox', 'other.outbox')}    validateJson: true
    retention: {afterMs: 3600000, archive: old}
    limits: {pendingRows: 5}
`;
  const { outboxes, failures, sweep } = settings(
    dir.load(written, { CDC_RELAY_SWEEP_MODE: 'sweep', CDC_RELAY_FAILURES_DEAD_LETTER_TOPIC: 'dead' }),
  );
  expect(outboxes[0]).toMatchObject({
    validateJson: true,
    retention: { afterMs: 3_600_000, archive: { schema: 'other', table: 'old' } },
    limits: { pendingRows: 5, pendingAgeMs: null, policy: 'none' },
  });
  expect([sweep.mode, failures.deadLetterTopic]).toEqual(['sweep', 'dead']);
});

test('the derived replica id is stable, its own for each name and machine, and never small', () => {
  expect(derivedServerId('orders', 'a')).toBe(derivedServerId('orders', 'a'));
  const ids = ['orders/a', 'orders/b', 'bills/a'].map((text) =>
    derivedServerId(...(text.split('/') as [string, string])),
  );
  expect(new Set(ids).size).toBe(3);
  for (const id of ids) expect(id >= 2 ** 31 && id <= 2 ** 32 - 1 && Number.isInteger(id)).toBe(true);
});

test('what is printed has no secret, and can be used as a configuration', () => {
  using dir = new ConfigDir();
  dir.write('key.pem', '-----BEGIN PRIVATE KEY-----\nhunter2key\n');
  const loaded = dir.load(
    VALID.replace('kafka:', 'kafka:\n  sasl: {mechanism: plain, username: u, password: hunter2sasl}'),
    {},
    ['kafka.tls={keyFile: key.pem, certFile: key.pem}'].map((set) =>
      set.replaceAll('key.pem', `${dir.directory}/key.pem`),
    ),
  );
  if (!loaded.ok) throw new Error(loaded.report);
  expect(JSON.stringify(loaded.redacted)).not.toContain('hunter2');
  expect(loaded.redacted).toMatchObject({
    mysql: { password: '[redacted]', port: 3306 },
    kafka: { sasl: { password: '[redacted]' }, tls: { keyFile: `${dir.directory}/key.pem`, verify: true } },
  });
  expect(loaded.secrets.values().toSorted()).toEqual([
    '-----BEGIN PRIVATE KEY-----\nhunter2key',
    'hunter2hunter2',
    'hunter2sasl',
  ]);
  expect(dir.load(JSON.stringify(loaded.redacted)).ok).toBe(true);
});

test('the example is valid as it is shipped', () => {
  const loaded = loadConfig({ file: EXAMPLE, environment: { CDC_RELAY_MYSQL_PASSWORD: 'x' }, sets: [] });
  if (!loaded.ok) throw new Error(loaded.report);
  const defaults = loadConfig({ file: null, sets: [], environment: { ...MINIMAL, CDC_RELAY_MYSQL_PASSWORD: 'x' } });
  expect(loaded.settings).toEqual(defaults.ok && defaults.settings);
});

test('the example has every key, no other, and the defaults are the real ones', () => {
  const uncommented = readFileSync(EXAMPLE, 'utf8').replaceAll(/^(\s*)#((?: {2})*)(?=\w+:( |$))/gm, '$1$2');
  const all = [...leaves(parse(uncommented), [])];
  const patterns = new Set(
    all.flatMap(({ path }) => path.map((_, length) => keyAt(path.slice(0, length + 1))?.pattern)),
  );
  for (const { path } of all) expect(keyAt(path), path.join('.')).toBeDefined();
  expect(KEYS.filter(({ pattern }) => !patterns.has(pattern) && !/^start\./.test(pattern))).toEqual([]);

  const loaded = loadConfig({ file: null, sets: [], environment: MINIMAL });
  if (!loaded.ok) throw new Error(loaded.report);
  const effective = new Map([...leaves(loaded.redacted, [])].map(({ path, value }) => [path.join('.'), value]));
  const shown = all.filter(({ path }) => effective.has(path.join('.')) && !MACHINES_OWN.has(path.join('.')));
  expect(shown.length).toBeGreaterThan(30);
  for (const { path, value } of shown) {
    expect({ [path.join('.')]: value }).toEqual({ [path.join('.')]: effective.get(path.join('.')) });
  }
});

/** Keys whose example is not the default. */
const MACHINES_OWN = new Set(['mysql.password', 'mysql.serverId']);

const MINIMAL = {
  CDC_RELAY_NAME: 'orders',
  CDC_RELAY_START: 'head',
  CDC_RELAY_MYSQL_URL: 'mysql://cdc_relay@127.0.0.1/app',
  CDC_RELAY_KAFKA_BROKERS: '127.0.0.1:9092',
  CDC_RELAY_OUTBOXES: '[{table: app.outbox}]',
};

function* leaves(value: unknown, path: Path): Generator<{ path: Path; value: unknown }> {
  if (Array.isArray(value) && value.some((item) => typeof item === 'object')) {
    for (const [index, item] of value.entries()) yield* leaves(item, [...path, index]);
  } else if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const [name, below] of Object.entries(value)) yield* leaves(below, [...path, name]);
  } else yield { path, value };
}

test('whatever a configuration is changed to, the outcome is settings or faults, and no secret in them', () => {
  using dir = new ConfigDir();
  const base = parse(`${VALID}relay: {flushMs: 5}\nlog: {level: info}\n`) as Record<string, unknown>;
  const paths = [
    [],
    ...[...leaves(base, [])].flatMap(({ path }) => path.map((_, length) => path.slice(0, length + 1))),
  ];
  const anything = fc.oneof(
    fc.constantFrom<unknown>(null, true, -1, 1.5, 2 ** 60, NaN, '', 'x', '::', [], {}, [[]], { a: { b: 1 } }, [null]),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const names = fc.constantFrom(
    '__proto__',
    'constructor',
    'tls',
    'sasl',
    'url',
    'passwordFile',
    'topic',
    'x y',
    'tabel',
  );
  fc.assert(
    fc.property(fc.constantFrom(...paths), anything, fc.option(names), (path, value, name) => {
      const tree = structuredClone(base);
      const at = name === null ? path : [...path.slice(0, -1), name];
      const loaded = dir.load(JSON.stringify(replaced(tree, at, value)));
      if (loaded.ok) expect(loaded.settings.relay.name).toBeTruthy();
      else {
        expect(loaded.faults.length).toBeGreaterThan(0);
        expect(loaded.report).toMatch(/^config: \d+ faults? in /);
        expect(loaded.report).not.toContain('hunter2');
      }
    }),
    { numRuns: 300 },
  );
});

function replaced(tree: unknown, path: Path, value: unknown): unknown {
  if (path.length === 0) return value;
  const [first, ...rest] = path;
  if (Array.isArray(tree))
    return tree.map((item, index) => (index === first ? replaced(item, rest, value) : (item as unknown)));
  const before =
    typeof tree === 'object' && tree !== null && Object.hasOwn(tree, first)
      ? (Reflect.get(tree, first) as unknown)
      : undefined;
  const entries = Object.entries(tree ?? {}).filter(([name]) => name !== first);
  return Object.fromEntries([...entries, [String(first), replaced(before, rest, value)]]);
}
