import { randomInt } from 'node:crypto';
import mysql2 from 'mysql2';
import { expect, inject, test } from 'vitest';
import { makeAuthority } from '../../stack/certificates.ts';
import { startMysql } from '../../stack/stack.ts';
import { until } from '../../stack/until.ts';
import { CheckBed, told } from './check-bed.ts';

const open = () => CheckBed.open({ mysql: inject('mysql'), brokers: inject('brokers') });

test('I6 a user with REPLICATION SLAVE alone: each right that is missing is named with its GRANT', async () => {
  await using bed = await open();
  const login = await bed.user('REPLICATION SLAVE ON *.*');
  const report = await bed.check({ mysql: login });
  const table = (name: string) => `${bed.database}.${name}`;
  const who = `${login.user}@%`;
  expect(told(report, ['table-rights', 'server-rights', 'outbox-table'])).toEqual([
    `error table-rights: ${who} lacks SELECT, INSERT, UPDATE on ${table('cdc_relay_offsets')}`,
    `error table-rights: ${who} lacks SELECT, INSERT, UPDATE, DELETE on ${table('cdc_relay_parked')}`,
    `error table-rights: ${who} lacks SELECT, INSERT, UPDATE on ${table('cdc_relay_jobs')}`,
    `error table-rights: ${who} lacks SELECT on ${table('outbox')}`,
    `error table-rights: ${who} lacks UPDATE on ${table('outbox')}`,
    `error server-rights: ${who} lacks REPLICATION CLIENT`,
    `warning table-rights: ${who} lacks SELECT, INSERT, UPDATE, DELETE on ${table('cdc_relay_limits')}`,
    `warning table-rights: ${who} lacks SELECT, INSERT, DELETE on ${table('cdc_relay_canary')}`,
    `warning table-rights: ${who} lacks SELECT on ${table('cdc_relay_migrations')}`,
    `warning table-rights: ${who} lacks INSERT on ${table('cdc_relay_actions')}`,
    `warning table-rights: ${who} lacks DELETE on ${table('outbox')}`,
    `warning server-rights: ${who} lacks SESSION_VARIABLES_ADMIN`,
    `warning server-rights: ${who} lacks PROCESS`,
    `unknown outbox-table: engine, columns and indexes of ${table('outbox')} could not be looked at: that needs SELECT on it`,
  ]);
  // What could not be looked at for want of these rights is said, each with its GRANT.
  const skipped = report.findings.filter(({ severity }) => severity === 'unknown');
  expect(skipped.map(({ check, fix }) => [check, /^GRANT ([A-Z ]+) ON/.exec(fix ?? '')?.[1] ?? null])).toEqual([
    ['long-transactions', 'PROCESS'],
    ['binlog-filters', 'REPLICATION CLIENT'],
    ['replica', 'REPLICATION CLIENT'],
    ['session-settings', 'SELECT'],
    ['canary', null],
    ['relay-tables', null],
    ['outbox-table', null],
    ['waiting-rows', null],
  ]);
  // A table that may not be seen is not one that is missing.
  expect(report.findings.filter(({ fact }) => /no table|missing in/.test(fact))).toEqual([]);
});

test('S32 every GRANT that is given helps: nothing is missing behind them, and the canary flies', async () => {
  await using bed = await open();
  const login = await bed.user();
  const first = await bed.check({ mysql: login });
  expect(first.counts.errors).toBeGreaterThan(5);
  const fixes = first.findings.filter(({ area, severity }) => area === 'rights' && severity !== 'good');
  const dump = fixes.find(({ fact }) => fact.endsWith('lacks REPLICATION SLAVE'))!;
  for (const { fix } of fixes) {
    expect(fix).toMatch(/^GRANT /);
    if (fix !== dump.fix) await bed.sql(fix!);
  }
  // Without the one right the canary is written, and nobody may read it.
  const blind = await bed.check({ mysql: login });
  expect(told(blind, ['server-rights', 'server-id', 'canary'])).toEqual([
    expect.stringMatching(/^error canary: the binlog cannot be read: .* \(BINLOG_NOT_PERMITTED\)$/),
    `error server-rights: ${login.user}@% lacks REPLICATION SLAVE`,
    expect.stringMatching(/^unknown server-id: whether a replica has id \d+ too .*: that needs REPLICATION SLAVE$/),
  ]);
  for (const { fix } of blind.findings.filter(({ severity }) => severity === 'error')) expect(fix).toBe(dump.fix);
  for (const { fix } of [dump, ...blind.findings.filter(({ check }) => check === 'session-settings')])
    await bed.sql(fix!);
  const second = await bed.check({ mysql: login });
  expect(told(second).filter((line) => !/sync-binlog|flush-log|warning session-settings/.test(line))).toEqual([]);
  expect(second.canary?.afterMs).toBeLessThan(60_000);
});

test('rights by columns, by a role, and by a role that is not active', async () => {
  await using bed = await open();
  const outbox = `\`${bed.database}\`.outbox`;
  const login = await bed.user(`SELECT ON ${outbox}`, `UPDATE (status, claimed_at, claimed_by, attempts) ON ${outbox}`);
  const role = `${login.user}_r`;
  await bed.sql(`CREATE ROLE ${role}`);
  try {
    await bed.sql(`GRANT DELETE ON ${outbox} TO ${role}; GRANT PROCESS, REPLICATION SLAVE ON *.* TO ${role}`);
    await bed.sql(`GRANT ${role} TO ${login.user}`);
    const lacking = async () => {
      const report = await bed.check({ mysql: login });
      return [...told(report, ['table-rights', 'server-rights', 'idle-roles'])]
        .filter((line) => !line.includes('cdc_relay_') && !/CLIENT|SESSION/.test(line))
        .map((line) => line.replaceAll(login.user, 'u').replaceAll(bed.database, 'db'));
    };
    expect(await lacking()).toEqual([
      'error table-rights: u@% lacks UPDATE on db.outbox', // last_error, published_at
      'error server-rights: u@% lacks REPLICATION SLAVE',
      'warning table-rights: u@% lacks DELETE on db.outbox',
      'warning server-rights: u@% lacks PROCESS',
      "warning idle-roles: u@% has roles that are not active: 'u_r'@'%'",
    ]);
    await bed.sql(`GRANT UPDATE (last_error, published_at) ON ${outbox} TO ${login.user}`);
    await bed.sql(`SET DEFAULT ROLE ${role} TO ${login.user}`);
    expect(await lacking()).toEqual([]);
  } finally {
    await bed.sql(`DROP ROLE ${role}`);
  }
});

