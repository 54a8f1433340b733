import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { MigrationError, Umzug, type UmzugStorage } from 'umzug';
import { fault, RelayError } from '../model/fault.ts';
import { quoteTable } from '../model/identifier.ts';
import type { Log } from '../model/log.ts';
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

const RECORDS = 'cdc_relay_migrations';

const DUPLICATE_COLUMN = 1060;

/**
 * Brings the tables up to date. Every statement that has to wait for a lock gives up after a second and is tried
 * again: a waiting DDL statement makes the application's statements on the table queue behind it.
 */
export class Migrator {
  readonly #settings: Settings;
  readonly #session: Session;
  readonly #log: Log;
  readonly #waitMs: number;
  /** Tables that have got columns. */
  readonly #changed = new Set<string>();
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
    const own = relayMigrations(this.#settings);
    // Of outbox tables only those that are missing, and those that came from here.
    const outboxes = this.#settings.outboxes.flatMap(outboxMigrations);
    const migrations = [...own, ...outboxes.filter((each) => !before.has(key(each)) || recorded.has(each.name))];
    const umzug = new Umzug({
      migrations: migrations.map((each) => ({ name: each.name, up: () => this.#apply(each, before) })),
      storage: this.#storage(recorded),
      logger: undefined,
    });
    try {
      await umzug.up();
    } catch (error) {
      throw error instanceof MigrationError && error.cause instanceof RelayError ? error.cause : error;
    }
    const known = new Set(migrations.map(key));
    const tables = new Set([...own, ...this.#settings.outboxes].map(key));
    return [...tables].map((table) => {
      if (before.has(table)) return { table, as: this.#changed.has(table) ? 'changed' : 'kept' };
      return { table, as: known.has(table) ? 'created' : 'absent' };
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
    if (!existing.has(quoteTable(database, RECORDS))) return new Set();
    const doing = 'reading what has been applied';
    const sql = `SELECT name FROM ${quoteTable(database, RECORDS)}`;
    const rows = await this.#patiently(doing, () => this.#session.rows(doing, sql));
    const names = new Set(rows.map((row) => String(row['name'])));
    const all = [...relayMigrations(this.#settings), ...this.#settings.outboxes.flatMap(outboxMigrations)];
    return new Set(all.filter((each) => names.has(each.name) && existing.has(key(each))).map(({ name }) => name));
  }

  #storage(recorded: ReadonlySet<string>): UmzugStorage {
    return {
      executed: () => Promise.resolve([...recorded]),
      logMigration: ({ name }) => this.#record(name),
      unlogMigration: () => Promise.reject(new Error('migrations only go forward')),
    };
  }

  /**
   * A table's record comes before the table: a record without its table counts for nothing, but a table without its
   * record (we died in between) would be taken for somebody else's.
   */
  async #apply(migration: Migration, before: ReadonlySet<string>): Promise<void> {
    const isNew = !before.has(key(migration)) && migration.table !== RECORDS && !isChange(migration);
    if (isNew) await this.#record(migration.name);
    const doing = `applying ${migration.name} to ${key(migration)}`;
    try {
      await this.#patiently(doing, () => this.#session.change(doing, migration.sql));
      if (isChange(migration)) this.#changed.add(key(migration));
    } catch (error) {
      // Applied, and we died before the record: one statement adds all its columns or none.
      if (!isChange(migration) || !isDuplicateColumn(error)) throw error;
    }
  }

  async #record(name: string): Promise<void> {
    const doing = `recording ${name}`;
    await this.#patiently(doing, () => this.#session.change(doing, recordSql(this.#settings), [name]));
  }

  /** Tries again what had to wait for a lock; says so once. */
  async #patiently<T>(doing: string, work: () => Promise<T>): Promise<T> {
    const until = performance.now() + this.#waitMs;
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const isWait = error instanceof RelayError && error.fault.code === 'MYSQL_LOCK_WAIT';
        if (!isWait || performance.now() > until) throw error;
        if (attempt === 1) this.#log.warn('migration-waits', { doing, atMostMs: this.#waitMs });
        await sleep(Math.min(100 * attempt, 1_000));
      }
    }
  }
}

/** Of a table that is there. */
function isChange({ sql }: Migration): boolean {
  return /^ALTER TABLE /m.test(sql);
}

function isDuplicateColumn(error: unknown): boolean {
  const cause = error instanceof RelayError ? error.fault.cause : null;
  return (cause as { readonly errno?: unknown } | null | undefined)?.errno === DUPLICATE_COLUMN;
}

function key({ schema, table }: Pick<OutboxSettings, 'schema' | 'table'>): string {
  return quoteTable(schema, table);
}
