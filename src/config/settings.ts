import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { SHIPPED_TOPIC_COLUMN } from '../model/outbox-columns.ts';
import type { Secret } from '../model/secret.ts';
import type {
  HttpSettings,
  KafkaSettings,
  LimitSettings,
  MysqlSettings,
  OutboxSettings,
  RetentionSettings,
  SaslSettings,
  Settings,
  StartAt,
  TlsSettings,
  TopicRule,
} from '../model/settings.ts';
import type { Config } from './schema.ts';
import { parseTableName } from './table-name.ts';

/** Fills in what depends on other keys. */
export function complete(config: Config): Config {
  const name = config.name!;
  return {
    ...config,
    mysql: { ...config.mysql, serverId: config.mysql.serverId ?? derivedServerId(name, hostname()) },
    kafka: { ...config.kafka, clientId: config.kafka.clientId ?? `cdc-relay-${name}` },
    outboxes: config.outboxes.map((outbox) =>
      Object.keys(outbox.topic).length > 0 ? outbox : { ...outbox, topic: { column: SHIPPED_TOPIC_COLUMN } },
    ),
  };
}

/** What stands at a path of the configuration: the value that was found, or the file that it came from. */
export type SecretAt = (path: string, value: string) => Secret;

/** The settings that a complete configuration without faults stands for. */
export function settingsOf(config: Config, secretAt: SecretAt = (_, value) => value): Settings {
  return {
    relay: { name: config.name!, start: startOf(config.start), ...config.relay },
    sweep: config.sweep,
    failures: { ...config.failures, deadLetterTopic: config.failures.deadLetterTopic ?? null },
    mysql: mysqlOf(config.mysql, secretAt),
    kafka: kafkaOf(config.kafka, secretAt),
    outboxes: config.outboxes.map((outbox) => outboxOf(outbox, config.mysql.database!)),
    http: httpOf(config.http, secretAt),
  };
}

function httpOf({ host, port, token, readyLagMs }: Config['http'], secretAt: SecretAt): HttpSettings {
  return { host, port, token: token === undefined ? null : secretAt('http.token', token), readyLagMs };
}

function startOf(start: Config['start']): StartAt | null {
  if (start === undefined) return null;
  return typeof start === 'string' ? { kind: start } : { kind: 'position', ...start };
}

function mysqlOf(mysql: Config['mysql'], secretAt: SecretAt): MysqlSettings {
  return {
    host: mysql.host!,
    port: mysql.port,
    user: secretAt('mysql.user', mysql.user!),
    password: secretAt('mysql.password', mysql.password!),
    database: mysql.database!,
    tls: tlsOf(mysql.tls, 'mysql.tls', secretAt),
    serverId: mysql.serverId!,
    connectTimeoutMs: mysql.connectTimeoutMs,
    queryTimeoutMs: mysql.queryTimeoutMs,
    heartbeatMs: mysql.heartbeatMs,
  };
}

/**
 * A replica id that is the same at each start and another one for each relay and machine: in the upper half of the
 * 32 bits, where hand-numbered servers are not.
 */
export function derivedServerId(name: string, host: string): number {
  const hash = createHash('sha256').update(`${name}\0${host}`).digest().readUInt32BE(0);
  return 0x8000_0000 + (hash % 0x7fff_ffff);
}

function tlsOf(tls: Config['mysql']['tls'], path: string, secretAt: SecretAt): TlsSettings | null {
  if (typeof tls === 'boolean') return tls ? { verify: true } : null;
  const { ca, cert, key, serverName } = tls;
  return {
    verify: tls.verify,
    ...(ca === undefined ? {} : { ca: secretAt(`${path}.ca`, ca) }),
    ...(cert === undefined ? {} : { cert: secretAt(`${path}.cert`, cert) }),
    ...(key === undefined ? {} : { key: secretAt(`${path}.key`, key) }),
    ...(serverName === undefined ? {} : { serverName }),
  };
}

function kafkaOf(kafka: Config['kafka'], secretAt: SecretAt): KafkaSettings {
  return {
    brokers: kafka.brokers!,
    clientId: kafka.clientId!,
    tls: tlsOf(kafka.tls, 'kafka.tls', secretAt),
    sasl: kafka.sasl === undefined ? null : saslOf(kafka.sasl, secretAt),
    compression: kafka.compression,
    batchBytes: kafka.batchBytes,
    batchRecords: kafka.batchRecords,
    connectTimeoutMs: kafka.connectTimeoutMs,
    requestTimeoutMs: kafka.requestTimeoutMs,
    createTopics: kafka.createTopics ?? null,
  };
}

function saslOf(sasl: NonNullable<Config['kafka']['sasl']>, secretAt: SecretAt): SaslSettings {
  const mechanism = sasl.mechanism!;
  if (mechanism !== 'oauthbearer') {
    const password = secretAt('kafka.sasl.password', sasl.password!);
    return { mechanism, username: sasl.username!, password };
  }
  return {
    mechanism,
    tokenEndpoint: sasl.tokenEndpoint!,
    clientId: sasl.clientId!,
    clientSecret: secretAt('kafka.sasl.clientSecret', sasl.clientSecret!),
    ...(sasl.scope === undefined ? {} : { scope: sasl.scope }),
  };
}

function outboxOf(outbox: Config['outboxes'][number], database: string): OutboxSettings {
  const { schema, table } = parseTableName(outbox.table!)!;
  return {
    schema: schema ?? database,
    table,
    columns: outbox.columns,
    topic: topicOf(outbox.topic),
    retire: outbox.retire,
    validateJson: outbox.validateJson,
    retention: retentionOf(outbox.retention, schema ?? database),
    limits: limitsOf(outbox.limits),
  };
}

/** An archive that is named without its schema is beside its outbox. */
function retentionOf(retention: Config['outboxes'][number]['retention'], beside: string): RetentionSettings | null {
  if (retention === undefined) return null;
  const { afterMs, archive } = retention;
  if (archive === undefined) return { afterMs, archive: null };
  const { schema, table } = parseTableName(archive)!;
  return { afterMs, archive: { schema: schema ?? beside, table } };
}

function limitsOf(limits: Config['outboxes'][number]['limits']): LimitSettings | null {
  if (limits === undefined) return null;
  const { pendingRows, pendingAgeMs, policy } = limits;
  return { pendingRows: pendingRows ?? null, pendingAgeMs: pendingAgeMs ?? null, policy };
}

function topicOf({ column, fixed, template }: Config['outboxes'][number]['topic']): TopicRule {
  if (fixed !== undefined) return { kind: 'fixed', topic: fixed };
  if (template !== undefined) return { kind: 'template', template };
  return { kind: 'column', column: column! };
}
