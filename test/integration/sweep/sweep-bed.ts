import kafkajs from 'kafkajs';
import type { PoolConnection } from 'mysql2/promise';
import { type Config, RelayBed, type RelayBedOptions } from '../../stack/relay-bed.ts';
import { type CliProcess, startCli } from '../../stack/relay-process.ts';
import { type Exit } from '../../stack/ward.ts';

/** Everything that waits comes again soon. */
const HURRIED = {
  sweep: { intervalMs: 100 },
  failures: { backOffMs: 50, backOffCapMs: 200 },
} satisfies Config;

/** A bed whose relays sweep often and wait little. */
export function sweepBed(options: RelayBedOptions = {}): Promise<RelayBed> {
  const { config = {} } = options;
  return RelayBed.open({
    ...options,
    config: {
      ...config,
      sweep: { ...HURRIED.sweep, ...config.sweep },
      failures: { ...HURRIED.failures, ...config.failures },
    },
  });
}

/** The relay of the bed on its first start; when this returns rows go by the tail. */
export async function startTailing(bed: RelayBed, config: Config = {}): Promise<CliProcess> {
  const relay = await bed.start(config);
  await released(relay, 'everything');
  return relay;
}

/** Waits for the hand-over of a scope of this kind; `after` lines of the log. */
export async function released(relay: CliProcess, scope: string, after = 0): Promise<void> {
  await relay.waitFor('scope-released', { fields: { scope }, after });
}

/** Lines of the log of this event. */
export function said(relay: CliProcess, event: string): number {
  return relay.lines().filter((line) => line.event === event).length;
}

export interface Row {
  readonly topic: string;
  readonly key: string;
  /** Default: an object that names the key. */
  readonly payload?: string;
  /** More columns and their values as SQL. */
  readonly also?: Readonly<Record<string, string>>;
}

/** The text of an INSERT (or REPLACE) of rows that have the same further columns. */
export function insertText(rows: readonly Row[], verb = 'INSERT'): string {
  const also = Object.keys(rows[0].also ?? {});
  const values = rows.map(({ topic, key, payload, also: more = {} }) => {
    const told = [topic, key, payload ?? JSON.stringify({ of: key })].map((text) => `'${text.replaceAll("'", "''")}'`);
    return `(${[...told, ...also.map((column) => more[column])].join(', ')})`;
  });
  const columns = ['topic', 'aggregate_id', 'payload', ...also].join(', ');
  return `${verb} INTO outbox (${columns}) VALUES ${values.join(', ')}`;
}

/** In a session of its own, which ends with it: what it has set does not outlive it. */
export async function inSession<T>(bed: RelayBed, work: (connection: PoolConnection) => Promise<T>): Promise<T> {
  const connection = await bed.servers.pool.getConnection();
  try {
    return await work(connection);
  } finally {
    connection.destroy();
  }
}

/** A command of the command line on the bed's configuration, to its end. */
export async function command(bed: RelayBed, ...args: string[]): Promise<{ exit: Exit; stdout: string }> {
  await using process = await startCli(args, { config: bed.config() });
  const exit = await process.exited;
  return { exit, stdout: process.stdout() };
}

/** What the topic takes, from now on; what is not named is the broker's default again. */
export async function setTopic(bed: RelayBed, name: string, config: Readonly<Record<string, string>>): Promise<void> {
  const admin = bed.servers.kafka.admin();
  await admin.connect();
  try {
    const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }));
    const type = kafkajs.ConfigResourceTypes.TOPIC;
    await admin.alterConfigs({
      validateOnly: false,
      resources: [{ type, name: bed.servers.topic(name), configEntries }],
    });
  } finally {
    await admin.disconnect();
  }
}

/** Columns of a row whose time lies further ahead than brokers take by default: refused for what it is. */
export const REFUSED = { created_at: 'UTC_TIMESTAMP(6) + INTERVAL 3 HOUR' };
/** Of a topic: it takes such rows too. */
export const LENIENT = { 'message.timestamp.after.max.ms': String(2 ** 40) };

/** A MySQL user of the relay's own, which may do what is granted and is gone with the block. */
export class RelayUser implements AsyncDisposable {
  readonly name: string;
  readonly #bed: RelayBed;

  private constructor(bed: RelayBed) {
    this.name = `${bed.servers.database}_relay`;
    this.#bed = bed;
  }

  static async create(bed: RelayBed, mayReadBinlog: boolean): Promise<RelayUser> {
    const user = new RelayUser(bed);
    await bed.sql(`CREATE USER ${user.name} IDENTIFIED BY 'relay-password'`);
    await bed.sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${bed.servers.database}.* TO ${user.name}`);
    if (mayReadBinlog) await user.mayReadBinlog(true);
    return user;
  }

  /** For the configuration. */
  get mysql(): Readonly<Record<string, unknown>> {
    return { user: this.name, password: 'relay-password' };
  }

  /** For connections made from now on; a running dump is ended. */
  async mayReadBinlog(may: boolean): Promise<void> {
    const grants = 'REPLICATION SLAVE, REPLICATION CLIENT ON *.*';
    await this.#bed.sql(may ? `GRANT ${grants} TO ${this.name}` : `REVOKE ${grants} FROM ${this.name}`);
    const running = await this.#bed.sql(
      'SELECT ID FROM information_schema.PROCESSLIST WHERE USER = ? AND COMMAND = ?',
      [this.name, 'Binlog Dump'],
    );
    for (const { ID: id } of running) await this.#bed.sql(`KILL ${String(id)}`);
  }

  /** Statements of this kind that the user has run so far. */
  async statements(kind: string): Promise<number> {
    const [row] = await this.#bed.sql(
      `SELECT COUNT_STAR AS n FROM performance_schema.events_statements_summary_by_user_by_event_name
       WHERE USER = ? AND EVENT_NAME = ?`,
      [this.name, `statement/sql/${kind}`],
    );
    return Number(row['n']);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const relay of this.#bed.relays) await relay[Symbol.asyncDispose]();
    await this.#bed.sql(`DROP USER ${this.name}`);
  }
}
