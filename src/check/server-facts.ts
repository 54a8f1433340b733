import type { Row, Session } from '../store/session.ts';
import { type Asked, asked } from './asked.ts';
import { isAtLeast, parseVersion, type ServerVersion } from './server-version.ts';

/** What the server says of itself. */
export interface ServerFacts {
  readonly version: ServerVersion;
  readonly uuid: string;
  /** As `CURRENT_USER()` has it: `relay@%`. */
  readonly account: string;
  /** Global variables by their names in lower case; what the server does not have is not there. */
  readonly variables: ReadonlyMap<string, string>;
  readonly threadsConnected: number | null;
  /** Null: no binlog is written. */
  readonly log: Asked<LogFacts | null>;
  /** One for each channel from which it replicates. */
  readonly channels: Asked<readonly ChannelFacts[]>;
  /** Ids of the replicas that are registered. */
  readonly replicaIds: Asked<readonly number[]>;
  readonly longTransactions: Asked<readonly LongTransaction[]>;
  /** Whether the session may set `binlog_row_image` (S32). */
  readonly rowImage: Asked<unknown>;
}

export interface LogFacts {
  readonly file: string;
  readonly offset: number;
  readonly doDb: readonly string[];
  readonly ignoreDb: readonly string[];
}

export interface ChannelFacts {
  readonly source: string;
  /** Filters that hold, as `Replicate_Do_DB=app`. */
  readonly filters: readonly string[];
}

export interface LongTransaction {
  /** As in the process list. */
  readonly thread: number;
  readonly seconds: number;
}

const VARIABLES = [
  ...['log_bin', 'binlog_format', 'binlog_row_image', 'binlog_row_metadata', 'binlog_order_commits'],
  ...[
    'binlog_expire_logs_seconds',
    'binlog_expire_logs_auto_purge',
    'expire_logs_days',
    'sync_binlog',
    'innodb_flush_log_at_trx_commit',
  ],
  ...['gtid_mode', 'server_id', 'log_replica_updates', 'log_slave_updates', 'read_only', 'super_read_only'],
  ...['wait_timeout', 'net_write_timeout', 'max_connections', 'max_user_connections'],
  ...['transaction_isolation', 'tx_isolation', 'max_binlog_total_size', 'binlog_space_limit', 'basedir'],
  ...['wsrep_on', 'group_replication_group_name', 'group_replication_single_primary_mode'],
];

/** Transactions that are open for so long are worth a word. */
export const LONG_TRANSACTION_SECONDS = 60;

export async function readServerFacts(session: Session): Promise<ServerFacts> {
  const [me] = await session.rows('asking who we are', 'SELECT VERSION() AS version, CURRENT_USER() AS account');
  const version = parseVersion(String(me['version']));
  return {
    version,
    uuid: session.serverUuid,
    account: String(me['account']),
    variables: await readVariables(session),
    threadsConnected: await readThreads(session),
    log: await asked(() => readLog(session, version)),
    channels: await asked(() => readChannels(session, version)),
    replicaIds: await asked(() => readReplicaIds(session, version)),
    longTransactions: await asked(() => readLongTransactions(session, LONG_TRANSACTION_SECONDS)),
    // The session has asked for it when it was opened, and would not have told.
    rowImage: await asked(() => session.change('setting the row image', "SET SESSION binlog_row_image = 'MINIMAL'")),
  };
}

async function readVariables(session: Session): Promise<ReadonlyMap<string, string>> {
  const list = VARIABLES.map((name) => `'${name}'`).join(', ');
  const rows = await session.rows('reading variables', `SHOW GLOBAL VARIABLES WHERE Variable_name IN (${list})`);
  return new Map(rows.map((row) => [String(row['Variable_name']).toLowerCase(), String(row['Value'])]));
}

async function readThreads(session: Session): Promise<number | null> {
  const rows = await session.rows('counting connections', "SHOW GLOBAL STATUS LIKE 'Threads_connected'");
  return rows.length === 0 ? null : Number(rows[0]['Value']);
}

/** `SHOW MASTER STATUS` is gone from MySQL 8.4 on; its successor came with 8.2 (J1). */
async function readLog(session: Session, version: ServerVersion): Promise<LogFacts | null> {
  const isNew = version.flavour === 'mysql' && isAtLeast(version, 8, 2);
  const sql = isNew ? 'SHOW BINARY LOG STATUS' : 'SHOW MASTER STATUS';
  const rows = await session.rows('asking for the binlog head', sql);
  if (rows.length === 0) return null;
  const [{ File: file, Position: offset, Binlog_Do_DB: doDb, Binlog_Ignore_DB: ignoreDb }] = rows;
  return { file: String(file), offset: Number(offset), doDb: names(doDb), ignoreDb: names(ignoreDb) };
}

const FILTERS = ['Do_DB', 'Ignore_DB', 'Do_Table', 'Ignore_Table', 'Wild_Do_Table', 'Wild_Ignore_Table'];

async function readChannels(session: Session, version: ServerVersion): Promise<ChannelFacts[]> {
  const isNew = isAtLeast(version, 8, 0, 22);
  const mysql = isNew ? 'SHOW REPLICA STATUS' : 'SHOW SLAVE STATUS';
  const sql = version.flavour === 'mysql' ? mysql : 'SHOW ALL SLAVES STATUS';
  const rows = await session.rows('asking what it replicates', sql);
  return rows.map((row) => ({
    source: `${textIn(row, 'Source_Host', 'Master_Host')}:${textIn(row, 'Source_Port', 'Master_Port')}`,
    filters: FILTERS.map((name) => [`Replicate_${name}`, textIn(row, `Replicate_${name}`)])
      .filter(([, value]) => value !== '')
      .map(([name, value]) => `${name}=${value}`),
  }));
}

async function readReplicaIds(session: Session, version: ServerVersion): Promise<number[]> {
  const isNew = version.flavour === 'mysql' && isAtLeast(version, 8, 0, 22);
  const rows = await session.rows('listing replicas', isNew ? 'SHOW REPLICAS' : 'SHOW SLAVE HOSTS');
  return rows.map((row) => Number(textIn(row, 'Server_Id', 'Server_id')));
}

/** `trx_started` is in the zone of the server's machine. */
export async function readLongTransactions(session: Session, olderThanSeconds: number): Promise<LongTransaction[]> {
  const rows = await session.rows(
    'looking for long transactions',
    `SELECT trx_mysql_thread_id AS thread, age FROM (
       SELECT trx_mysql_thread_id,
         TIMESTAMPDIFF(SECOND, trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')) AS age
       FROM information_schema.INNODB_TRX) AS open
     WHERE age >= ? AND trx_mysql_thread_id <> CONNECTION_ID() ORDER BY age DESC LIMIT 100`,
    [olderThanSeconds],
  );
  return rows.map((row) => ({ thread: Number(row['thread']), seconds: Number(row['age']) }));
}

function names(list: unknown): string[] {
  return typeof list === 'string' && list !== '' ? list.split(',').map((name) => name.trim()) : [];
}

function textIn(row: Row, ...keys: readonly string[]): string {
  for (const key of keys) {
    const value = row[key];
    if (typeof value === 'string' || typeof value === 'number') return String(value);
  }
  return '';
}
