import { Socket } from 'node:net';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { expect, inject, test } from 'vitest';
import { makeAuthority } from '../../stack/certificates.ts';
import type { DatabaseServer } from '../../stack/handles.ts';
import { isTenth } from '../../stack/full.ts';
import { kafkaClient } from '../../stack/kafka-client.ts';
import { promote } from '../../stack/replica.ts';
import { startKafka, startMariadb, startMysql } from '../../stack/stack.ts';
import { testBed } from '../../stack/test-bed.ts';
import { topicNames, topicOffsets } from '../../stack/patient-admin.ts';
import { eventually } from '../../stack/until.ts';

type Place = Pick<DatabaseServer, 'host' | 'port' | 'user' | 'password'>;

async function variables(place: Place, names: readonly string[]): Promise<Record<string, unknown>> {
  const list = names.map((name) => `@@GLOBAL.${name} AS ${name}`).join(', ');
  const [row] = await query(place, `SELECT ${list}`);
  return { ...row };
}

async function query({ host, port, user, password }: Place, sql: string): Promise<RowDataPacket[]> {
  const connection = await createConnection({ host, port, user, password, connectTimeout: 2000 });
  try {
    const [rows] = await connection.query<RowDataPacket[]>({ sql, timeout: 30_000 });
    return rows;
  } finally {
    connection.destroy();
  }
}

test('the shared MySQL writes row events with full metadata and GTIDs', async () => {
  const settings = {
    gtid_mode: 'ON',
    log_bin: 1,
    binlog_format: 'ROW',
    binlog_row_image: 'FULL',
    binlog_row_metadata: 'FULL',
  };
  expect(await variables(inject('mysql'), Object.keys(settings))).toEqual(settings);
});

test('two test beds do not meet', async () => {
  await using a = await testBed();
  await using b = await testBed();
  expect(a.database).not.toBe(b.database);
  expect(a.serverId).not.toBe(b.serverId);
  await a.pool.query('CREATE TABLE only_here (id INT)');
  await expect(b.pool.query('SELECT * FROM only_here')).rejects.toMatchObject({ errno: 1146 });
  await a.createTopics({ orders: 3 });
  const admin = a.kafka.admin();
  await admin.connect();
  const topics = await topicNames(admin);
  const partitions = await topicOffsets(admin, a.topic('orders'));
  await admin.disconnect();
  expect([topics.includes(a.topic('orders')), topics.includes(b.topic('orders'))]).toEqual([true, false]);
  expect(partitions).toHaveLength(3);
});

test('a MySQL of its own keeps port and committed data over a kill, and is silent while frozen', async () => {
  const mysql = await startMysql({ serverId: 77, flags: ['--max-connections=33'] });
  try {
    await query(mysql, 'CREATE DATABASE d');
    await query(mysql, 'CREATE TABLE d.t (id INT PRIMARY KEY)');
    await query(mysql, 'INSERT INTO d.t VALUES (1)');
    await mysql.kill();
    expect(mysql.pid).toBeNull();
    await expect(query(mysql, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await mysql.start();
    expect(await query(mysql, 'SELECT * FROM d.t')).toEqual([{ id: 1 }]);
    expect(await variables(mysql, ['server_id', 'max_connections'])).toEqual({ server_id: 77, max_connections: 33 });
    await mysql.freeze();
    expect(await greets(mysql.port, 300)).toBe(false);
    await mysql.thaw();
    expect(await greets(mysql.port, 20_000)).toBe(true);
    await mysql.stop();
    await mysql.start();
  } finally {
    await mysql.dispose();
  }
  await expect(query(mysql, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

test('a replica follows, and takes writes when its source is gone', async () => {
  await using source = await startMysql();
  await query(source, 'CREATE DATABASE earlier');
  await using replica = await startMysql({ replicaOf: source });
  await query(source, 'CREATE DATABASE later');
  await eventually(() => query(replica, 'SHOW TABLES IN later'), { withinMs: 20_000, what: 'the new database' });
  expect(await query(replica, 'SHOW TABLES IN earlier')).toEqual([]);
  await source.kill();
  await promote(replica);
  await query(replica, 'CREATE DATABASE own');
});

test('MySQL shows the certificate it was given', async () => {
  const authority = await makeAuthority();
  await using mysql = await startMysql({
    certificate: await authority.issue(),
    flags: ['--require-secure-transport=ON'],
  });
  const { host, port, user } = mysql;
  await expect(createConnection({ host, port, user })).rejects.toMatchObject({ errno: 3159 });
  const connection = await createConnection({ host, port, user, ssl: { ca: authority.ca, verifyIdentity: true } });
  connection.destroy();
});

test('MariaDB starts with row format, full metadata and its binlog', async () => {
  await using mariadb = await startMariadb();
  expect(mariadb.version).toContain('MariaDB');
  const settings = { log_bin: 1, binlog_format: 'ROW', binlog_row_metadata: 'FULL' };
  expect(await variables(mariadb, Object.keys(settings))).toEqual(settings);
});

test.skipIf(isTenth)(
  'three brokers: leaders move when one is killed, and it comes back',
  { timeout: 300_000 },
  async () => {
    await using cluster = await startKafka({ brokers: 3 });
    await using bed = await testBed({ kafka: cluster });
    await bed.createTopics({ orders: 3 });
    const admin = bed.kafka.admin();
    await admin.connect();
    try {
      const leaders = async () => {
        const { topics } = await admin.fetchTopicMetadata({ topics: [bed.topic('orders')] });
        return new Set(topics[0].partitions.map(({ leader }) => leader));
      };
      const patience = { withinMs: 20_000, what: 'leaders and brokers as they should be' };
      await eventually(async () => expect(await leaders()).toEqual(new Set([1, 2, 3])), patience);
      const node = cluster.nodes[1];
      await node.kill();
      await eventually(async () => expect(await leaders()).not.toContain(2), patience);
      await node.start();
      await eventually(async () => {
        const { brokers } = await admin.describeCluster();
        expect(brokers.map(({ nodeId }) => nodeId).sort()).toEqual([1, 2, 3]);
      }, patience);
    } finally {
      await admin.disconnect();
    }
  },
);

test('Kafka asks for TLS and passwords where it was told to', async () => {
  const authority = await makeAuthority();
  await using cluster = await startKafka({
    certificate: await authority.issue(),
    listeners: { tls: { tls: 'server' }, scram: { tls: 'server', sasl: 'scram-sha-512' } },
  });
  const ssl = { ca: [authority.ca] };
  const sasl = { mechanism: 'scram-sha-512', username: 'relay', password: 'relay-password' } as const;
  const once = { retry: { retries: 0 } };
  const reaches = async (listener: string, options: object) => {
    const admin = kafkaClient(cluster.listener(listener), { ...once, ...options }).admin();
    try {
      await admin.connect();
      await admin.listTopics();
      return true;
    } catch {
      return false;
    } finally {
      await admin.disconnect();
    }
  };
  expect(await reaches('tls', { ssl })).toBe(true);
  expect(await reaches('tls', { ssl: true })).toBe(false);
  expect(await reaches('scram', { ssl, sasl })).toBe(true);
  expect(await reaches('scram', { ssl, sasl: { ...sasl, password: 'wrong' } })).toBe(false);
});

/** Whether a MySQL server sends its greeting to a new connection in time. */
function greets(port: number, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = new Socket();
    const end = (greeted: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(greeted);
    };
    const timer = setTimeout(end, withinMs, false);
    socket.once('data', () => end(true)).once('error', () => end(false));
    socket.connect(port, '127.0.0.1');
  });
}
