import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Authority, makeAuthority } from '../../stack/certificates.ts';
import type { DatabaseServer } from '../../stack/handles.ts';
import { insertRows } from '../../stack/outbox-rows.ts';
import { RelayBed } from '../../stack/relay-bed.ts';
import { startMysql } from '../../stack/stack.ts';
import { removeDirectory, temporaryDirectory } from '../../stack/ward.ts';

const USER = { user: 'relay', password: 'relay password' };
let directory: string;
let authority: Authority;
let mysql: DatabaseServer;
let bed: RelayBed;
beforeAll(async () => {
  directory = await temporaryDirectory();
  authority = await makeAuthority();
  mysql = await startMysql({ certificate: await authority.issue() });
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
    const relay = await bed.start({ mysql: { ...USER, host: 'localhost', tls } });
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
  ])('%s: refused before anything is read, and told which', async (_, tls) => {
    const relay = await bed.launch({ mysql: { ...USER, host: 'localhost', tls: await tls() } });
    expect((await relay.exited).code).toBeGreaterThan(0);
    expect(relay.stderr()).toContain('MYSQL_ACCESS_DENIED');
    expect(relay.stderr()).not.toContain(USER.password);
    expect(relay.lines().some(({ event, to }) => event === 'relay-state' && to !== 'halted')).toBe(false);
  });
});
