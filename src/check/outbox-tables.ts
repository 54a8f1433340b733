import { checkColumns } from '../binlog/column-check.ts';
import { RelayError } from '../model/fault.ts';
import { quoteIdentifier, quoteTable } from '../model/identifier.ts';
import { isShippedShape } from '../model/outbox-columns.ts';
import type { OutboxSettings, Settings } from '../model/settings.ts';
import { createWaitingIndex } from '../store/waiting-table.ts';
import { type Finding, findingsOf } from './finding.ts';
import { stateColumnFindings } from './state-columns.ts';
import type { OutboxShape, TableFacts } from './table-facts.ts';

/** Outboxes as tables: engine, columns, keys. Pure. */
export function outboxTableFindings({ outboxes }: TableFacts, settings: Settings): Finding[] {
  return settings.outboxes.flatMap((outbox, index) => tableFindings(outbox, index, outboxes[index]));
}

function tableFindings(outbox: OutboxSettings, index: number, shape: OutboxShape): Finding[] {
  const check = findingsOf('tables', 'outbox-table');
  const name = `${outbox.schema}.${outbox.table}`;
  if (shape.presence === 'missing') {
    const fix = isShippedShape(outbox)
      ? 'cdc-relay migrate'
      : 'see outboxes[].table; a table with columns of its own is yours to create';
    return [check.error({ fact: `there is no table ${name}`, effect: 'nothing of it is sent', fix, stopsTail: true })];
  }
  if (shape.presence === 'hidden' || shape.columns.length === 0) {
    return [
      check.unknown({ fact: `engine, columns and indexes of ${name} could not be looked at: that needs SELECT on it` }),
    ];
  }
  if (shape.isView) {
    return [
      check.error({
        fact: `${name} is a view`,
        effect: 'the log knows tables alone: the tail never sees its rows',
        fix: 'name the table under it in outboxes[].table',
        stopsTail: true,
      }),
    ];
  }
  return [
    ...engine(outbox, shape, name),
    ...columns(outbox, index, shape, name),
    ...primaryKey(outbox, shape, name),
    ...(outbox.retire === 'keep'
      ? []
      : [...stateColumnFindings(outbox, shape.columns), ...waiting(outbox, shape, name)]),
  ];
}

function engine({ schema, table }: OutboxSettings, shape: OutboxShape, name: string): Finding[] {
  const check = findingsOf('tables', 'outbox-engine');
  if (shape.engine?.toLowerCase() === 'innodb') return [check.good(`${name} is an InnoDB table`)];
  return [
    check.error({
      fact: `${name} is a table of engine ${shape.engine ?? 'unknown'}`,
      effect:
        'its rows are not part of transactions: what is rolled back is sent all the same, and nothing can be locked',
      fix: `ALTER TABLE ${quoteTable(schema, table)} ENGINE = InnoDB;`,
    }),
  ];
}

/** What the tail would refuse at its first row. */
function columns(settings: OutboxSettings, index: number, shape: OutboxShape, name: string): Finding[] {
  const check = findingsOf('tables', 'outbox-columns');
  const { createdAtSeconds, columns } = shape;
  const definition = { createdAtSeconds, columns };
  try {
    checkColumns([{ index, settings, definition, lookedAhead: null, definitionIsStale: false }]);
  } catch (error) {
    if (!(error instanceof RelayError)) throw error;
    return [
      check.error({
        fact: error.fault.detail,
        effect: 'the relay halts before the first row of this table',
        fix: `see outboxes[].columns and topic; cdc-relay adopt ${name} --dry-run says what a table of its own needs`,
        stopsTail: true,
      }),
    ];
  }
  return [check.good(`${name} has the columns of the configuration`)];
}

function primaryKey({ schema, table, columns }: OutboxSettings, shape: OutboxShape, name: string): Finding[] {
  const check = findingsOf('tables', 'outbox-primary-key');
  const [first, ...others] = shape.primaryKey;
  const isSame = shape.primaryKey.length > 0 && first.toLowerCase() === columns.id.toLowerCase();
  // A partitioned table has the partitioning column in its key too.
  if (isSame) return [check.good(`the primary key of ${name} begins with ${[first, ...others].join(', ')}`)];
  return [
    check.error({
      fact: `the primary key of ${name} is ${shape.primaryKey.join(', ') || 'missing'}, not ${columns.id}`,
      effect: 'each mark and claim reads the whole table and locks it',
      fix: `ALTER TABLE ${quoteTable(schema, table)} ADD PRIMARY KEY (${quoteIdentifier(columns.id)}); or see outboxes[].columns.id`,
    }),
  ];
}

function waiting(outbox: OutboxSettings, shape: OutboxShape, name: string): Finding[] {
  const check = findingsOf('tables', 'waiting-index');
  if (shape.waitingIndex !== null) return [check.good(`index ${shape.waitingIndex} of ${name} finds pending rows`)];
  return [
    check.error({
      fact: `${name} has no index that finds its pending rows`,
      effect: 'the sweep refuses to read the whole table: what the tail leaves to it is not sent',
      fix: `${createWaitingIndex(outbox)};`,
    }),
  ];
}
