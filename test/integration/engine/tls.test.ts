import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DumpConnection } from '../../../src/binlog/dump-connection.ts';
import { check } from '../../../src/check/check.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
import { systemClock } from '../../../src/model/clock.ts';
import type { Log } from '../../../src/model/log.ts';
import type { Settings } from '../../../src/model/settings.ts';
import { lead } from '../../../src/store/leadership.ts';
import { createProgressReader } from '../../../src/store/progress-reader.ts';
import { Session } from '../../../src/store/session.ts';
import { type Authority, makeAuthority } from '../../stack/certificates.ts';
import type { DatabaseServer } from '../../stack/handles.ts';
import { logHead } from '../../stack/log-head.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { startMysql } from '../../stack/stack.ts';
import { removeDirectory, temporaryDirectory } from '../../stack/ward.ts';

/** Not `localhost`: that name leads there, and is not the server's. */
const NAMES = ['127.0.0.1', '::1', 'mysql.internal'];
const USER = { user: 'relay', password: 'relay password' };
let directory: string;
let authority: Authority;
let mysql: DatabaseServer;
let bed: RelayBed;
beforeAll(async () => {
  directory = await temporaryDirectory();
  authority = await makeAuthority();
  mysql = await startMysql({ certificate: await authority.issue({ names: NAMES }), flags: ['--bind-address=*'] });
  bed = await RelayBed.open({ mysql });
  await bed.sql(`CREATE USER ${USER.user}@'%' IDENTIFIED WITH caching_sha2_password BY '${USER.password}'`);
  await bed.sql(`GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO ${USER.user}@'%'`);
  await bed.sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${bed.servers.database}.* TO ${USER.user}@'%'`);
  await bed.sql('SET GLOBAL require_secure_transport = ON');
});
afterAll(async () => {
  await bed[Symbol.asyncDispose]();
  await mysql.dispose();
  await removeDirectory(directory);
});

describe('I5 a server that asks for TLS, has a certificate of an authority of its own and forgets passwords', () => {
  const tlsBy = async (name: string, { ca }: Authority): Promise<object> => {
    const caFile = join(directory, `${name}.pem`);
    await writeFile(caFile, ca);
    return { caFile };
  };

  test('every connection of the relay finds port, authority and password', async () => {
    expect(mysql.port).not.toBe(3306);
    await bed.sql('FLUSH PRIVILEGES'); // the cache of the passwords is cold
    const tls = await tlsBy('ours', authority);
    const relay = await bed.start({ mysql: { ...USER, tls } });
    await insertRows(bed.servers.pool, { topic: bed.topics[0], count: 50 });
    await bed.retired();
    const connections = await bed.sql(
      `SELECT p.command, s.variable_value AS cipher FROM performance_schema.threads AS t
       JOIN performance_schema.processlist AS p ON p.id = t.processlist_id
       JOIN performance_schema.status_by_thread AS s ON s.thread_id = t.thread_id AND s.variable_name = 'Ssl_cipher'
       WHERE t.processlist_user = ?`,
      [USER.user],
    );
    expect(connections.map(({ command }) => String(command))).toContain('Binlog Dump');
    expect(connections.length).toBeGreaterThan(2);
    expect(connections.filter(({ cipher }) => cipher === '')).toEqual([]);
    expect((await relay.kill('SIGTERM')).code).toBe(0);
    expect(await bed.expectDelivered()).toMatchObject({ committed: 50, lost: 0 });
  });

  test.each<[string, () => Promise<object | false>]>([
    ['another authority', async () => tlsBy('theirs', await makeAuthority())],
    ['no TLS', () => Promise.resolve(false)],
    ['another host name', async () => ({ ...(await tlsBy('ours', authority)), serverName: 'mysql.example' })],
  ])('%s: refused before anything is read, and told which', async (_, tls) => {
    const relay = await bed.launch({ mysql: { ...USER, tls: await tls() } });
    expect((await relay.exited).code).toBeGreaterThan(0);
    expect(relay.stderr()).toContain('MYSQL_ACCESS_DENIED');
    expect(relay.stderr()).not.toContain(USER.password);
    expect(relay.lines().some(({ event, to }) => event === 'relay-state' && to !== 'halted')).toBe(false);
  });
});

describe('I5 each kind of connection checks the certificate', () => {
  const settings = (mysql: object, tls: object = {}): Settings => {
    const over = { ...USER, ...mysql, tls: { ca: authority.ca, ...tls } };
    return settingsOf(complete(configSchema.parse(bed.config({ mysql: over }))));
  };
  const log: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
    child: () => log,
  };
  const signal = new AbortController().signal;

  const KINDS: Readonly<Record<string, (settings: Settings) => Promise<unknown>>> = {
    'statements: store, sweep, jobs, status': async ({ mysql }) => (await Session.open(mysql, log)).destroy(),
    'the lock of the leader': async ({ mysql, relay }) =>
      (await lead(mysql, { ...relay, name: 'tls' }, systemClock, log, signal, () => undefined)).release(),
    'the dump of the binlog': async ({ mysql, outboxes }) => {
      const from = await logHead((sql) => bed.sql(sql));
      const { dump } = await DumpConnection.open({
        mysql,
        outboxes,
        from,
        question: null,
        serverUuid: null,
        signal,
        log,
      });
      dump.close();
    },
    'the reader of progress': async (all) => {
      const reader = createProgressReader(all, systemClock, log);
      await reader.read({ outboxes: true, surroundings: false }).finally(() => reader.close());
    },
    'check, its canary among it': async (all) => {
      const { findings } = await check(all, log);
      const wrong = findings.filter(({ area, severity }) => area !== 'kafka' && severity === 'error');
      if (wrong.length > 0) throw new Error(wrong.map(({ fact }) => fact).join('\n'));
      expect(findings.filter(({ check: name }) => name === 'canary').map(({ severity }) => severity)).toEqual(['good']);
    },
  };

  const GOOD: readonly [string, object, object?][] = [
    ['an IPv4 address of the certificate', { host: '127.0.0.1' }],
    ['an IPv6 address of the certificate', { host: '::1' }],
    ['a name that is given in its place', { host: 'localhost' }, { serverName: 'mysql.internal' }],
    ['an address that is given in its place', { host: 'localhost' }, { serverName: '127.0.0.1' }],
  ];
  const BAD: readonly [string, object, object?][] = [
    ['a DNS name that is not in it', { host: 'localhost' }],
    ['an address that is not in it', { host: '127.0.0.2' }],
    ['another name given', { host: '127.0.0.1' }, { serverName: 'mysql.example' }],
    ['another address given', { host: '127.0.0.1' }, { serverName: '127.0.0.9' }],
  ];

  test.each(GOOD)('%s: taken by all', async (_, mysql, tls) => {
    for (const connect of Object.values(KINDS)) await connect(settings(mysql, tls));
  });

  test.each(BAD)('%s: refused by all', async (_, mysql, tls) => {
    for (const [kind, connect] of Object.entries(KINDS)) {
      const refused = connect(settings(mysql, tls));
      await expect(refused, kind).rejects.toThrow(/MYSQL_ACCESS_DENIED[^]*altnames|altnames[^]*MYSQL_ACCESS_DENIED/);
    }
  });

  test('another authority, and text that is none: refused by all', async () => {
    const stranger = await makeAuthority();
    for (const [kind, connect] of Object.entries(KINDS)) {
      await expect(connect(settings({}, { ca: stranger.ca })), kind).rejects.toThrow(/MYSQL_ACCESS_DENIED/);
      const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
      await expect(connect(settings({}, { ca: broken })), kind).rejects.toThrow(/MYSQL_ACCESS_DENIED/);
    }
  });
});
