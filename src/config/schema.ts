import { z } from 'zod';
import { SHIPPED_COLUMNS } from '../model/outbox-columns.ts';

/**
 * The configuration as people write it. Every message is what is *expected*; the report adds what was found. Keys are
 * optional here even where the relay needs them: what is missing is found with the cross-field checks, so that one run
 * reports everything. Keys ending in `File` name a file that holds the value of the key without `File`.
 */
const text = (expected: string) => z.string({ error: expected }).min(1, { error: expected });
const whole = (expected: string, min: number, max: number) => {
  const range = { error: `${expected} from ${min.toLocaleString('en')} to ${max.toLocaleString('en')}` };
  return z.int(range).min(min, range).max(max, range);
};
const millis = (min: number, max: number) => whole('milliseconds, a whole number', min, max);
const bytes = (min: number, max: number) => whole('bytes, a whole number', min, max);
const choice = <const T extends readonly string[]>(...options: T) =>
  z.enum(options, { error: `one of ${options.join(', ')}` });
const yesOrNo = () => z.boolean({ error: 'true or false' });
const map = <T extends z.core.$ZodLooseShape>(expected: string, shape: T) => z.strictObject(shape, { error: expected });

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
const MIB = 1_048_576;

const port = whole('a port', 1, 65_535);
const path = text('the path of a file');
/** An empty password is one: a server may have none. */
const secret = z.string({ error: 'text in quotes' });
const pem = z.string({ error: 'PEM text' }).regex(/-----BEGIN [A-Z ]+-----/, {
  error: 'PEM text, from "-----BEGIN" on; the path of a file goes under the key that ends in File',
});

const tlsKeys = {
  ca: pem.optional(),
  caFile: path.optional(),
  cert: pem.optional(),
  certFile: path.optional(),
  key: pem.optional(),
  keyFile: path.optional(),
  verify: yesOrNo().default(true),
  serverName: text('a host name').optional(),
};
const tlsExpected = 'true, false, or a map such as {caFile: /etc/ssl/ca.pem}';

const tls = z.union([z.boolean(), map(tlsExpected, tlsKeys)], { error: tlsExpected });

const mysql = map('a map with host, user, password, database', {
  url: text('mysql://user:password@host:3306/database').optional(),
  urlFile: path.optional(),
  host: text('a host name or address').optional(),
  port: port.default(3306),
  user: text('a user name').optional(),
  password: secret.optional(),
  passwordFile: path.optional(),
  database: text('the schema of the tables cdc_relay_%').optional(),
  tls: tls.default(false),
  serverId: whole('a replica id that no other server or replica uses', 1, 4_294_967_295).optional(),
  connectTimeoutMs: millis(100, 10 * MINUTE_MS).default(5_000),
  queryTimeoutMs: millis(100, HOUR_MS).default(10_000),
  heartbeatMs: millis(100, 10 * MINUTE_MS).default(2_000),
});

const sasl = map('a map with mechanism and its credentials', {
  mechanism: choice('plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer').optional(),
  username: text('a user name').optional(),
  password: secret.min(1, { error: 'text in quotes, not empty' }).optional(),
  passwordFile: path.optional(),
  tokenEndpoint: z.url({ protocol: /^https?$/, error: 'a URL such as https://idp.example/oauth2/token' }).optional(),
  clientId: text('a client id').optional(),
  clientSecret: secret.min(1, { error: 'text in quotes, not empty' }).optional(),
  clientSecretFile: path.optional(),
  scope: text('a scope').optional(),
});

const BROKER = /^(\[[0-9a-fA-F:.]+\]|[^\s:/@[\],]+):([1-9]\d{0,4})$/;
const brokersExpected = 'a list such as ["broker1:9092"]';

const kafka = map('a map with brokers', {
  brokers: z
    .array(z.string({ error: '"host:port"' }).regex(BROKER, { error: '"host:port"' }), { error: brokersExpected })
    .min(1, { error: brokersExpected })
    .optional(),
  clientId: text('a name').optional(),
  tls: tls.default(false),
  sasl: sasl.optional(),
  compression: choice('none', 'gzip', 'zstd').default('none'),
  batchBytes: bytes(16_384, 256 * MIB).default(MIB),
  batchRecords: whole('records, a whole number', 1, 100_000).default(2_000),
  connectTimeoutMs: millis(100, 10 * MINUTE_MS).default(5_000),
  requestTimeoutMs: millis(100, 10 * MINUTE_MS).default(30_000),
  createTopics: map('a map with partitions and replicationFactor', {
    partitions: whole('partitions, a whole number', 1, 10_000).default(1),
    replicationFactor: whole('brokers, a whole number', 1, 100).default(1),
  }).optional(),
});

const columnExpected = 'a column name';
type Column = keyof typeof SHIPPED_COLUMNS;
const column = (key: Column) => text(columnExpected).default(SHIPPED_COLUMNS[key]);
const columnOrNone = (key: Column) =>
  text(`${columnExpected}, or null when the table has none`).nullable().default(SHIPPED_COLUMNS[key]);

