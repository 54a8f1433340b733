import type { RowDataPacket } from 'mysql2/promise';
import { formatPosition, type Position } from '../../src/model/position.ts';
import type { Retire } from '../../src/model/settings.ts';
import type { ExpectedRow } from './expected-rows.ts';
import { expectDelivered, type Figures } from './invariants.ts';
import { logHead } from './log-head.ts';
import { type CliOptions, type CliProcess, startCli } from './relay-process.ts';
import { createRelayUser, type RelayUser } from './relay-user.ts';
import { type TestBed, testBed, type TestBedOptions } from './test-bed.ts';
import { TopicEnds } from './topic-ends.ts';
import { until } from './until.ts';

export interface OutboxOptions {
  readonly table: string;
  readonly retire: Retire;
  /** The rule, given the full names of the bed's topics. Default: the column `topic`. */
  readonly topic?: (fullName: (name: string) => string) => Readonly<Record<string, string>>;
  readonly validateJson?: boolean;
}

export interface RelayBedOptions extends TestBedOptions {
  /** Default: one table `outbox` whose rows are marked. */
  readonly outboxes?: readonly OutboxOptions[];
  /** Topics and their partition counts. */
  readonly topics?: Readonly<Record<string, number>>;
  /** Keys of the configuration's sections, over what the bed says. */
  readonly config?: Config;
}

/** Sections of the configuration; `start: 'none'` leaves that key out. */
export interface Config {
  readonly name?: string;
  readonly start?: string | Position;
  readonly mysql?: Readonly<Record<string, unknown>>;
  readonly kafka?: Readonly<Record<string, unknown>>;
  readonly relay?: Readonly<Record<string, unknown>>;
  readonly http?: Readonly<Record<string, unknown>>;
  readonly sweep?: Readonly<Record<string, unknown>>;
  readonly failures?: Readonly<Record<string, unknown>>;
}

export interface Saved extends Position {
  readonly epoch: number;
  readonly owner: string;
  readonly updatedAt: string;
}

export interface DeliveredOptions {
  readonly table?: string;
  /** SQL: which of its rows should be out. */
  readonly where?: string;
  /** Full name of the one topic of the table, where it is no column. */
  readonly topic?: string;
  /** Rows read before the relay deleted them. */
  readonly rows?: readonly ExpectedRow[];
  /** Full names; default: all of the bed. */
  readonly topics?: readonly string[];
  readonly faultInjected?: boolean;
}

/** A corner of the servers with outbox tables, and the built relay that serves them. */
export class RelayBed implements AsyncDisposable {
  readonly servers: TestBed;
  /** Of the relay: it may do what the documentation tells people to grant. */
  readonly user: RelayUser;
  readonly #options: RelayBedOptions;
  readonly relays: CliProcess[] = [];

  private constructor(servers: TestBed, user: RelayUser, options: RelayBedOptions) {
    this.servers = servers;
    this.user = user;
    this.#options = options;
  }

