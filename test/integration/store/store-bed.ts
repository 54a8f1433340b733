import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection, type Connection, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise';
import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
import { systemClock } from '../../../src/model/clock.ts';
import type { Log } from '../../../src/model/log.ts';
import type { Checkpoint } from '../../../src/model/position.ts';
import type { MysqlCounts } from '../../../src/model/server-counts.ts';
import type { Retire, Settings } from '../../../src/model/settings.ts';
import type { Leader, ParkedChanges, RetireRows } from '../../../src/model/store.ts';
import { outboxMigrations, relayMigrations } from '../../../src/store/migrations.ts';
import { MysqlStore } from '../../../src/store/mysql-store.ts';
import { type MysqlPlace, type TestBed, testBed } from '../../stack/test-bed.ts';
import { until } from '../../stack/until.ts';

export interface StoreOptions {
  readonly retire?: Retire;
  readonly takeOverMs?: number;
  readonly queryTimeoutMs?: number;
  readonly name?: string;
  /** What is other than the bed's server and user. */
  readonly place?: Partial<MysqlPlace>;
  readonly log?: Log;
  readonly counts?: MysqlCounts;
  /** Further keys of the outbox, as a configuration has them. */
  readonly outbox?: object;
}

/** A schema with the tables as shipped, stores on it, and connections that play the application. */
export class StoreBed implements AsyncDisposable {
  readonly #bed: TestBed;
  readonly #connections: Connection[] = [];
  readonly #stores: MysqlStore[] = [];
  readonly #leaders: Leader[] = [];

  private constructor(bed: TestBed) {
    this.#bed = bed;
  }

  static async open(): Promise<StoreBed> {
    const bed = new StoreBed(await testBed());
    const settings = bed.settings();
    for (const { sql } of [...relayMigrations(settings), ...settings.outboxes.flatMap(outboxMigrations)]) {
      await bed.sql(sql);
    }
    return bed;
  }

  get database(): string {
    return this.#bed.database;
  }

  get mysql(): MysqlPlace {
    return this.#bed.mysql;
  }

  settings(options: StoreOptions = {}): Settings {
    const config = configSchema.parse({
      name: options.name ?? 'store-test',
      mysql: {
        ...this.mysql,
        ...options.place,
        database: this.database,
        queryTimeoutMs: options.queryTimeoutMs ?? 5_000,
      },
      kafka: { brokers: ['127.0.0.1:9'] },
      outboxes: [{ table: 'outbox', retire: options.retire ?? 'mark', ...options.outbox }],
      relay: { takeOverMs: options.takeOverMs ?? 10_000 },
    });
    return settingsOf(complete(config));
  }

  store(options: StoreOptions = {}): MysqlStore {
    const store = new MysqlStore(this.settings(options), systemClock, options.log ?? silent, options.counts);
    this.#stores.push(store);
    return store;
  }

  /** Leads without anybody to wait for. */
  async lead(store: MysqlStore): Promise<Leader> {
    const leader = await store.lead(AbortSignal.timeout(30_000), () => undefined);
    this.#leaders.push(leader);
    return leader;
  }

  /** A connection of the application: MySQL's defaults. */
  async connect(): Promise<Connection> {
    const connection = await createConnection({ ...this.mysql, database: this.database, supportBigNumbers: true });
    this.#connections.push(connection);
    return connection;
  }

  async sql(text: string, values: unknown[] = []): Promise<RowDataPacket[]> {
    const [rows] = await this.#bed.pool.query<RowDataPacket[]>(text, values);
    return rows;
  }

