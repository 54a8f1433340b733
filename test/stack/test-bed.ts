import { randomBytes, randomInt } from 'node:crypto';
import type { Admin, Kafka } from 'kafkajs';
import { createConnection, createPool, type Pool } from 'mysql2/promise';
import { inject } from 'vitest';
import type { DatabaseServer, KafkaCluster } from './handles.ts';
import { kafkaClient } from './kafka-client.ts';
import { createTopics } from './patient-admin.ts';

export interface MysqlPlace {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

/** A test file's own corner of the servers: nothing in it meets another file, worker or run. */
export interface TestBed extends AsyncDisposable {
  readonly mysql: MysqlPlace;
  readonly brokers: readonly string[];
  /** Exists, and is empty at first. */
  readonly database: string;
  /** For a replica id: unique like the database. */
  readonly serverId: number;
  /** In the database. Numbers beyond 2^53, times and JSON come as text; several statements in one query are allowed. */
  readonly pool: Pool;
  readonly kafka: Kafka;
  /** The full name of a topic of this bed. */
  readonly topic: (name: string) => string;
  /** Creates topics of this bed, replicated as the cluster's default says. */
  createTopics(topics: Readonly<Record<string, number>>, config?: Readonly<Record<string, string>>): Promise<void>;
}

export interface TestBedOptions {
  /** Servers of the test's own, for faults; else the run's shared ones. */
  readonly mysql?: DatabaseServer;
  readonly kafka?: KafkaCluster;
}

/** `await using bed = await testBed()`, or `beforeAll` and `afterAll`. */
export async function testBed(options: TestBedOptions = {}): Promise<TestBed> {
  const { host, port, user, password } = options.mysql ?? inject('mysql');
  const mysql = { host, port, user, password };
  const brokers = options.kafka?.brokers ?? inject('brokers');
  const database = `t_${randomBytes(6).toString('hex')}`;
  await statement(mysql, `CREATE DATABASE ${database}`);
  const pool = createPool({ ...mysql, database, ...AS_TEXT, multipleStatements: true, connectionLimit: 20 });
  const kafka = kafkaClient(brokers);
  const created: string[] = [];
  const topic = (name: string) => `${database}.${name}`;
  return {
    ...{ mysql, brokers, database, pool, kafka, topic },
    serverId: randomInt(1_000_000, 2 ** 31),
    async createTopics(topics, config = {}) {
      const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
      const wanted = Object.entries(topics).map(([name, numPartitions]) => ({
        ...{ topic: topic(name), numPartitions, configEntries },
      }));
      created.push(...wanted.map((each) => each.topic));
      await asAdmin(kafka, (admin) => createTopics(admin, wanted));
    },
    async [Symbol.asyncDispose]() {
      await pool.end();
      // A test's own servers go as a whole, and may be down by now.
      if (options.mysql === undefined) await statement(mysql, `DROP DATABASE ${database}`);
      if (options.kafka === undefined && created.length > 0) {
        await asAdmin(kafka, (admin) => admin.deleteTopics({ topics: created }));
      }
    },
  };
}

const AS_TEXT = {
  charset: 'utf8mb4',
  timezone: 'Z',
  supportBigNumbers: true,
  bigNumberStrings: true,
  dateStrings: true,
  jsonStrings: true,
};

async function statement(mysql: MysqlPlace, sql: string): Promise<void> {
  const connection = await createConnection({ ...mysql });
  try {
    await connection.query(sql);
  } finally {
    connection.destroy();
  }
}

async function asAdmin(kafka: Kafka, work: (admin: Admin) => Promise<unknown>): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    await work(admin);
  } finally {
    await admin.disconnect();
  }
}
