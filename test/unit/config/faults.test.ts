import { expect, test } from 'vitest';
import { ConfigDir, faultLines, VALID } from './config-dir.ts';

test('every fault is told at once, with path, what was found, what is expected, and the line', () => {
  using dir = new ConfigDir();
  const loaded = dir.load(
    `
name: orders
mysql:
  host: db1
  user: relay
  pasword: hunter2hunter2
  port: 70000
  database: app
  heartbeatMs: 2s
kafka:
  tls: { caFle: x }
  batchBytes: 99999999
outboxes:
  - table: app.outbox
    retire: remove
  - table: app.outbox
flushMs: 50
`,
    { CDC_RELAY_FLUSH_ROWS: 'many' },
    ['relay.shutdownMs=1'],
  );
  if (loaded.ok) throw new Error('no fault');
  expect(loaded.report).toBe(
    [
      `config: 11 faults in ${dir.file}`,
      '  mysql.pasword          unknown key; did you mean mysql.password? (line 6)',
      '  mysql.port             found 70000; expected a port from 1 to 65,535 (line 7)',
      '  mysql.heartbeatMs      found a text; expected milliseconds, a whole number from 100 to 600,000 (line 9)',
      '  kafka.brokers          missing; expected a list such as ["broker1:9092"] (line 10)',
      '  kafka.tls.caFle        unknown key; did you mean kafka.tls.caFile? (line 11)',
      '  kafka.batchBytes       99,999,999 bytes is more than relay.maxInFlightBytes, 33,554,432 bytes (line 12)',
      '  outboxes[0].retire     "remove" is not one of mark, delete, keep; did you mean delete? (line 15)',
      '  outboxes[1].table      the same table as outboxes[0] (line 16)',
      '  flushMs                unknown key; did you mean relay.flushMs? (line 17)',
      '  relay.flushRows        found a text; expected rows, a whole number from 1 to 1,000,000 (CDC_RELAY_FLUSH_ROWS)',
      '  relay.shutdownMs       found 1; expected milliseconds, a whole number from 100 to 3,600,000 (--set)',
    ]
      .join('\n')
      .replaceAll(/^( {2}\S+) +/gm, (_, name: string) => `  ${name.trim().padEnd(18)}  `),
  );
});

test.each([
  [
    'an empty file',
    '',
    ['name', 'mysql.host', 'mysql.user', 'mysql.password', 'mysql.database', 'kafka.brokers', 'outboxes'],
  ],
  ['sections without keys', 'name: a\nmysql:\nkafka:\noutboxes:\n', ['mysql.host', 'kafka.brokers', 'outboxes']],
])('%s: everything that is missing is named', (_, yaml, names) => {
  using dir = new ConfigDir();
  const lines = faultLines(dir.load(yaml));
  for (const name of names)
    expect(lines.some((line) => line.startsWith(`  ${name} `) && line.includes('missing'))).toBe(true);
});

test.each([
  ['a: b: c', 'line 1'],
  ['name: [orders', 'line 1'],
  ['name: a\n\tmysql: x', 'a tab in the indentation'],
  ['name: a\nname: b', 'the same key twice in one map (line 2)'],
  ['mysql:\n  password: *hunter2hunter2', 'a text that begins with "*" stands in quotes (line 2)'],
  ['mysql:\n  password: !hunter2hunter2 x', 'a tag that is not known here'],
  ['mysql:\n  password: @hunter2hunter2', 'stands in quotes (line 2)'],
  ['mysql:\n  password: hunter2hunter2: x', 'line 2'],
  ['- hunter2hunter2', 'expected a map with name'],
  ['a: &a [*a]', 'alias'],
])('%j is no YAML for us, and the text is not quoted', (yaml, message) => {
  using dir = new ConfigDir();
  const loaded = dir.load(yaml);
  if (loaded.ok) throw new Error('no fault');
  expect(loaded.report).toContain(message);
  expect(loaded.report).toMatch(/^config: \d+ faults? in .*relay.yaml\n/);
  expect(loaded.report).not.toContain('hunter2');
});

