import type { Finding } from '../../../src/check/finding.ts';
import { parseVersion } from '../../../src/check/server-version.ts';
import type { ServerFacts } from '../../../src/check/server-facts.ts';
import type { OutboxShape } from '../../../src/check/table-facts.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { complete, settingsOf } from '../../../src/config/settings.ts';
import { type Fault } from '../../../src/model/fault.ts';
import type { Settings } from '../../../src/model/settings.ts';

/** A server that nothing is wrong with. */
export function goodServer(
  over: Partial<ServerFacts> = {},
  variables: Readonly<Record<string, string>> = {},
): ServerFacts {
  return {
    version: parseVersion('8.4.3'),
    uuid: '3f0c',
    account: 'relay@%',
    threadsConnected: 12,
    log: { known: true, value: { file: 'binlog.000001', offset: 157, doDb: [], ignoreDb: [] } },
    channels: { known: true, value: [] },
    replicaIds: { known: true, value: [] },
    longTransactions: { known: true, value: [] },
    rowImage: { known: true, value: null },
    ...over,
    variables: new Map(
      Object.entries({
        log_bin: 'ON',
        binlog_format: 'ROW',
        binlog_row_image: 'FULL',
        binlog_row_metadata: 'FULL',
        binlog_order_commits: 'ON',
        binlog_expire_logs_seconds: '2592000',
        sync_binlog: '1',
        innodb_flush_log_at_trx_commit: '1',
        gtid_mode: 'ON',
        server_id: '1',
        log_replica_updates: 'ON',
        read_only: 'OFF',
        super_read_only: 'OFF',
        wait_timeout: '28800',
        net_write_timeout: '60',
        max_connections: '151',
        max_user_connections: '0',
        ...variables,
      }),
    ),
  };
}

export const DENIED: { readonly known: false; readonly why: Fault } = {
  known: false,
  why: { code: 'MYSQL_ACCESS_DENIED', disposition: 'halt', detail: 'ER_SPECIFIC_ACCESS_DENIED_ERROR' },
};

export function settings(over: object = {}): Settings {
  const config = configSchema.parse({
    name: 'orders',
    mysql: { host: '127.0.0.1', user: 'relay', password: '', database: 'app', serverId: 4_000_000_000 },
    kafka: { brokers: ['127.0.0.1:9092'] },
    outboxes: [{ table: 'app.outbox' }],
    ...over,
  });
  return settingsOf(complete(config));
}

/** The outbox as shipped. */
export function shippedShape(over: Partial<OutboxShape> = {}): OutboxShape {
  const column = (name: string, dataType: string, columnType = dataType, octetLength: number | null = null) => {
    return {
      name,
      dataType,
      columnType,
      octetLength,
      characterSet: /char|enum/.test(dataType) ? 'utf8mb4' : null,
      default: null,
    };
  };
  return {
    presence: 'there',
    engine: 'InnoDB',
    isView: false,
    createdAtSeconds: 0,
    primaryKey: ['id'],
    waitingIndex: 'waiting',
    rowsEstimate: 0,
    columns: [
      column('id', 'bigint', 'bigint unsigned'),
      column('topic', 'varchar', 'varchar(249)', 249),
      column('aggregate_id', 'varchar', 'varchar(128)', 512),
      column('event_type', 'varchar', 'varchar(128)', 512),
      column('payload', 'json'),
      column('headers', 'json'),
      column('idempotency_key', 'binary', 'binary(16)', 16),
      { ...column('status', 'enum', "enum('pending','processing','published','failed')"), default: 'pending' },
      column('available_at', 'datetime', 'datetime(6)'),
      column('claimed_at', 'datetime', 'datetime(6)'),
      column('claimed_by', 'binary', 'binary(16)', 16),
      column('attempts', 'int', 'int unsigned'),
      column('last_error', 'varchar', 'varchar(1000)', 4000),
      column('created_at', 'datetime', 'datetime(6)'),
      column('published_at', 'datetime', 'datetime(6)'),
    ],
    ...over,
  };
}

/** `severity check: fact`, what is good left out. */
export function told(findings: readonly Finding[]): string[] {
  return findings
    .filter(({ severity }) => severity !== 'good')
    .map(({ severity, check, fact }) => `${severity} ${check}: ${fact}`);
}
