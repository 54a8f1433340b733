import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { createConnection, type Connection, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise';
import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
import type { Settings } from '../../../src/model/settings.ts';
import { outboxMigrations, relayMigrations } from '../../../src/store/migrations.ts';
import { type Finished, runProgram } from '../../e2e/built-cli.ts';
import { type TestBed, testBed } from '../../stack/test-bed.ts';

/** From its sources: what is tested here is not the build. */
const CLI = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url));
const NAME = 'command-test';

/** `numbers`: a derived table of the numbers from 1 to `count`, a million at most, for both products. */
export function numbers(count: number): string {
  return `(WITH RECURSIVE d (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM d WHERE d < 99)
    SELECT 1 + x.d * 10000 + y.d * 100 + z.d AS n FROM d AS x JOIN d AS y JOIN d AS z
    WHERE x.d * 10000 < ${count} AND 1 + x.d * 10000 + y.d * 100 + z.d <= ${count} ORDER BY n) AS numbers`;
}

/** A schema with the tables as shipped, and the command line on it. */
export class CommandBed implements AsyncDisposable {
  readonly #bed: TestBed;
  readonly #outboxes: readonly object[];
  readonly #connections: Connection[] = [];
  readonly #cwd = mkdtempSync(`${tmpdir()}/cdc-relay-commands-`);

  private constructor(bed: TestBed, outboxes: readonly object[]) {
    this.#bed = bed;
    this.#outboxes = outboxes;
  }

  static async open(outboxes: readonly object[] = [{ table: 'outbox' }]): Promise<CommandBed> {
    const bed = new CommandBed(await testBed(), outboxes);
    const settings = bed.settings();
    for (const { sql } of [...relayMigrations(settings), ...settings.outboxes.flatMap(outboxMigrations)]) {
      await bed.sql(sql);
    }
    return bed;
  }

  get database(): string {
    return this.#bed.database;
  }

  settings(relay: object = {}): Settings {
    const config = configSchema.parse({
      name: NAME,
      mysql: { ...this.#bed.mysql, database: this.database },
      kafka: { brokers: ['127.0.0.1:9'] },
      outboxes: this.#outboxes,
      relay,
    });
    return settingsOf(complete(config));
  }

  async sql(text: string, values: unknown[] = []): Promise<RowDataPacket[]> {
    const [rows] = await this.#bed.pool.query<RowDataPacket[]>(text, values);
    return rows;
  }

  /** Inserts one row and returns its id. */
  async insert(row: Readonly<Record<string, unknown>>, table = 'outbox'): Promise<string> {
    const [{ insertId }] = await this.#bed.pool.query<ResultSetHeader>(`INSERT INTO ${table} SET ?`, [row]);
    return String(insertId);
  }

  /** A connection of the application: MySQL's defaults. */
  async connect(): Promise<Connection> {
    const connection = await createConnection({ ...this.#bed.mysql, database: this.database });
    this.#connections.push(connection);
    return connection;
  }

  /** The command line to its end; it has no terminal. */
  cli(args: readonly string[], interrupt?: Promise<unknown>): Promise<Finished> {
    const { host, port, user, password } = this.#bed.mysql;
    const environment = {
      CDC_RELAY_NAME: NAME,
      CDC_RELAY_MYSQL_URL: `mysql://${user}:${encodeURIComponent(password)}@${host}:${port}/${this.database}`,
      CDC_RELAY_KAFKA_BROKERS: '127.0.0.1:9',
      CDC_RELAY_OUTBOXES: JSON.stringify(this.#outboxes),
    };
    return runProgram(process.execPath, [CLI, ...args], {
      cwd: this.#cwd,
      environment,
      ...(interrupt === undefined ? {} : { interrupt }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.destroy();
    rmSync(this.#cwd, { recursive: true });
    await this.#bed[Symbol.asyncDispose]();
  }
}