test.each<[string, string, string]>([
  ['name: orders', 'name: "or ders"', 'name: found a text; expected a name of up to 64 letters'],
  ['name: orders', 'name: orders\nstart: tail', 'start: "tail" is not one of head, pending'],
  ['name: orders', 'name: orders\nstart: {file: binlog.000001}', 'start.offset: missing; expected a byte offset'],
  ['name: orders', 'name: orders\nstart: {file: log, offset: 4}', 'start.file: found a text; expected a binlog file'],
  ['name: orders', 'name: orders\nstart: 12', 'start: found 12; expected head, pending, or a position'],
  ['password: hunter2hunter2', 'password: 12345678', 'mysql.password: found a number; expected text in quotes'],
  [
    'password: hunter2hunter2',
    'passwordFile: /nowhere/x',
    'mysql.passwordFile: the file cannot be read: it does not exist',
  ],
  ['password: hunter2hunter2', 'password: a\n  passwordFile: b', 'mysql.passwordFile: given beside password'],
  ['host: db1', 'url: mysql://u@db/app\n  host: db1', 'mysql.host: given twice: it is also part of url'],
  ['host: db1', 'url: "mysql://relay:hunter2hunter2@@@"', 'mysql.url: found a text that is no URL'],
  ['host: db1', 'url: "postgres://h"', 'mysql.url: found a URL of another kind'],
  ['host: db1', 'url: "mysql://%zz@h"', 'mysql.url: found a "%" that encodes nothing'],
  ['host: db1', 'url: "mysql://h/?ssl=1"', 'mysql.url: parameters in the URL are not read'],
  ['user: relay', 'username: relay', 'mysql.username: unknown key; did you mean mysql.user?'],
  ['user: relay', 'user: relay\n  serverId: 0', 'mysql.serverId: found 0; expected a replica id'],
  ['user: relay', 'user: relay\n  serverId: 4294967296', 'mysql.serverId: found 4294967296'],
  ['user: relay', 'user: relay\n  queryTimeoutMs: 500', 'mysql.queryTimeoutMs: found 500; expected 2,000 or more'],
  ['user: relay', 'user: relay\n  tls: on', 'mysql.tls: found a text; expected true, false, or a map'],
  [
    'user: relay',
    'user: relay\n  tls: {servername: x}',
    'mysql.tls.servername: unknown key; did you mean mysql.tls.serverName?',
  ],
  ['user: relay', 'user: relay\n  tls: {ca: /etc/ca.pem}', 'mysql.tls.ca: found a text; expected PEM text'],
  [
    'user: relay',
    'user: relay\n  tls: {cert: "-----BEGIN CERTIFICATE-----"}',
    'mysql.tls.key: missing; cert needs its key',
  ],
  ['database: app', 'database: "a\\0b"', 'mysql.database: not a name that MySQL can have: it has a NUL character'],
  ['"broker1:9092"', '"broker1"', 'kafka.brokers[0]: found a text; expected "host:port"'],
  ['"broker1:9092"', '"broker1:99999"', 'kafka.brokers[0]: a port over 65,535'],
  ['["broker1:9092"]', '"broker1:9092"', 'kafka.brokers: found a text; expected a list'],
  ['kafka:', 'kafka:\n  sasl: {username: x}', 'kafka.sasl.mechanism: missing'],
  ['kafka:', 'kafka:\n  sasl: {mechanism: gssapi}', 'kafka.sasl.mechanism: "gssapi" is not one of'],
  ['kafka:', 'kafka:\n  sasl: {mechanism: plain, username: x}', 'kafka.sasl.password: missing; plain needs it'],
  ['kafka:', 'kafka:\n  sasl: {mechanism: oauthbearer}', 'kafka.sasl.tokenEndpoint: missing; oauthbearer needs it'],
  ['kafka:', 'kafka:\n  compression: lz4', 'kafka.compression: "lz4" is not one of none, gzip, zstd'],
  ['table: app.outbox', 'table: a.b.c', 'outboxes[0].table: found a text that names no table'],
  ['table: app.outbox', 'table: cdc_relay_offsets', "outboxes[0].table: cdc_relay_% are the relay's own tables"],
  ['table: app.outbox', 'table: outbox\n  - table: app.outbox', 'outboxes[1].table: the same table as outboxes[0]'],
  [
    'table: app.outbox',
    'table: app.o\n    columns: {status: null}',
    'outboxes[0].columns.status: found null; retire: mark needs',
  ],
  [
    'table: app.outbox',
    'table: app.o\n    columns: {id: null}',
    'outboxes[0].columns.id: found null; expected a column name',
  ],
  ['table: app.outbox', 'table: app.o\n    topic: {fixed: a, column: b}', 'outboxes[0].topic: found column and fixed'],
  ['table: app.outbox', 'table: app.o\n    topic: {fixed: "a b"}', 'outboxes[0].topic.fixed: not a topic name'],
  ['table: app.outbox', 'table: app.o\n    topic: {template: "o.{"}', 'outboxes[0].topic.template: a "{" or "}"'],
  ['table: app.outbox', 'table: app.o\n    topic: {template: "o"}', 'outboxes[0].topic.template: no {column} in it'],
  [
    'table: app.outbox',
    'table: app.o\n    topic: {template: "{event_typ}"}',
    'no column event_typ; did you mean event_type?',
  ],
  [
    'table: app.outbox',
    'table: app.o\n    topic: {template: "{eventType}"}',
    'eventType is a key; its column is event_type',
  ],
  ['outboxes:', 'relay: {takeOverMs: 2000}\noutboxes:', 'relay.takeOverMs: found 2000; expected more than 2,000'],
  ['outboxes:', 'relay: {flushMs: 5000}\noutboxes:', 'relay.flushMs: found 5000; expected at most a third'],
  [
    'outboxes:',
    'relay: {flushMs: 200, shutdownMs: 150}\noutboxes:',
    'relay.shutdownMs: found 150; expected relay.flushMs',
  ],
  [
    'outboxes:',
    'start: pending\noutboxes:\n  - {table: x, retire: keep}',
    'start: pending does not go with retire: keep',
  ],
  [
    'outboxes:',
    'sweep: {mode: sweep}\noutboxes:\n  - {table: x, retire: keep}',
    'sweep.mode: sweep does not go with retire: keep (outboxes[0])',
  ],
  ['outboxes:', 'sweep: {mode: polling}\noutboxes:', 'sweep.mode: "polling" is not one of tail, sweep'],
  ['outboxes:', 'sweep: {batchRows: 0}\noutboxes:', 'sweep.batchRows: found 0; expected rows'],
  [
    'outboxes:',
    'failures: {backOffCapMs: 999}\noutboxes:',
    'failures.backOffCapMs: found 999; expected failures.backOffMs, 1000, or more',
  ],
  ['outboxes:', 'failures: {deadLetterTopic: "a b"}\noutboxes:', 'failures.deadLetterTopic: not a topic name'],
  [
    'outboxes:',
    'failures: {deadLetterTopic: a}\noutboxes:\n  - {table: x, topic: {fixed: a}}',
    'failures.deadLetterTopic: the topic of outboxes[0]',
  ],
  [
    'outboxes:',
    'failures: {onExhausted: halt}\noutboxes:',
    'failures.onExhausted: "halt" is not one of release, block',
  ],
  [
    'table: app.outbox',
    'table: app.o\n    retire: delete\n    retention: {afterMs: 1000}',
    'outboxes[0].retention: found retire: delete; only rows that are marked as published can age',
  ],
  ['table: app.outbox', 'table: app.o\n    retention: {}', 'outboxes[0].retention.afterMs: missing; expected milli'],
  [
    'table: app.outbox',
    'table: app.o\n    retention: {afterMs: 1000, archive: o}',
    'outboxes[0].retention.archive: the table of outboxes[0]',
  ],
  [
    'table: app.outbox',
    'table: other.o\n    retention: {afterMs: 1000, archive: o}',
    'outboxes[0].retention.archive: the table of outboxes[0]',
  ],
  [
    'table: app.outbox',
    'table: app.o\n    retention: {afterMs: 1000, archive: a.b.c}',
    'outboxes[0].retention.archive: found a text that names no table',
  ],
  [
    'table: app.outbox',
    'table: app.o\n    retention: {afterMs: 1000, archive: app.cdc_relay_offsets}',
    "outboxes[0].retention.archive: cdc_relay_% are the relay's own tables",
  ],
  [
    'table: app.outbox',
    'table: app.o\n    retire: keep\n    limits: {pendingRows: 1}',
    'outboxes[0].limits: found retire: keep; nothing tells which rows are pending',
  ],
  [
    'table: app.outbox',
    'table: app.o\n    limits: {policy: refuse}',
    'outboxes[0].limits: expected pendingRows, pendingAgeMs or both',
  ],
])('%j written as %j: %s', (right, wrong, expected) => {
  using dir = new ConfigDir();
  expect(VALID).toContain(right);
  const lines = faultLines(dir.load(VALID.replace(right, wrong)));
  expect(lines.map((line) => line.trim().replace(/^([\w.[\]]+) +/, '$1: ')).join('\n')).toContain(expected);
  expect(lines.join('\n')).not.toContain('hunter2');
});

test('a column beyond those that the relay reads may be part of a topic', () => {
  using dir = new ConfigDir();
  expect(dir.load(VALID.replace('app.outbox', 'app.outbox\n    topic: {template: "{tenant}.orders"}')).ok).toBe(true);
});

test('a file that is not there is the only fault', () => {
  using dir = new ConfigDir();
  dir.load(VALID);
  const missing = `${dir.file}.not`;
  expect(faultLines(dir.loadFile(missing))).toEqual(['  the file cannot be read: ENOENT']);
});
