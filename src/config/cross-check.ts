import { identifierProblem } from '../model/identifier.ts';
import { isTree, type Path, type Tree, valueAt } from './paths.ts';
import type { Config } from './schema.ts';
import { parseTableName, type TableName } from './table-name.ts';
import { columnProblem, isTopicName, templateProblem } from './topic-rule.ts';

/** Takes the faults. What is about a key that is faulty already is not reported a second time. */
export type Report = (path: Path, message: string) => void;

/** What no key can tell by itself: keys that must be there, and keys that must fit each other. */
export function crossCheck(config: Config, report: Report): void {
  if (config.name === undefined) {
    report(['name'], 'missing; expected the name of this relay: its position is saved under it');
  }
  checkMysql(config, report);
  checkKafka(config, report);
  checkOutboxes(config, report);
  checkRelay(config, report);
  checkFailures(config, report);
}

function checkMysql({ mysql }: Config, report: Report): void {
  if (mysql.host === undefined) report(['mysql', 'host'], 'missing; expected a host name or address');
  if (mysql.user === undefined) report(['mysql', 'user'], 'missing; expected a user name');
  if (mysql.password === undefined) {
    report(['mysql', 'password'], 'missing; expected password, passwordFile or CDC_RELAY_MYSQL_PASSWORD ("" for none)');
  }
  if (mysql.database === undefined) {
    report(['mysql', 'database'], "missing; expected the schema of the relay's own tables, cdc_relay_%");
  } else checkIdentifier(['mysql', 'database'], mysql.database, report);
  checkTls(['mysql', 'tls'], mysql.tls, report);
  // The server waits up to 1 s for a row lock on the relay's behalf; ending the query before that kills the connection.
  if (mysql.queryTimeoutMs < 2_000) {
    report(
      ['mysql', 'queryTimeoutMs'],
      `found ${mysql.queryTimeoutMs}; expected 2,000 or more: a statement may wait 1 s for a lock`,
    );
  }
}

function checkTls(path: Path, tls: Config['mysql']['tls'], report: Report): void {
  if (typeof tls === 'boolean') return;
  if (tls.cert !== undefined && tls.key === undefined) report([...path, 'key'], 'missing; cert needs its key');
  if (tls.key !== undefined && tls.cert === undefined) report([...path, 'cert'], 'missing; key needs its cert');
}

function checkKafka({ kafka, relay }: Config, report: Report): void {
  if (kafka.brokers === undefined) report(['kafka', 'brokers'], 'missing; expected a list such as ["broker1:9092"]');
  kafka.brokers?.forEach((broker, index) => {
    if (Number(broker.slice(broker.lastIndexOf(':') + 1)) > 65_535) {
      report(['kafka', 'brokers', index], 'a port over 65,535');
    }
  });
  checkTls(['kafka', 'tls'], kafka.tls, report);
  if (kafka.sasl !== undefined) checkSasl(kafka.sasl, report);
  if (kafka.batchBytes > relay.maxInFlightBytes) {
    report(
      ['kafka', 'batchBytes'],
      `${size(kafka.batchBytes)} is more than relay.maxInFlightBytes, ${size(relay.maxInFlightBytes)}`,
    );
  }
}

const LOGIN = ['username', 'password'] as const;
const TOKEN = ['tokenEndpoint', 'clientId', 'clientSecret'] as const;

function checkSasl(sasl: NonNullable<Config['kafka']['sasl']>, report: Report): void {
  const path = ['kafka', 'sasl'];
  if (sasl.mechanism === undefined) {
    report([...path, 'mechanism'], 'missing; expected one of plain, scram-sha-256, scram-sha-512, oauthbearer');
    return;
  }
  const byToken = sasl.mechanism === 'oauthbearer';
  for (const key of byToken ? TOKEN : LOGIN) {
    if (sasl[key] === undefined) report([...path, key], `missing; ${sasl.mechanism} needs it`);
  }
  for (const key of byToken ? LOGIN : [...TOKEN, 'scope' as const]) {
    if (sasl[key] !== undefined) report([...path, key], `${sasl.mechanism} has no ${key}`);
  }
}

