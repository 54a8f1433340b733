import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import type { OutboxColumns, OutboxSettings } from '../model/settings.ts';
import { type Finding, findingsOf } from './finding.ts';
import type { OutboxShape } from './table-facts.ts';

type Column = OutboxShape['columns'][number];

const STATES = ['pending', 'processing', 'published', 'failed'];
const INTEGERS = ['tinyint', 'smallint', 'mediumint', 'int', 'bigint'];

const isTime = ({ dataType }: Column): boolean => dataType === 'datetime' || dataType === 'timestamp';
const holds = (octets: number) => (column: Column) => (column.octetLength ?? 0) >= octets;

/** What the relay writes there, and a definition that takes it. */
const RULES: readonly {
  readonly key: keyof OutboxColumns;
  readonly takes: (column: Column) => boolean;
  readonly what: string;
  readonly definition: string;
}[] = [
  {
    key: 'status',
    takes: (column) =>
      column.dataType === 'enum'
        ? STATES.every((state) => column.columnType.includes(`'${state}'`))
        : /char|text/.test(column.dataType) && holds(10)(column),
    what: `the words ${STATES.join(', ')}`,
    definition: `ENUM ('pending', 'processing', 'published', 'failed') NOT NULL DEFAULT 'pending'`,
  },
  { key: 'availableAt', takes: isTime, what: 'times', definition: 'DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))' },
  { key: 'claimedAt', takes: isTime, what: 'times', definition: 'DATETIME(6) NULL' },
  {
    key: 'claimedBy',
    takes: (column) => /binary|blob/.test(column.dataType) && holds(16)(column),
    what: '16 bytes',
    definition: 'BINARY(16) NULL',
  },
  {
    key: 'attempts',
    takes: ({ dataType }) => INTEGERS.includes(dataType),
    what: 'whole numbers',
    definition: 'INT UNSIGNED NOT NULL DEFAULT 0',
  },
  {
    key: 'lastError',
    takes: ({ dataType }) => /char|text/.test(dataType),
    what: 'text',
    definition: 'VARCHAR(1000) NULL',
  },
  { key: 'publishedAt', takes: isTime, what: 'times', definition: 'DATETIME(6) NULL' },
];

/** Columns that the relay writes: can they hold it? Pure. */
export function stateColumnFindings({ schema, table, columns }: OutboxSettings, found: readonly Column[]): Finding[] {
  const check = findingsOf('tables', 'state-columns');
  const name = `${schema}.${table}`;
  const findings: Finding[] = [];
  for (const { key, takes, what, definition } of RULES) {
    const wanted = columns[key];
    const column = found.find((each) => each.name.toLowerCase() === wanted?.toLowerCase());
    // What is not there is complained of with all the other columns.
    if (wanted === null || column === undefined) continue;
    const fix = `ALTER TABLE ${quoteTable(schema, table)} MODIFY ${quoteIdentifier(column.name)} ${definition};`;
    if (!takes(column)) {
      findings.push(
        check.error({
          fact: `column ${column.name} of ${name} is ${column.columnType}: it cannot hold ${what}`,
          effect: 'rows cannot be claimed, marked or failed',
          fix,
        }),
      );
    } else if (key === 'status' && column.default?.replaceAll("'", '') !== 'pending') {
      findings.push(
        check.warning({
          fact: `column ${column.name} of ${name} has ${column.default === null ? 'no default' : `the default ${column.default}`}`,
          effect: `rows are only sent when the application writes 'pending' itself`,
          fix: `ALTER TABLE ${quoteTable(schema, table)} ALTER COLUMN ${quoteIdentifier(column.name)} SET DEFAULT 'pending';`,
        }),
      );
    }
  }
  return findings.length > 0 ? findings : [check.good(`the state columns of ${name} hold what the relay writes`)];
}