const columns = map('a map of column names', {
  id: column('id'),
  aggregateId: column('aggregateId'),
  eventType: columnOrNone('eventType'),
  payload: column('payload'),
  headers: columnOrNone('headers'),
  idempotencyKey: column('idempotencyKey'),
  status: columnOrNone('status'),
  availableAt: columnOrNone('availableAt'),
  claimedAt: columnOrNone('claimedAt'),
  claimedBy: columnOrNone('claimedBy'),
  attempts: columnOrNone('attempts'),
  lastError: columnOrNone('lastError'),
  createdAt: columnOrNone('createdAt'),
  publishedAt: columnOrNone('publishedAt'),
});

const outbox = map('a map with table', {
  table: text('a table such as app.outbox').optional(),
  columns: columns.prefault({}),
  topic: map('a map with one of column, fixed, template', {
    column: text(columnExpected).optional(),
    fixed: text('a topic name').optional(),
    template: text('a text such as "orders.{event_type}"').optional(),
  }).prefault({}),
  retire: choice('mark', 'delete', 'keep').default('mark'),
  validateJson: yesOrNo().default(false),
  retention: map('a map with afterMs', {
    afterMs: millis(1_000, 20 * YEAR_MS),
    archive: text('a table such as app.outbox_archive').optional(),
  }).optional(),
  limits: map('a map with pendingRows, pendingAgeMs or both', {
    pendingRows: whole('rows, a whole number', 1, 10_000_000).optional(),
    pendingAgeMs: millis(1_000, YEAR_MS).optional(),
    policy: choice('none', 'refuse').default('none'),
  }).optional(),
});

const outboxesExpected = 'a list such as [{table: app.outbox}]';
const startExpected = 'head, pending, or a position such as {file: binlog.000127, offset: 157}';

export const configSchema = map('a map with name, mysql, kafka, outboxes', {
  name: z
    .string({ error: 'a name' })
    .regex(/^[A-Za-z0-9._-]{1,64}$/, { error: 'a name of up to 64 letters, digits, ".", "_", "-"' })
    .optional(),
  start: z
    .union(
      [
        choice('head', 'pending'),
        map(startExpected, {
          file: z.string({ error: 'a binlog file' }).regex(/.\.\d+$/, { error: 'a binlog file such as binlog.000127' }),
          offset: whole('a byte offset', 4, Number.MAX_SAFE_INTEGER),
        }),
      ],
      { error: startExpected },
    )
    .optional(),
  mysql: mysql.prefault({}),
  kafka: kafka.prefault({}),
  outboxes: z.array(outbox, { error: outboxesExpected }).default([]),
  relay: map('a map', {
    flushMs: millis(1, MINUTE_MS).default(100),
    flushRows: whole('rows, a whole number', 1, 1_000_000).default(4_000),
    maxInFlightBytes: bytes(65_536, 4_096 * MIB).default(32 * MIB),
    maxTransactionBytes: bytes(65_536, 4_096 * MIB).default(64 * MIB),
    shutdownMs: millis(100, HOUR_MS).default(8_000),
    takeOverMs: millis(1, HOUR_MS).default(10_000),
    laneStallMs: millis(100, HOUR_MS).default(10_000),
  }).prefault({}),
  sweep: map('a map', {
    mode: choice('tail', 'sweep').default('tail'),
    intervalMs: millis(10, HOUR_MS).default(1_000),
    batchRows: whole('rows, a whole number', 1, 10_000).default(1_000),
  }).prefault({}),
  failures: map('a map', {
    maxAttempts: whole('attempts, a whole number', 1, 1_000_000).default(10),
    backOffMs: millis(1, HOUR_MS).default(1_000),
    backOffCapMs: millis(1, 24 * HOUR_MS).default(60_000),
    onExhausted: choice('release', 'block').default('release'),
    deadLetterTopic: text('a topic name').optional(),
  }).prefault({}),
  http: map('a map', {
    host: text('an address to listen on').default('127.0.0.1'),
    port: whole('a port; 0 for none,', 0, 65_535).default(9_465),
    token: secret.min(16, { error: 'text in quotes, 16 characters or more' }).optional(),
    tokenFile: path.optional(),
    readyLagMs: millis(1_000, YEAR_MS).default(MINUTE_MS),
  }).prefault({}),
  log: map('a map with level, format', {
    level: choice('debug', 'info', 'warn', 'error').default('info'),
    format: choice('auto', 'json', 'pretty').default('auto'),
  }).prefault({}),
});

/** A configuration that the schema has passed, defaults filled in. */
export type Config = z.output<typeof configSchema>;

/** Keys that hold a secret, as written in `pathText`, list indices left empty. */
export const SECRET_KEYS: ReadonlySet<string> = new Set([
  'mysql.url',
  'mysql.password',
  'mysql.tls.key',
  'kafka.tls.key',
  'kafka.sasl.password',
  'kafka.sasl.clientSecret',
  'http.token',
]);