function checkOutboxes(config: Config, report: Report): void {
  if (config.outboxes.length === 0) report(['outboxes'], 'missing; expected a list such as [{table: app.outbox}]');
  const kept = config.outboxes.findIndex(({ retire }) => retire === 'keep');
  if (config.start === 'pending' && kept >= 0) {
    report(
      ['start'],
      `pending does not go with retire: keep (outboxes[${kept}]): nothing tells which rows are pending`,
    );
  }
  if (config.sweep.mode === 'sweep' && kept >= 0) {
    report(
      ['sweep', 'mode'],
      `sweep does not go with retire: keep (outboxes[${kept}]): nothing tells which rows are pending`,
    );
  }
  const seen = new Map<string, number>();
  config.outboxes.forEach((outbox, index) => {
    const path = ['outboxes', index];
    checkTable(config, index, seen, report);
    for (const [key, name] of Object.entries(outbox.columns)) {
      if (name !== null) checkIdentifier([...path, 'columns', key], name, report);
    }
    checkTopic(outbox, [...path, 'topic'], report);
    checkRetire(outbox, path, report);
    checkRetention(config, index, report);
    checkLimits(outbox, [...path, 'limits'], report);
  });
}

function checkTable({ mysql, outboxes }: Config, index: number, seen: Map<string, number>, report: Report): void {
  const path = ['outboxes', index, 'table'];
  const text = outboxes[index].table;
  if (text === undefined) {
    report(path, 'missing; expected a table such as app.outbox');
    return;
  }
  const name = parseTableName(text);
  if (name === null) {
    report(path, 'found a text that names no table; expected schema.table, in backticks where a name has a dot');
    return;
  }
  for (const part of [name.schema, name.table]) if (part !== null) checkIdentifier(path, part, report);
  if (name.table.startsWith('cdc_relay_')) report(path, "cdc_relay_% are the relay's own tables");
  const full = JSON.stringify([name.schema ?? mysql.database ?? '', name.table]);
  const first = seen.get(full);
  if (first !== undefined) report(path, `the same table as outboxes[${first}]`);
  else seen.set(full, index);
}

function checkIdentifier(path: Path, name: string, report: Report): void {
  const problem = identifierProblem(name);
  if (problem !== null) report(path, `not a name that MySQL can have: ${problem}`);
}

function checkTopic(outbox: Config['outboxes'][number], path: Path, report: Report): void {
  const { column, fixed, template } = outbox.topic;
  const given = Object.entries({ column, fixed, template }).filter(([, value]) => value !== undefined);
  if (given.length > 1)
    report(path, `found ${given.map(([key]) => key).join(' and ')}; expected one of column, fixed, template`);
  if (fixed !== undefined && !isTopicName(fixed)) {
    report([...path, 'fixed'], 'not a topic name; expected up to 249 letters, digits, ".", "_", "-"');
  }
  if (column !== undefined) {
    checkIdentifier([...path, 'column'], column, report);
    const problem = columnProblem(column, outbox);
    if (problem !== null) report([...path, 'column'], problem);
  }
  if (template !== undefined) {
    const problem = templateProblem(template, outbox);
    if (problem !== null) report([...path, 'template'], problem);
  }
}

/** The columns that keep a row's state while it waits and when it is done. */
const STATE = ['status', 'availableAt', 'claimedAt', 'claimedBy', 'attempts', 'lastError'] as const;

function checkRetire({ columns, retire }: Config['outboxes'][number], path: Path, report: Report): void {
  if (retire === 'keep') return;
  for (const key of retire === 'mark' ? [...STATE, 'publishedAt' as const] : STATE) {
    if (columns[key] === null) report([...path, 'columns', key], `found null; retire: ${retire} needs the column`);
  }
}

