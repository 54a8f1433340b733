import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { MigrationError, Umzug, type UmzugStorage } from 'umzug';
import { fault, RelayError } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
import { isShippedShape } from '../model/outbox-columns.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import { type Migration, outboxMigrations, recordSql, relayMigrations } from './migrations.ts';
import { Session } from './session.ts';

/** What became of a table. `absent`: it has columns of its own, so nobody but its owner can create it. */
export interface TableOutcome {
  readonly table: string;
  readonly as: 'created' | 'changed' | 'kept' | 'absent';
}

/** How long others (another migration, a backup, an open transaction) may hold us up. */
const WAIT_MS = 60_000;

/**
 * Brings the tables up to date. Every statement that has to wait for a lock gives up after a second and is tried
 * again: a waiting DDL statement makes the application's statements on the table queue behind it.
 */
export class Migrator {
  readonly #settings: Settings;
  readonly #session: Session;
  readonly #log: Log;
  readonly #waitMs: number;
  /** For people: `'relay'@'%'` as the server knows us, and the server's version. */
  readonly account: string;
  readonly version: string;

  private constructor(
    settings: Settings,
    session: Session,
    log: Log,
    waitMs: number,
    account: string,
    version: string,
  ) {
    this.#settings = settings;
    this.#session = session;
    this.#log = log;
    this.#waitMs = waitMs;
    this.account = account;
    this.version = version;
  }

  /** Throws a `RelayError`. */
  static async open(settings: Settings, log: Log, waitMs = WAIT_MS): Promise<Migrator> {
    const session = await Session.open(settings.mysql, log);
    const doing = 'asking the server who we are';
    const [me] = await session.rows(doing, 'SELECT CURRENT_USER() AS account, VERSION() AS version');
    await session.change('setting lock_wait_timeout', 'SET SESSION lock_wait_timeout = 1');
    return new Migrator(settings, session, log, waitMs, String(me['account']), String(me['version']));
  }

  /** What was done to each table, the relay's own first. Throws a `RelayError`; what was done before it stays. */
  async run(): Promise<TableOutcome[]> {
    await this.#lock();
    const before = await this.#existing();
    const recorded = await this.#recorded(before);
    const outboxes = this.#settings.outboxes;
    const migrations = [
      ...relayMigrations(this.#settings),
      ...outboxes.flatMap(outboxMigrations).filter((each) => !before.has(key(each)) || recorded.has(each.name)),
    ];
    const changed = new Set<string>();
    const umzug = new Umzug({
      migrations: migrations.map((each) => ({ name: each.name, up: () => this.#apply(each) })),
      storage: this.#storage(recorded),
      logger: undefined,
    });
    umzug.on('migrated', ({ name }) => {
      changed.add(key(migrations.find((each) => each.name === name)!));
    });
    try {
      await umzug.up();
    } catch (error) {
      throw error instanceof MigrationError && error.cause instanceof RelayError ? error.cause : error;
    }
    const tables = new Map([...relayMigrations(this.#settings), ...outboxes].map((each) => [key(each), each]));
    return [...tables].map(([full, each]) => {
      if (changed.has(full)) return { table: full, as: before.has(full) ? 'changed' : 'created' };
      return { table: full, as: before.has(full) || isRelayTable(each) ? 'kept' : 'absent' };
    });
  }

  close(): void {
    this.#session.destroy();
  }

  /** One migration at a time on this database; ends with the connection. */
  async #lock(): Promise<void> {
    const hash = createHash('sha256').update(this.#settings.mysql.database).digest('hex').slice(0, 32);
    await this.#patiently('waiting for another cdc-relay migrate', async () => {
      const [row] = await this.#session.rows('GET_LOCK', 'SELECT GET_LOCK(?, 1) AS got', [`cdc_relay_migrate:${hash}`]);
      if (Number(row['got']) !== 1) throw fault('MYSQL_LOCK_WAIT', 'retry', 'another cdc-relay migrate is at work');
    });
  }

  async #existing(): Promise<Set<string>> {
    const wanted = [...relayMigrations(this.#settings), ...this.#settings.outboxes];
    const rows = await this.#session.rows(
      'looking for tables',
      'SELECT TABLE_SCHEMA AS `schema`, TABLE_NAME AS `table` FROM information_schema.TABLES ' +
        `WHERE (TABLE_SCHEMA, TABLE_NAME) IN (${wanted.map(() => '(?, ?)').join(', ')})`,
      wanted.flatMap(({ schema, table }) => [schema, table]),
    );
    return new Set(rows.map((row) => quoteTable(String(row['schema']), String(row['table']))));
  }

  /** Migrations that are recorded and whose table is still there: a table that was dropped is made anew. */
  async #recorded(existing: ReadonlySet<string>): Promise<Set<string>> {
    const database = this.#settings.mysql.database;
    if (!existing.has(quoteTable(database, 'cdc_relay_migrations'))) return new Set();
    const rows = await this.#session.rows(
      'reading what has been applied',
      `SELECT name FROM ${quoteIdentifier(database)}.cdc_relay_migrations`,
    );
    const names = new Set(rows.map((row) => String(row['name'])));
    const all = [...relayMigrations(this.#settings), ...this.#settings.outboxes.flatMap(outboxMigrations)];
    return new Set(all.filter((each) => names.has(each.name) && existing.has(key(each))).map(({ name }) => name));
  }

  #storage(recorded: ReadonlySet<string>): UmzugStorage {
    return {
      executed: () => Promise.resolve([...recorded]),
      logMigration: async ({ name }) => {
        await this.#patiently(`recording ${name}`, () =>
          this.#session.change(`recording ${name}`, recordSql(this.#settings), [name]),
        );
      },
      unlogMigration: () => Promise.reject(new Error('migrations only go forward')),
    };
  }

  async #apply(migration: Migration): Promise<void> {
    const doing = `applying ${migration.name} to ${key(migration)}`;
    await this.#patiently(doing, () => this.#session.change(doing, migration.sql));
  }

  /** Tries again what had to wait for a lock; says so once. */
  async #patiently(doing: string, work: () => Promise<unknown>): Promise<void> {
    const until = performance.now() + this.#waitMs;
    for (let attempt = 1; ; attempt++) {
      try {
        await work();
        return;
      } catch (error) {
        const isWait = error instanceof RelayError && error.fault.code === 'MYSQL_LOCK_WAIT';
        if (!isWait || performance.now() > until) throw error;
        if (attempt === 1) this.#log.warn('migration-waits', { doing, atMostMs: this.#waitMs });
        await sleep(Math.min(100 * attempt, 1_000));
      }
    }
  }
}

function key({ schema, table }: Pick<OutboxSettings, 'schema' | 'table'>): string {
  return quoteTable(schema, table);
}

function isRelayTable(each: Migration | OutboxSettings): boolean {
  return 'sql' in each || isShippedShape(each);
}