  /** Inserts rows and returns their ids; committed, unless by a connection that is in a transaction. */
  async insert(count: number, by?: Connection): Promise<bigint[]> {
    const values = Array.from({ length: count }, (_, i) => `('topic', 'aggregate-${i % 7}', '{"n": ${i}}')`);
    const sql = `INSERT INTO outbox (topic, aggregate_id, payload) VALUES ${values.join(',')}`;
    const [{ insertId }] = await (by ?? this.#bed.pool).query<ResultSetHeader>(sql);
    return values.map((_, i) => BigInt(insertId) + BigInt(i));
  }

  /** The same for many. */
  async insertMany(count: number): Promise<bigint[]> {
    await this.sql(
      `INSERT INTO outbox (topic, aggregate_id)
       WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
       SELECT /*+ SET_VAR(cte_max_recursion_depth = 1M) */ 'topic', n % 50 FROM n`,
      [count],
    );
    return this.ids('pending');
  }

  /** Ids by status. */
  async ids(status: string): Promise<bigint[]> {
    const rows = await this.sql('SELECT id FROM outbox WHERE status = ? ORDER BY id', [status]);
    return rows.map((row) => BigInt(String(row['id'])));
  }

  /** The offsets row of a relay. */
  async offsets(name = 'store-test'): Promise<RowDataPacket> {
    const [row] = await this.sql('SELECT * FROM cdc_relay_offsets WHERE name = ?', [name]);
    return row;
  }

  /** Waits until some statement on the outbox table waits for a row lock; returns its connection's id. */
  lockWait(): Promise<string> {
    const waiting = async (): Promise<string | undefined> => (await this.#waiting()).at(0);
    return until(waiting, { withinMs: 20_000, what: 'a wait for a row lock', everyMs: 5 });
  }

  /** What `work` gives. No connection may wait for a row lock of the outbox table meanwhile, but for `known`. */
  async withoutLockWait<T>(work: Promise<T>, known?: string): Promise<T> {
    const done = Promise.allSettled([work]).then(() => true);
    while (!(await Promise.race([done, sleep(5, false)]))) {
      const waiting = (await this.#waiting()).filter((id) => id !== known);
      if (waiting.length > 0) throw new Error('waits for a row lock that somebody holds');
    }
    return work;
  }

  /** Ids of the connections that wait for a row lock. */
  async #waiting(): Promise<string[]> {
    const rows = await this.sql(
      `SELECT t.processlist_id AS id FROM performance_schema.data_locks AS l
       JOIN performance_schema.threads AS t USING (thread_id)
       WHERE l.object_schema = ? AND l.object_name = 'outbox' AND l.lock_status = 'WAITING'`,
      [this.database],
    );
    return rows.map((row) => String(row['id']));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const leader of this.#leaders) await leader.release();
    for (const store of this.#stores) await store.close();
    for (const connection of this.#connections) connection.destroy();
    await this.#bed[Symbol.asyncDispose]();
  }
}

/** A flush request for rows of the one outbox; `asked` collects what `checkpoint` was asked with. */
export function flushOf(ids: readonly bigint[], at: number, suspects: readonly bigint[] = []) {
  const asked: (readonly RetireRows[])[] = [];
  const rows = (list: readonly bigint[]): RetireRows[] =>
    list.length === 0 ? [] : [{ outbox: 0, ids: BigUint64Array.from(list).sort() }];
  return {
    asked,
    retire: rows(ids),
    suspects: rows(suspects),
    checkpoint: (stillHeld: readonly RetireRows[]): Checkpoint => {
      asked.push(stillHeld);
      // What fits around rows that are held is less.
      return checkpointAt(stillHeld.length === 0 ? at : at - 100);
    },
    high: { file: 'binlog.000001', offset: at },
    parked: (): ParkedChanges | null => null,
  };
}

export function checkpointAt(offset: number): Checkpoint {
  return {
    position: { file: 'binlog.000001', offset },
    gtidSet: '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5',
    lastBegin: { file: 'binlog.000001', offset: Math.max(4, offset - 200) },
    lastGtid: '3e11fa47-71ca-11e1-9e33-c80aa9429562:5',
    lastCommitMicros: 1_767_225_600_123_456,
  };
}

export const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};
