import { TopicTemplate } from '../encoding/topic-template.ts';
import { fault } from '../model/fault.ts';
import type { OutboxSettings } from '../model/settings.ts';
import { ColumnType } from './column-types.ts';
import type { NamedColumn } from './named-columns.ts';
import type { KnownOutbox } from './outbox-table.ts';
import { layOut } from './row-plan.ts';
import { isUnsigned, labelsOf, typeOf, type ColumnDefinition, type TableDefinition } from './table-definition.ts';

/**
 * Refuses, before the first row, what could not be read at the millionth: a configured column that the table does not
 * have, or one of a type or character set that cannot be used in its part. Throws a RelayError (halt). A table that is
 * not there yet may come.
 */
export function checkColumns(outboxes: readonly KnownOutbox[]): void {
  for (const { index, settings, definition } of outboxes) {
    if (definition === null) continue;
    checkNames(settings, definition);
    layOut(index, settings, definition.columns.map(declaredColumn));
  }
}

/** All that are missing, in one message: who mends a table mends it once. */
function checkNames(settings: OutboxSettings, definition: TableDefinition): void {
  const there = new Set(definition.columns.map(({ name }) => name.toLowerCase()));
  const missing = [...new Set(namesOf(settings))].filter((name) => !there.has(name.toLowerCase()));
  if (missing.length === 0) return;
  const what = missing.length === 1 ? 'column' : 'columns';
  throw fault('MYSQL_SCHEMA', 'halt', `${settings.schema}.${settings.table} has no ${what} ${missing.join(', ')}`);
}

function namesOf({ columns, topic, retire }: OutboxSettings): string[] {
  const { claimedAt, claimedBy, attempts, lastError, publishedAt, ...read } = columns;
  // What only statements need is needed where rows are retired.
  const written = retire === 'keep' ? [] : [claimedAt, claimedBy, attempts, lastError, publishedAt];
  const named = [...Object.values<string | null>(read), ...written].filter((name) => name !== null);
  if (topic.kind === 'column') return [...named, topic.column];
  return topic.kind === 'template' ? [...named, ...new TopicTemplate(topic.template).columns] : named;
}

/** As the table declares it: the type and what it means, but no place in a row. */
function declaredColumn(column: ColumnDefinition): NamedColumn {
  const type = typeOf(column);
  return {
    name: column.name,
    type,
    metadata: 0,
    extent: { prefix: 0, width: 0 },
    unsigned: isUnsigned(column),
    characterSet: column.characterSet ?? (type === ColumnType.Json ? null : 'binary'),
    labels: labelsOf(column),
    declared: column.columnType,
  };
}
