import { randomBytes } from 'node:crypto';
import mysql, { type Connection, type RowDataPacket } from 'mysql2/promise';
import { loadConfig } from '../../../src/config/load.ts';
import type { Log, LogFields } from '../../../src/model/log.ts';
import { quoteIdentifier } from '../../../src/model/identifier.ts';
import type { Settings } from '../../../src/model/settings.ts';
import { connectionOptions } from '../../../src/mysql/connection.ts';
import { Migrator, type TableOutcome } from '../../../src/store/migrator.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

/** A schema of its own whose name needs quoting, a configuration for it, and an administrator's connection. */
export class MigrateBed implements AsyncDisposable {
  readonly database = `m\`ü ${randomBytes(4).toString('hex')}`;
  readonly logged: { event: string; fields: LogFields | undefined }[] = [];
  readonly #server: Address;
  readonly #connections: Connection[] = [];
  readonly #users: string[] = [];

  private constructor(server: Address) {
    this.#server = server;
  }

  static async open(server: Address): Promise<MigrateBed> {
    const bed = new MigrateBed(server);
    await bed.sql(`CREATE DATABASE ${quoteIdentifier(bed.database)}`);
    return bed;
  }

  /** `` `schema`.`name` `` */
  table(name: string): string {
    return `${quoteIdentifier(this.database)}.${quoteIdentifier(name)}`;
  }

  /** Settings with these outboxes, as YAML would have them. */
  settings(outboxes: readonly object[], login: Partial<Address> = {}): Settings {
    const loaded = loadConfig({ file: null, environment: this.environment(outboxes, login), sets: [] });
    if (!loaded.ok) throw new Error(loaded.report);
    return loaded.settings;
  }

  environment(outboxes: readonly object[], login: Partial<Address> = {}): Record<string, string> {
    const { host, port, user, password } = { ...this.#server, ...login };
    const account = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
    return {
      CDC_RELAY_NAME: 'migrate-test',
      CDC_RELAY_MYSQL_URL: `mysql://${account}@${host}:${port}/${encodeURIComponent(this.database)}`,
      CDC_RELAY_KAFKA_BROKERS: '127.0.0.1:9092',
      CDC_RELAY_OUTBOXES: JSON.stringify(outboxes),
    };
  }

  async migrate(settings: Settings, waitMs?: number): Promise<TableOutcome[]> {
    const migrator = await Migrator.open(settings, this.#log, waitMs);
    try {
      return await migrator.run();
    } finally {
      migrator.close();
    }
  }

  async connect(): Promise<Connection> {
    const mysqlSettings = { ...connectionOptions({ ...UNUSED, ...this.#server }), multipleStatements: true };
    const connection = await mysql.createConnection(mysqlSettings);
    this.#connections.push(connection);
    return connection;
  }

  async sql(statement: string, values: readonly unknown[] = []): Promise<RowDataPacket[]> {
    const connection = this.#connections.at(0) ?? (await this.connect());
    const [rows] = await connection.query<RowDataPacket[]>(statement, [...values]);
    return rows;
  }

  async tables(): Promise<string[]> {
    const rows = await this.sql('SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?', [
      this.database,
    ]);
    return rows.map((row) => String(row['name'])).sort();
  }

  /** A user with these grants, `%` standing for the schema. */
  async user(...grants: readonly string[]): Promise<{ user: string; password: string }> {
    const user = `m_${randomBytes(6).toString('hex')}`;
    const password = randomBytes(12).toString('hex');
    this.#users.push(user);
    await this.sql(`CREATE USER ${user} IDENTIFIED BY '${password}'`);
    for (const grant of grants) await this.sql(`GRANT ${grant} ON ${quoteIdentifier(this.database)}.* TO ${user}`);
    return { user, password };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const user of this.#users) await this.sql(`DROP USER ${user}`);
    for (const connection of this.#connections.slice(1)) connection.destroy();
    await this.sql(`DROP DATABASE ${quoteIdentifier(this.database)}`);
    await this.#connections[0].end();
  }

  readonly #log: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (event, fields) => void this.logged.push({ event, fields }),
    error: () => undefined,
    child: () => this.#log,
  };
}

const UNUSED = {
  tls: null,
  serverId: 1,
  connectTimeoutMs: 5_000,
  queryTimeoutMs: 10_000,
  heartbeatMs: 1_000,
  database: '',
};