test('I5 a login that is refused, connections that are open to all, a certificate that nobody knows, a server that is not there', async () => {
  await using bed = await open();
  const said = async (mysql: object) => {
    const report = await bed.check({ mysql });
    expect(report.server).toBeNull();
    return told(report, ['mysql-connection']);
  };
  const refused = expect.stringMatching(
    /^error mysql-connection: MySQL cannot be used at .* \(MYSQL_ACCESS_DENIED\)$/,
  ) as string;
  expect(await said({ user: 'nobody', password: 'wrong' })).toEqual([refused]);
  const login = await bed.user();
  for (const state of ['ACCOUNT LOCK', 'ACCOUNT UNLOCK PASSWORD EXPIRE']) {
    await bed.sql(`ALTER USER ${login.user} ${state}`);
    expect(await said(login)).toEqual([refused]);
  }
  // It has connected once: that may pass.
  const limited = await bed.user();
  await bed.sql(`ALTER USER ${limited.user} WITH MAX_CONNECTIONS_PER_HOUR 1`);
  (await bed.connect(limited)).destroy();
  expect(await said(limited)).toEqual([expect.stringMatching(/ER_USER_LIMIT_REACHED \(MYSQL_UNREACHABLE\)$/)]);
  expect(await said({ tls: true })).toEqual([refused]);
  const unchecked = await bed.check({ mysql: { tls: { verify: false } } });
  expect(told(unchecked, ['mysql-connection'])).toEqual([
    'warning mysql-connection: the certificate of MySQL is not checked (mysql.tls.verify is false)',
  ]);
  // The same servers by a name that is not this machine's own; HTTP for everybody.
  const elsewhere = (address: string) => address.replace('127.0.0.1', '0.0.0.0');
  const exposed = await bed.check({
    mysql: { host: elsewhere(inject('mysql').host) },
    kafka: { brokers: inject('brokers').map(elsewhere) },
    http: { host: '0.0.0.0' },
  });
  expect(told(exposed, ['mysql-connection', 'kafka-connection', 'http-host'])).toEqual([
    'warning mysql-connection: connections to MySQL are not encrypted (mysql.tls is off)',
    'warning kafka-connection: connections to Kafka are not encrypted (kafka.tls is off, no SASL)',
    'warning http-host: HTTP is served on 0.0.0.0:9465 to everybody who can reach it: http.token is not set',
  ]);
  expect(await said({ port: 1 })).toEqual([expect.stringMatching(/ECONNREFUSED \(MYSQL_UNREACHABLE\)$/)]);
});

test('a replica that is registered with the id of the relay', async () => {
  await using bed = await open();
  const serverId = randomInt(1_000_000, 2 ** 31);
  const { host, port, user, password } = inject('mysql');
  const replica = mysql2.createConnection({ host, port, user, password });
  try {
    // What a replica says before it asks for the log; the driver's types do not know it.
    const wire = replica as unknown as { _registerSlave(options: object, done: () => void): void };
    const names = { slaveHostname: '', slaveUser: '', slavePassword: '', slavePort: 0 };
    await new Promise<void>((done) =>
      wire._registerSlave({ serverId, ...names, masterId: 0, replicationRank: 0 }, done),
    );
    const isRegistered = async () =>
      (await bed.sql('SHOW REPLICAS')).some((row) => Number(row['Server_Id']) === serverId);
    await until(isRegistered, { withinMs: 20_000, what: 'the replica is registered' });
    expect(told(await bed.check({ mysql: { serverId } }), ['server-id'])).toEqual([
      `error server-id: mysql.serverId ${serverId} is also the id of a replica`,
    ]);
  } finally {
    replica.on('error', () => undefined);
    replica.destroy();
  }
});

test('I5 where TLS is required, with a cold cache of passwords: the dump has it too, and a wrong authority is refused', async () => {
  const [authority, other] = [await makeAuthority(), await makeAuthority()];
  await using server = await startMysql({ certificate: await authority.issue() });
  await using bed = await CheckBed.open({ mysql: server, brokers: inject('brokers') });
  const login = await bed.user('ALL ON *.*');
  await bed.sql('SET GLOBAL require_secure_transport = ON');
  await bed.sql('FLUSH PRIVILEGES');
  const good = await bed.check({ mysql: { ...login, tls: { ca: authority.ca } } });
  expect(told(good, ['mysql-connection', 'canary'])).toEqual([]);
  expect(good.canary?.afterMs).toBeGreaterThan(0);
  const unknown = await bed.check({ mysql: { ...login, tls: { ca: other.ca } } });
  expect(told(unknown, ['mysql-connection'])).toEqual([expect.stringMatching(/\(MYSQL_ACCESS_DENIED\)$/)]);
  const open = await bed.check({ mysql: login });
  expect(told(open, ['mysql-connection'])).toEqual([expect.stringMatching(/\(MYSQL_ACCESS_DENIED\)$/)]);
});
