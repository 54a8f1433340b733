import { randomBytes } from 'node:crypto';
import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import { check, type CheckReport, checkSchema } from '../../../src/check/check.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
import type { Log } from '../../../src/model/log.ts';
import type { Settings } from '../../../src/model/settings.ts';
import { outboxMigrations, relayMigrations } from '../../../src/store/migrations.ts';
import type { MysqlPlace } from '../../stack/test-bed.ts';

export const SILENT: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => SILENT,
};

export interface CheckBedOptions {
  readonly mysql: MysqlPlace;
  readonly brokers: readonly string[];
  /** Tables as shipped. Default: one, `outbox`. */
  readonly outboxes?: readonly { readonly table: string }[];
  /** A schema of its own for the outboxes, of this name. */
  readonly outboxSchema?: string;
}

/** A schema with the relay's tables and outboxes, what is wrong with it, and users that may do little. */
export class CheckBed implements AsyncDisposable {
  readonly database = `chk_${randomBytes(6).toString('hex')}`;
  readonly #options: CheckBedOptions;
  readonly #root: Connection;
  readonly #users: string[] = [];

  private constructor(options: CheckBedOptions, root: Connection) {
    this.#options = options;
    this.#root = root;
  }

  static async open(options: CheckBedOptions): Promise<CheckBed> {
    const root = await createConnection({ ...placeOf(options.mysql), multipleStatements: true });
    const bed = new CheckBed(options, root);
    await bed.sql('SET SESSION wait_timeout = 600, autocommit = 1');
    for (const schema of bed.#schemas) await bed.sql(`CREATE DATABASE ${schema}`);
    const settings = bed.settings();
    for (const { sql, name } of [...relayMigrations(settings), ...settings.outboxes.flatMap(outboxMigrations)]) {
      await bed.sql(sql);
      await bed.sql(`INSERT INTO ${bed.database}.cdc_relay_migrations (name) VALUES (?)`, [name]);
    }
    await bed.sql(`USE ${bed.database}`);
    return bed;
  }

  /** Keys of the configuration's sections over what the bed says. */
  settings(over: Readonly<Record<string, object | string>> = {}): Settings {
    const { mysql, brokers, outboxes = [{ table: 'outbox' }], outboxSchema = this.database } = this.#options;
    const config = configSchema.parse({
      name: 'check-test',
      start: 'head',
      outboxes: outboxes.map((outbox) => ({ ...outbox, table: `${outboxSchema}.${outbox.table}` })),
      ...over,
      mysql: { ...placeOf(mysql), database: this.database, ...(over['mysql'] as object | undefined) },
      kafka: { brokers, ...(over['kafka'] as object | undefined) },
    });
    return settingsOf(complete(config));
  }

  async check(over: Readonly<Record<string, object | string>> = {}): Promise<CheckReport> {
    const report = await check(this.settings(over), SILENT);
    return checkSchema.parse(JSON.parse(JSON.stringify(report)));
  }

  async sql(text: string, values: unknown[] = []): Promise<RowDataPacket[]> {
    const [rows] = await this.#root.query<RowDataPacket[]>(text, values);
    return rows;
  }

  /** A user that may connect, and what `grants` says. */
  async user(...grants: readonly string[]): Promise<{ user: string; password: string }> {
    const user = `c_${randomBytes(6).toString('hex')}`;
    const password = randomBytes(12).toString('hex');
    this.#users.push(user);
    await this.sql(`CREATE USER ${user} IDENTIFIED BY '${password}'`);
    for (const grant of grants) await this.sql(`GRANT ${grant} TO ${user}`);
    return { user, password };
  }

  async connect(as: { readonly user?: string; readonly password?: string } = {}): Promise<Connection> {
    return createConnection({ ...placeOf(this.#options.mysql), ...as });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const user of this.#users) await this.sql(`DROP USER ${user}`);
    for (const schema of this.#schemas) await this.sql(`DROP DATABASE IF EXISTS ${schema}`);
    this.#root.destroy();
  }

  get #schemas(): string[] {
    const { outboxSchema } = this.#options;
    return outboxSchema === undefined ? [this.database] : [this.database, outboxSchema];
  }
}

function placeOf({ host, port, user, password }: MysqlPlace): MysqlPlace {
  return { host, port, user, password };
}

/** `severity check: fact`, what is good left out. */
export function told({ findings }: Pick<CheckReport, 'findings'>, checks?: readonly string[]): string[] {
  return findings
    .filter(({ severity, check: name }) => severity !== 'good' && checks?.includes(name) !== false)
    .map(({ severity, check: name, fact }) => `${severity} ${name}: ${fact}`);
}
