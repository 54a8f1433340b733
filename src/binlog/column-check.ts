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
    layOut(index, settings, definition.columns.map(declaredColumn));
    // What only statements need is needed where rows are retired.
    if (settings.retire !== 'keep') checkNames(settings, definition);
  }
}

function checkNames({ schema, table, columns }: OutboxSettings, definition: TableDefinition): void {
  const names = new Set(definition.columns.map(({ name }) => name.toLowerCase()));
  for (const name of Object.values(columns) as (string | null)[]) {
    if (name !== null && !names.has(name.toLowerCase())) {
      throw fault('MYSQL_SCHEMA', 'halt', `${schema}.${table} has no column ${name}`);
    }
  }
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
