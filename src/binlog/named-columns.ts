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
  readonly labels: readonly Buffer[] | null;
}

/** True when the event names its columns (`binlog_row_metadata=FULL`): nothing else is needed to read its rows. */
export function isSelfDescribing(map: TableMap): boolean {
  return map.columns.every(({ name }) => name !== null);
}

/** What the event says, and for the rest the definition, which must fit the event. */
export function nameColumns(map: TableMap, definition: TableDefinition | null): NamedColumn[] {
  return map.columns.map((column, i) => {
    const now = definition?.columns[i] ?? null;
    return {
      name: column.name ?? now?.name ?? '',
      type: column.type,
      metadata: column.metadata,
      extent: column.extent,
      unsigned: column.unsigned ?? (now !== null && isUnsigned(now)),
      characterSet: column.collation === null ? binaryIfNone(now) : characterSetOf(column.collation),
      labels: column.labels ?? (now === null ? null : labelsOf(now)),
    };
  });
}

function binaryIfNone(column: ColumnDefinition | null): string | null {
  return column === null ? null : (column.characterSet ?? 'binary');
}
