import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RowDataPacket } from 'mysql2/promise';
import { type AdoptReport, adoptSchema } from '../../../src/commands/adopt-report.ts';
import type { Position } from '../../../src/model/position.ts';
import { logHead } from '../../stack/log-head.ts';
import { readRecords } from '../../stack/read-records.ts';
import { startCli } from '../../stack/relay-process.ts';
import { type TestBed, testBed } from '../../stack/test-bed.ts';
import { until } from '../../stack/until.ts';
import { javaMap } from '../../unit/adopt/java-map-writer.ts';
import { runWith } from '../verify/verify-bed.ts';

const DEBEZIUM_TABLE = `CREATE TABLE outboxevent (id CHAR(36) NOT NULL PRIMARY KEY, aggregatetype VARCHAR(255) NOT NULL,
  aggregateid VARCHAR(255) NOT NULL, type VARCHAR(255) NOT NULL, payload JSON)`;

/** A schema with a table that is there already, and one topic for it. */
export class AdoptBed implements AsyncDisposable {
  readonly servers: TestBed;
  readonly table: string;
  readonly topic: string;

  private constructor(servers: TestBed, table: string) {
    this.servers = servers;
    this.table = table;
    this.topic = servers.topic('order');
  }

  static async open(table = 'outboxevent', create = DEBEZIUM_TABLE): Promise<AdoptBed> {
    const bed = new AdoptBed(await testBed(), table);
    await bed.sql(create);
    await bed.servers.createTopics({ order: 3 });
    const { code, stderr } = await bed.cli(['migrate']);
    if (code !== 0) throw new Error(`migrate ended with ${code}: ${stderr}`);
    return bed;
  }

  /** `entry`: as `adopt` has proposed it. */
  config(entry: object = { table: this.table, topic: { fixed: this.topic } }): object {
    const { mysql, brokers, database, serverId } = this.servers;
    return {
      name: database,
      mysql: { ...mysql, database, serverId },
      kafka: { brokers },
      outboxes: [entry],
      http: { port: 0 },
      log: { level: 'info', format: 'json' },
    };
  }

  cli(args: readonly string[], entry?: object) {
    return runWith(this.config(entry), args);
  }

  async adopt(args: readonly string[] = [], entry?: object): Promise<AdoptReport> {
    const { code, stdout, stderr } = await this.cli(['adopt', this.table, '--yes', '--json', ...args], entry);
    if (code !== 0) throw new Error(`adopt ended with ${code}: ${stderr}`);
    return adoptSchema.parse(JSON.parse(stdout));
  }

  async sql(text: string, values: unknown[] = []) {
    const [rows] = await this.servers.pool.query(text, values);
    return rows as Readonly<Record<string, unknown>>[];
  }

  async insert(aggregate = 'a'): Promise<string> {
    const id = randomUUID();
    await this.sql(
      `INSERT INTO ${this.table} (id, aggregatetype, aggregateid, type, payload) VALUES (?, 'order', ?, 't', '{"n": 1}')`,
      [id, aggregate],
    );
    return id;
  }

  /** Runs the relay until nothing is pending; ids of the records that are there then, in their order. */
  async deliver(entry: object): Promise<string[]> {
    await using relay = await startCli(['run'], { config: this.config(entry) });
    await relay.waitFor('binlog-streaming');
    const waiting = `SELECT COUNT(*) AS n FROM ${this.table} WHERE status IN ('pending', 'processing')`;
    await until(async () => Number((await this.sql(waiting))[0]['n']) === 0, {
      withinMs: 30_000,
      what: relay.stderr(),
    });
    await relay.kill('SIGTERM');
    return (await readRecords(this.servers.kafka, [this.topic])).map(({ headers }) => String(headers['id']));
  }

  offsetFile(offset: object): string {
    const directory = mkdtempSync(join(tmpdir(), 'cdc-relay-test-'));
    this.#directories.push(directory);
    const file = join(directory, 'offsets.dat');
    writeFileSync(file, javaMap([['["inventory",{"server":"shop"}]', JSON.stringify(offset)]]));
    return file;
  }

  async head(): Promise<Position> {
    return logHead(async (text) => (await this.servers.pool.query<RowDataPacket[]>(text))[0]);
  }

  readonly #directories: string[] = [];

  async [Symbol.asyncDispose](): Promise<void> {
    for (const directory of this.#directories) rmSync(directory, { recursive: true });
    await this.servers[Symbol.asyncDispose]();
  }
}
