import { expect, test } from 'vitest';
import { configEntry, mapColumns } from '../../../src/adopt/mapping.ts';
import { planFor } from '../../../src/adopt/plan.ts';
import type { TableColumn, TableShape } from '../../../src/adopt/table-shape.ts';

function shape(columns: Readonly<Record<string, string>>, over: Partial<TableShape> = {}): TableShape {
  const all = Object.entries(columns).map(([name, declared]): TableColumn => {
    return { name, declared, type: declared.replace(/\(.*/, ''), default: null };
  });
  const indexes = new Map([['PRIMARY', [all[0].name]]]);
  return { engine: 'InnoDB', rows: 0, columns: all, primaryKey: [all[0].name], indexes, ...over };
}

const DEBEZIUM = {
  id: 'char(36)',
  aggregatetype: 'varchar(255)',
  aggregateid: 'varchar(255)',
  type: 'varchar(255)',
  payload: 'json',
};

test("Debezium's table is understood", () => {
  const { outbox, problems, isNew } = mapColumns(shape(DEBEZIUM), 'app', 'outboxevent', null);
  expect({ problems, isNew }).toEqual({ problems: [], isNew: true });
  expect(configEntry(outbox)).toEqual({
    table: 'app.outboxevent',
    columns: { aggregateId: 'aggregateid', eventType: 'type', headers: null, idempotencyKey: 'id', createdAt: null },
    topic: { template: 'outbox.event.{aggregatetype}' },
  });
  const { addColumns, addIndex, cut } = planFor(shape(DEBEZIUM), outbox);
  expect(addColumns).toMatch(
    /^ALTER TABLE `app`.`outboxevent` ADD COLUMN `status` ENUM .* DEFAULT 'published', .*ALGORITHM=INSTANT$/,
  );
  expect(addIndex).toContain('ADD INDEX `waiting` (`status`, `available_at`, `id`), ALGORITHM=INPLACE, LOCK=NONE');
  expect(cut).toContain("ALTER COLUMN `status` SET DEFAULT 'pending'");
});

test('what the configuration says holds; names of the table in their own case', () => {
  const columns = {
    Event_Id: 'binary(16)',
    AggregateId: 'varchar(9)',
    Body: 'longblob',
    Topic: 'varchar(99)',
    created: 'timestamp(6)',
  };
  const { outbox, problems } = mapColumns(shape(columns), 'app', 'events', null);
  expect(problems).toEqual([]);
  expect(outbox.columns).toMatchObject({
    ...{
      id: 'Event_Id',
      aggregateId: 'AggregateId',
      payload: 'Body',
      idempotencyKey: 'Event_Id',
      createdAt: 'created',
    },
  });
  const said = { ...outbox, topic: { kind: 'fixed', topic: 't' }, retire: 'keep' } as const;
  const again = mapColumns(shape(columns), 'app', 'events', said);
  expect(again).toMatchObject({ isNew: false, outbox: said });
  expect(planFor(shape(columns), said)).toEqual({ addColumns: null, addIndex: null, cut: null });
});

test('a counting id is no idempotency key, and a time in milliseconds no created_at', () => {
  const columns = {
    id: 'bigint',
    aggregate_id: 'varchar(9)',
    payload: 'json',
    topic: 'varchar(9)',
    timestamp: 'bigint',
  };
  const { outbox, problems } = mapColumns(shape(columns), 'app', 'events', null);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain('no column for columns.idempotencyKey: id counts');
  expect(outbox.columns.createdAt).toBeNull();
});

test('what is there already is not planned again', () => {
  const { outbox } = mapColumns(shape(DEBEZIUM), 'app', 'outboxevent', null);
  const state = {
    ...{
      status: "enum('pending','processing','published','failed')",
      available_at: 'datetime(6)',
      claimed_at: 'datetime(6)',
    },
    ...{ claimed_by: 'binary(16)', attempts: 'int unsigned', last_error: 'varchar(1000)', published_at: 'datetime(6)' },
  };
  const half = shape({ ...DEBEZIUM, ...state });
  expect(planFor(half, outbox)).toMatchObject({ addColumns: null, cut: expect.any(String) as string });
  const defaults: Readonly<Record<string, string>> = { status: "'pending'", available_at: 'utc_timestamp(6)' };
  const columns = half.columns.map((column) => ({ ...column, default: defaults[column.name] ?? null }));
  const indexes = new Map([['by_state', ['status', 'available_at', 'id']]]);
  expect(planFor({ ...half, columns, indexes }, outbox)).toEqual({ addColumns: null, addIndex: null, cut: null });
});
