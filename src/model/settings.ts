import type { Secret } from './secret.ts';

/** What the parts need to know; made from the configuration, which alone knows files, variables and flags. */

export interface TlsSettings {
  /** PEM text. */
  readonly ca?: Secret;
  readonly cert?: Secret;
  readonly key?: Secret;
  /** False only on the user's word: no check of certificate and host name. */
  readonly verify: boolean;
  /** The name to check, where it is not the host that is dialled. */
  readonly serverName?: string;
}

export interface MysqlSettings {
  readonly host: string;
  readonly port: number;
  /** No secret: where it stands in the file of a URL it changes together with the password. */
  readonly user: Secret;
  readonly password: Secret;
  readonly tls: TlsSettings | null;
  /** The replica id of the dump connection; must be its own on the server. */
  readonly serverId: number;
  readonly connectTimeoutMs: number;
  readonly queryTimeoutMs: number;
  readonly heartbeatMs: number;
  /** Schema of the relay's own tables (`cdc_relay_%`). */
  readonly database: string;
}

export type SaslSettings =
  | {
      readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
      readonly username: string;
      readonly password: Secret;
    }
  | {
      readonly mechanism: 'oauthbearer';
      readonly tokenEndpoint: string;
      readonly clientId: string;
      readonly clientSecret: Secret;
      readonly scope?: string;
    };

export type Compression = 'none' | 'gzip' | 'zstd';

export interface KafkaSettings {
  readonly brokers: readonly string[];
  readonly clientId: string;
  readonly tls: TlsSettings | null;
  readonly sasl: SaslSettings | null;
  readonly compression: Compression;
  /** Largest batch under construction, records and header. */
  readonly batchBytes: number;
  readonly batchRecords: number;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** Topics are never created unless this is set. */
  readonly createTopics: { readonly partitions: number; readonly replicationFactor: number } | null;
}

/** Where a row's topic comes from: a column, one name for all, or text with `{column}` in it. */
export type TopicRule =
  | { readonly kind: 'column'; readonly column: string }
  | { readonly kind: 'fixed'; readonly topic: string }
  | { readonly kind: 'template'; readonly template: string };

export type Retire = 'mark' | 'delete' | 'keep';

/** Column names of one outbox table; null = the table has no such column. */
export interface OutboxColumns {
  readonly id: string;
  readonly aggregateId: string;
  readonly eventType: string | null;
  readonly payload: string;
  readonly headers: string | null;
  readonly idempotencyKey: string;
  /** The status columns: `mark` and `delete` need them. */
  readonly status: string | null;
  readonly availableAt: string | null;
  readonly claimedAt: string | null;
  readonly claimedBy: string | null;
  readonly attempts: string | null;
  readonly lastError: string | null;
  readonly createdAt: string | null;
  readonly publishedAt: string | null;
}

export interface OutboxSettings {
  readonly schema: string;
  readonly table: string;
  readonly columns: OutboxColumns;
  readonly topic: TopicRule;
  readonly retire: Retire;
  /** True: a payload that is no JSON text fails its row (for text columns; a JSON column cannot hold any other). */
  readonly validateJson: boolean;
  /** What becomes of published rows; null = they stay. */
  readonly retention: RetentionSettings | null;
  /** What is too many, or too long, to wait; null = no limit. */
  readonly limits: LimitSettings | null;
}

/** Published rows older than `afterMs` are deleted, or moved into a table with the same columns. */
export interface RetentionSettings {
  readonly afterMs: number;
  readonly archive: { readonly schema: string; readonly table: string } | null;
}

/** `refuse`: a flag in MySQL says so to the producers while a limit is passed. */
export interface LimitSettings {
  readonly pendingRows: number | null;
  readonly pendingAgeMs: number | null;
  readonly policy: 'none' | 'refuse';
}

/** Where to begin when no position is saved yet. */
export type StartAt =
  | { readonly kind: 'head' }
  | { readonly kind: 'pending' }
  | { readonly kind: 'position'; readonly file: string; readonly offset: number };

export interface RelaySettings {
  /** Row of the offsets table; one relay of this name leads at a time. */
  readonly name: string;
  /** Null: not said; refused when an outbox table already has rows. */
  readonly start: StartAt | null;
  readonly flushMs: number;
  readonly flushRows: number;
  /** All batch buffers together. */
  readonly maxInFlightBytes: number;
  /** Row events of one open transaction. */
  readonly maxTransactionBytes: number;
  readonly shutdownMs: number;
  /** Take-over from a holder that has vanished: `wait_timeout` of the leader's connection. */
  readonly takeOverMs: number;
  /** A lane that has not delivered for so long leaves memory: its topic-partition is parked. */
  readonly laneStallMs: number;
}

/** The sweep: what is pending and not the tail's. */
export interface SweepSettings {
  /** `sweep`: the binlog is not read at all, every row goes by the sweep. */
  readonly mode: 'tail' | 'sweep';
  readonly intervalMs: number;
  readonly batchRows: number;
}

/** What becomes of a row that Kafka refuses. */
export interface FailureSettings {
  /** Attempts that are the row's own fault; then it is `failed`. */
  readonly maxAttempts: number;
  readonly backOffMs: number;
  readonly backOffCapMs: number;
  /** `block`: later rows of its aggregate wait until somebody acts. */
  readonly onExhausted: 'release' | 'block';
  /** Failed rows are also sent there; null = nowhere. */
  readonly deadLetterTopic: string | null;
}

/** What the relay says about itself: health, status, metrics. */
export interface HttpSettings {
  readonly host: string;
  /** 0: it does not listen. */
  readonly port: number;
  /** What status and metrics are only given for; null: for nothing. */
  readonly token: Secret | null;
  /** With a greater lag the relay is not ready. */
  readonly readyLagMs: number;
}

export interface Settings {
  readonly relay: RelaySettings;
  readonly sweep: SweepSettings;
  readonly failures: FailureSettings;
  readonly mysql: MysqlSettings;
  readonly kafka: KafkaSettings;
  readonly outboxes: readonly OutboxSettings[];
  readonly http: HttpSettings;
}