  static async open(options: RelayBedOptions = {}): Promise<RelayBed> {
    const servers = await testBed(options);
    const user = await createRelayUser((text) => servers.pool.query(text), servers.database);
    const bed = new RelayBed(servers, user, options);
    try {
      await bed.servers.createTopics(options.topics ?? { orders: 3 });
      await using migrate = await startCli(['migrate'], { config: bed.config() });
      const { code } = await migrate.exited;
      if (code !== 0) throw new Error(`migrate ended with ${code}: ${migrate.stderr()}`);
      return bed;
    } catch (error) {
      await bed[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Full names. */
  get topics(): string[] {
    return Object.keys(this.#options.topics ?? { orders: 3 }).map((name) => this.servers.topic(name));
  }

  /** The relay of the bed, with keys of the configuration changed; leading and reading when this returns. */
  async start(config: Config = {}): Promise<CliProcess> {
    const relay = await this.launch(config);
    await relay.waitFor('binlog-streaming');
    return relay;
  }

  /** The same, without waiting for anything. */
  async launch(config: Config = {}, options: Omit<CliOptions, 'config'> = {}): Promise<CliProcess> {
    const relay = await startCli(['run'], { ...options, config: this.config(config) });
    this.relays.push(relay);
    return relay;
  }

  async sql(text: string, values: unknown[] = []): Promise<RowDataPacket[]> {
    const [rows] = await this.servers.pool.query<RowDataPacket[]>(text, values);
    return rows;
  }

  /** What the relay has saved; null before its first position. */
  async saved(name = this.servers.database): Promise<Saved | null> {
    const [row] = (await this.sql(
      'SELECT file, position, epoch, owner, updated_at FROM cdc_relay_offsets WHERE name = ?',
      [name],
    )) as (RowDataPacket | undefined)[];
    if (row === undefined || row['file'] === null) return null;
    return {
      file: String(row['file']),
      offset: Number(row['position']),
      epoch: Number(row['epoch']),
      owner: String(row['owner']),
      updatedAt: String(row['updated_at']),
    };
  }

  async count(table: string, where = 'TRUE'): Promise<number> {
    const [row] = await this.sql(`SELECT COUNT(*) AS rows_there FROM ${table} WHERE ${where}`);
    return Number(row['rows_there']);
  }

  /** Waits until no row of the table, or of those that `where` names, is pending or claimed any more. */
  async retired(table = 'outbox', options: { withinMs?: number; where?: string } = {}): Promise<void> {
    const { withinMs = 60_000, where = 'TRUE' } = options;
    const done = async (): Promise<boolean> =>
      (await this.count(table, `status IN ('pending', 'processing') AND (${where})`)) === 0;
    await this.orTail(() => until(done, { withinMs, what: `all rows of ${table} published` }));
  }

  /**
   * Waits until the server's log stands still, and throws when it then does not for `quietMs`. For a server of the
   * test's own.
   */
  async expectQuiet(quietMs: number): Promise<void> {
    const head = async (): Promise<string> => {
      return formatPosition(await logHead((text) => this.sql(text)));
    };
    let seen = '';
    const still = async (): Promise<boolean> => {
      const before = seen;
      seen = await head();
      return seen === before;
    };
    await until(still, { withinMs: 20_000, what: 'a log that stands still', everyMs: 500 });
    const endMs = performance.now() + quietMs;
    await until(
      async () => {
        const now = await head();
        if (now !== seen) throw new Error(`something is written: from ${seen} to ${now}`);
        return performance.now() >= endMs;
      },
      { withinMs: 60_000 + quietMs, what: 'the end of the quiet', everyMs: 50 },
    );
  }

  /** Records in the bed's topics, or in those named. */
  async records(topics: readonly string[] = this.topics): Promise<number> {
    await using ends = new TopicEnds(this.servers, topics);
    return await ends.records();
  }

  /** The promises, for one table: see `expectDelivered`. */
  expectDelivered(options: DeliveredOptions = {}): Promise<Figures> {
    const { table = 'outbox', where, topic, topics = this.topics, faultInjected = false } = options;
    const source = { table, ...(where === undefined ? {} : { where }), ...(topic === undefined ? {} : { topic }) };
    const rows = options.rows ?? source;
    return this.orTail(() => expectDelivered(this.servers, { topics, rows, faultInjected }));
  }

  config(over: Config = {}): object {
    const { mysql, brokers, database, serverId } = this.servers;
    const said = this.#options.config ?? {};
    const { name = database, start = 'head' } = over;
    const section = (key: 'mysql' | 'kafka' | 'relay' | 'sweep' | 'failures', own: object): object => {
      return { ...own, ...said[key], ...over[key] };
    };
    const outboxes = this.#options.outboxes ?? [{ table: 'outbox', retire: 'mark' }];
    return {
      name,
      ...(start === 'none' ? {} : { start }),
      mysql: section('mysql', { ...mysql, ...this.user, database, serverId }),
      kafka: section('kafka', { brokers }),
      relay: section('relay', {}),
      sweep: section('sweep', {}),
      failures: section('failures', {}),
      outboxes: outboxes.map(({ topic, ...outbox }) => ({
        ...outbox,
        topic: topic?.(this.servers.topic) ?? { column: 'topic' },
      })),
      http: { port: 0, ...said.http, ...over.http },
      log: { level: 'info', format: 'json' },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const relay of this.relays) await relay[Symbol.asyncDispose]();
    // A test's own servers go as a whole, and may be down by now.
    if (this.#options.mysql === undefined) await this.sql(`DROP USER ${this.user.user}`);
    await this.servers[Symbol.asyncDispose]();
  }

  /** What a relay has said last tells more than that something did not happen. */
  async orTail<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const tails = this.relays.map((relay) => `--- relay ${relay.pid}\n${relay.stderr().slice(-3000)}`);
      throw new Error(`${error instanceof Error ? error.message : String(error)}\n${tails.join('\n')}`, {
        cause: error,
      });
    }
  }
}
