import { toUtf8 } from '../encoding/charsets.ts';
import { characterSetOf } from './collations.ts';
import type { Extent } from './column-types.ts';
import { isUnsigned, labelsOf, type ColumnDefinition, type TableDefinition } from './table-definition.ts';
import type { TableMap } from './table-map.ts';

/** A column with all that is needed to find its part and to read its bytes. */
export interface NamedColumn {
  readonly name: string;
  readonly type: number;
  readonly metadata: number;
  readonly extent: Extent | null;
  readonly unsigned: boolean;
  /** `binary` for bytes; null for a column that has none, or one that is not known. */
  readonly characterSet: string | null;
  /** In UTF-8. */
  readonly labels: readonly Buffer[] | null;
  /** As the table declares the type now (`decimal(5,2)`), where that is known. */
  readonly declared: string | null;
}

/** True when the event names its columns (`binlog_row_metadata=FULL`): nothing else is needed to read its rows. */
export function isSelfDescribing(map: TableMap): boolean {
  return map.columns.every(({ name }) => name !== null);
}

/** What the event says, and for the rest the definition, which must fit the event. */
export function nameColumns(map: TableMap, definition: TableDefinition | null): NamedColumn[] {
  return map.columns.map((column, i) => {
    const now = definition?.columns[i] ?? null;
    const characterSet = column.collation === null ? binaryIfNone(now) : characterSetOf(column.collation);
    return {
      name: column.name ?? now?.name ?? '',
      type: column.type,
      metadata: column.metadata,
      extent: column.extent,
      unsigned: column.unsigned ?? (now !== null && isUnsigned(now)),
      characterSet,
      labels: column.labels === null ? (now === null ? null : labelsOf(now)) : inUtf8(column.labels, characterSet),
      declared: now !== null && (column.name === null || now.name === column.name) ? now.columnType : null,
    };
  });
}

function binaryIfNone(column: ColumnDefinition | null): string | null {
  return column === null ? null : (column.characterSet ?? 'binary');
}

/** The log has labels in their column's character set. Null: in one that is not known. */
function inUtf8(labels: readonly Buffer[], characterSet: string | null): Buffer[] | null {
  const converted = labels.map((label) => (characterSet === null ? null : toUtf8(characterSet, label)));
  return converted.every((label) => label !== null) ? converted : null;
}
