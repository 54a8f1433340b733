import { SHIPPED_COLUMNS, SHIPPED_TOPIC_COLUMN } from '../model/outbox-columns.ts';
import type { OutboxColumns, OutboxSettings, TopicRule } from '../model/settings.ts';
import type { TableColumn, TableShape } from './table-shape.ts';

/** Keys of columns that the relay adds where they are missing, because marking and deleting need them. */
export const STATE_KEYS = ['status', 'availableAt', 'claimedAt', 'claimedBy', 'attempts', 'lastError'] as const;

/** How the columns of a table are to be understood. */
export interface Mapping {
  readonly outbox: OutboxSettings;
  /** Something else than what the configuration says of this table. */
  readonly isNew: boolean;
  /** What keeps the table from being adopted as it is, for people. */
  readonly problems: readonly string[];
}

/** Names that are common for what a column is; compared without case and underscores. */
const USUAL: Readonly<Partial<Record<keyof OutboxColumns, readonly string[]>>> = {
  aggregateId: ['aggregateid', 'aggregatekey', 'entityid', 'messagekey', 'partitionkey'],
  eventType: ['eventtype', 'type', 'eventname', 'messagetype'],
  payload: ['payload', 'data', 'body', 'message', 'event', 'content'],
  headers: ['headers', 'metadata'],
  idempotencyKey: ['idempotencykey', 'eventid', 'messageid', 'uuid'],
  createdAt: ['createdat', 'created', 'timestamp', 'occurredat', 'occurredon', 'createdon'],
};
const DEBEZIUM_TYPE = ['aggregatetype'];
/** What Debezium's outbox event router calls its topics by default (`route.topic.replacement`). */
const DEBEZIUM_TOPIC = 'outbox.event';
const TIMES = ['datetime', 'timestamp'];
const STATES = ['pending', 'processing', 'published', 'failed'];

/**
 * What the configuration says holds where the table has it; the rest is guessed by name. `configured` null: the table
 * is not in the configuration.
 */
export function mapColumns(
  shape: TableShape,
  schema: string,
  table: string,
  configured: OutboxSettings | null,
): Mapping {
  const problems: string[] = [];
  const base = configured ?? unconfigured(schema, table);
  const named = (name: string | null) => shape.columns.find((each) => each.name.toLowerCase() === name?.toLowerCase());
  const usual = (names: readonly string[] = [], fits: (column: TableColumn) => boolean = () => true) =>
    names
      .map((name) => shape.columns.find((each) => plain(each.name) === name && fits(each)))
      .find((each) => each !== undefined);

  if (shape.engine.toLowerCase() !== 'innodb') problems.push(`its engine is ${shape.engine}; InnoDB is needed`);
  const id = named(base.columns.id)?.name ?? shape.primaryKey.at(0) ?? base.columns.id;
  if (shape.primaryKey.length !== 1 || shape.primaryKey[0].toLowerCase() !== id.toLowerCase()) {
    problems.push(
      `its primary key is ${shape.primaryKey.join(', ') || 'missing'}; one column is needed, as columns.id`,
    );
  }
  const isTime = ({ type }: TableColumn) => TIMES.includes(type);
  const columns: Record<string, string | null> = { ...base.columns, id };
  for (const key of ['aggregateId', 'payload'] as const) {
    const found = named(base.columns[key]) ?? usual(USUAL[key]);
    if (found === undefined) problems.push(`no column for columns.${key}`);
    else columns[key] = found.name;
  }
  for (const key of ['eventType', 'headers', 'createdAt'] as const) {
    const fits = key === 'createdAt' ? isTime : undefined;
    columns[key] = (named(base.columns[key]) ?? usual(USUAL[key], fits))?.name ?? null;
  }
  const key = named(base.columns.idempotencyKey) ?? usual(USUAL.idempotencyKey) ?? named(id);
  if (key === undefined) problems.push('no column for columns.idempotencyKey');
  else if (key.name === id && /int$/.test(key.type)) {
    problems.push(
      `no column for columns.idempotencyKey: ${id} counts, and numbers of two tables are the same for consumers`,
    );
  } else columns['idempotencyKey'] = key.name;
  const topic = topicOf(base.topic, named, usual(DEBEZIUM_TYPE), problems);
  const outbox = { ...base, columns: columns as unknown as OutboxColumns, topic };
  checkState(outbox, named, problems);
  const same = (a: object, b: object) => JSON.stringify(a) === JSON.stringify(b);
  const isNew = configured === null || !same(configured.columns, outbox.columns) || !same(configured.topic, topic);
  return { outbox, isNew, problems };
}

function topicOf(
  rule: TopicRule,
  named: (name: string) => TableColumn | undefined,
  debezium: TableColumn | undefined,
  problems: string[],
): TopicRule {
  if (rule.kind === 'fixed') return rule;
  const columns =
    rule.kind === 'column' ? [rule.column] : [...rule.template.matchAll(/\{([^{}]+)\}/g)].map((m) => m[1]);
  if (columns.every((name) => named(name) !== undefined)) return rule;
  if (debezium !== undefined) return { kind: 'template', template: `${DEBEZIUM_TOPIC}.{${debezium.name}}` };
  problems.push(`no column for the topic: say outboxes[].topic (column, fixed or template)`);
  return rule;
}

/** A column of the name of one of ours that means something else. */
function checkState(
  { columns, retire }: OutboxSettings,
  named: (name: string | null) => TableColumn | undefined,
  problems: string[],
): void {
  if (retire === 'keep') return;
  const status = named(columns.status);
  if (status !== undefined) {
    const labels = [...status.declared.matchAll(/'([^']*)'/g)].map((match) => match[1]);
    const fits = status.type === 'enum' ? STATES.every((state) => labels.includes(state)) : /char$/.test(status.type);
    if (!fits)
      problems.push(
        `its column ${status.name} (${status.declared}) is not for our states: columns.status: another name`,
      );
  }
  for (const key of ['availableAt', 'claimedAt', 'publishedAt'] as const) {
    const column = named(columns[key]);
    if (column !== undefined && !TIMES.includes(column.type)) {
      problems.push(`its column ${column.name} (${column.declared}) is no time: columns.${key}: another name`);
    }
  }
}

/** The entry of `outboxes` for the configuration: what is not the default. */
export function configEntry({ schema, table, columns, topic, retire }: OutboxSettings): object {
  const own = Object.entries(columns).filter(([key, name]) => SHIPPED_COLUMNS[key as keyof OutboxColumns] !== name);
  const isDefaultTopic = topic.kind === 'column' && topic.column === SHIPPED_TOPIC_COLUMN;
  const rule =
    topic.kind === 'fixed'
      ? { fixed: topic.topic }
      : topic.kind === 'column'
        ? { column: topic.column }
        : { template: topic.template };
  const quoted = (name: string) => (/[.`]/.test(name) ? `\`${name.replaceAll('`', '``')}\`` : name);
  return {
    table: `${quoted(schema)}.${quoted(table)}`,
    ...(own.length === 0 ? {} : { columns: Object.fromEntries(own) }),
    ...(isDefaultTopic ? {} : { topic: rule }),
    ...(retire === 'mark' ? {} : { retire }),
  };
}

function unconfigured(schema: string, table: string): OutboxSettings {
  return {
    ...{ schema, table, columns: SHIPPED_COLUMNS, retire: 'mark', validateJson: false, retention: null, limits: null },
    topic: { kind: 'column', column: SHIPPED_TOPIC_COLUMN },
  };
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll('_', '');
}