function checkRetention({ mysql, outboxes }: Config, index: number, report: Report): void {
  const { retention, retire, table } = outboxes[index];
  if (retention === undefined) return;
  const path = ['outboxes', index, 'retention'];
  if (retire !== 'mark') report(path, `found retire: ${retire}; only rows that are marked as published can age`);
  if (retention.archive === undefined) return;
  const archivePath = [...path, 'archive'];
  const archive = parseTableName(retention.archive);
  if (archive === null) {
    report(archivePath, 'found a text that names no table; expected schema.table, in backticks where a name has a dot');
    return;
  }
  for (const part of [archive.schema, archive.table]) if (part !== null) checkIdentifier(archivePath, part, report);
  if (archive.table.startsWith('cdc_relay_')) report(archivePath, "cdc_relay_% are the relay's own tables");
  const full = (name: TableName, beside: string): string => JSON.stringify([name.schema ?? beside, name.table]);
  const database = mysql.database ?? '';
  const own = table === undefined ? null : parseTableName(table);
  const taken = outboxes.findIndex(({ table: other }) => {
    const name = other === undefined ? null : parseTableName(other);
    return name !== null && full(name, database) === full(archive, own?.schema ?? database);
  });
  if (taken >= 0) report(archivePath, `the table of outboxes[${taken}]; expected one that the relay does not read`);
}

function checkLimits({ limits, retire }: Config['outboxes'][number], path: Path, report: Report): void {
  if (limits === undefined) return;
  if (retire === 'keep') report(path, 'found retire: keep; nothing tells which rows are pending');
  if (limits.pendingRows === undefined && limits.pendingAgeMs === undefined) {
    report(path, 'expected pendingRows, pendingAgeMs or both');
  }
}

function checkFailures({ failures, outboxes }: Config, report: Report): void {
  const { backOffMs, backOffCapMs, deadLetterTopic } = failures;
  if (backOffCapMs < backOffMs) {
    report(['failures', 'backOffCapMs'], `found ${backOffCapMs}; expected failures.backOffMs, ${backOffMs}, or more`);
  }
  if (deadLetterTopic === undefined) return;
  const path = ['failures', 'deadLetterTopic'];
  if (!isTopicName(deadLetterTopic)) {
    report(path, 'not a topic name; expected up to 249 letters, digits, ".", "_", "-"');
  }
  const taken = outboxes.findIndex(({ topic }) => topic.fixed === deadLetterTopic);
  if (taken >= 0) report(path, `the topic of outboxes[${taken}]; its consumers expect no dead letters`);
}

function checkRelay({ relay }: Config, report: Report): void {
  const { takeOverMs, flushMs, shutdownMs } = relay;
  // The server counts wait_timeout in whole seconds, and the lock's connection answers every third of it.
  if (takeOverMs <= 2_000) report(['relay', 'takeOverMs'], `found ${takeOverMs}; expected more than 2,000`);
  if (flushMs * 3 > Math.max(takeOverMs, 2_001)) {
    report(['relay', 'flushMs'], `found ${flushMs}; expected at most a third of relay.takeOverMs, ${takeOverMs}`);
  }
  if (shutdownMs < flushMs)
    report(['relay', 'shutdownMs'], `found ${shutdownMs}; expected relay.flushMs, ${flushMs}, or more`);
}

const size = (bytes: number): string => `${bytes.toLocaleString('en')} bytes`;

/** Two keys of one source that exclude each other: a value and the file that holds it. */
export function checkRivals(tree: Tree, report: Report, path: Path = []): void {
  const here = valueAt(tree, path);
  if (Array.isArray(here)) here.forEach((_, index) => checkRivals(tree, report, [...path, index]));
  if (!isTree(here)) return;
  for (const name of Object.keys(here)) {
    const other = name.slice(0, -'File'.length);
    if (name.endsWith('File') && Object.hasOwn(here, other))
      report([...path, name], `given beside ${other}; expected one of them`);
    checkRivals(tree, report, [...path, name]);
  }
}
