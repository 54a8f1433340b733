import { describe, expect, test } from 'vitest';
import { outboxRowFindings } from '../../../src/check/outbox-rows.ts';
import { outboxTableFindings } from '../../../src/check/outbox-tables.ts';
import { relayTableFindings } from '../../../src/check/relay-tables.ts';
import type { FutureRow, RowFacts } from '../../../src/check/row-facts.ts';
import type { OutboxShape } from '../../../src/check/table-facts.ts';
import type { Settings } from '../../../src/model/settings.ts';
import { DENIED, settings, shippedShape, told } from './facts.ts';

const NONE_MISSING = { missing: [], notApplied: { known: true, value: [] } } as const;

function tableTold(shape: OutboxShape, of: Settings = settings()): string[] {
  return told(outboxTableFindings({ ...NONE_MISSING, outboxes: [shape] }, of));
}

/** With one column as it should not be. */
function withColumn(name: string, over: object): OutboxShape {
  const { columns } = shippedShape();
  return shippedShape({ columns: columns.map((column) => (column.name === name ? { ...column, ...over } : column)) });
}

describe('outbox tables', () => {
  test('the shipped one is good', () => {
    expect(tableTold(shippedShape())).toEqual([]);
  });

  test.each<[string, OutboxShape, string]>([
    ['none', shippedShape({ presence: 'missing', columns: [] }), 'error outbox-table: there is no table app.outbox'],
    [
      'I6 not shown',
      shippedShape({ presence: 'hidden', columns: [] }),
      'unknown outbox-table: engine, columns and indexes of app.outbox could not be looked at: that needs SELECT on it',
    ],
    ['a view', shippedShape({ isView: true, engine: null }), 'error outbox-table: app.outbox is a view'],
    ['MyISAM', shippedShape({ engine: 'MyISAM' }), 'error outbox-engine: app.outbox is a table of engine MyISAM'],
    [
      'no primary key',
      shippedShape({ primaryKey: [] }),
      'error outbox-primary-key: the primary key of app.outbox is missing, not id',
    ],
    [
      'no waiting index',
      shippedShape({ waitingIndex: null }),
      'error waiting-index: app.outbox has no index that finds its pending rows',
    ],
    [
      'a column of another name',
      withColumn('payload', { name: 'body' }),
      'error outbox-columns: app.outbox has no column payload',
    ],
    [
      'a table of something else: all that is missing at once',
      shippedShape({
        columns: shippedShape().columns.filter(({ name }) => !/^(?:aggr|payl|status|attempts|topic)/.test(name)),
      }),
      'error outbox-columns: app.outbox has no columns aggregate_id, payload, status, attempts, topic',
    ],
    [
      'too few states',
      withColumn('status', { columnType: "enum('pending','published')" }),
      "error state-columns: column status of app.outbox is enum('pending','published'): it cannot hold the words pending, processing, published, failed",
    ],
    [
      'another default',
      withColumn('status', { default: 'published' }),
      'warning state-columns: column status of app.outbox has the default published',
    ],
    [
      'a short claim',
      withColumn('claimed_by', { columnType: 'binary(8)', octetLength: 8 }),
      'error state-columns: column claimed_by of app.outbox is binary(8): it cannot hold 16 bytes',
    ],
    [
      'a date for a time',
      withColumn('published_at', { dataType: 'date', columnType: 'date' }),
      'error state-columns: column published_at of app.outbox is date: it cannot hold times',
    ],
  ])('%s', (_, shape, expected) => {
    expect(tableTold(shape)).toEqual([expected]);
  });

  test('the index that is missing is given as a statement', () => {
    const found = outboxTableFindings(
      { ...NONE_MISSING, outboxes: [shippedShape({ waitingIndex: null })] },
      settings(),
    );
    expect(found.find(({ check }) => check === 'waiting-index')?.fix).toBe(
      'CREATE INDEX waiting ON `app`.`outbox` (`status`, `available_at`, `id`);',
    );
  });

  test('what is only kept needs no state', () => {
    const kept = settings({ outboxes: [{ table: 'app.outbox', retire: 'keep' }] });
    expect(tableTold(shippedShape({ waitingIndex: null }), kept)).toEqual([]);
  });
});

test('tables of the relay', () => {
  const of = (over: object) => told(relayTableFindings({ ...NONE_MISSING, outboxes: [], ...over }, settings()));
  expect(of({})).toEqual([]);
  expect(of({ missing: ['cdc_relay_jobs'] })).toEqual([
    'error relay-tables: tables of the relay are missing in app: cdc_relay_jobs',
  ]);
  expect(of({ notApplied: { known: true, value: ['0006_last_transaction'] } })).toEqual([
    'error relay-tables: migrations have not been applied in app: 0006_last_transaction',
  ]);
  expect(of({ notApplied: DENIED })).toHaveLength(1);
});

describe('rows', () => {
  const facts: RowFacts = { pending: 3, rowsEstimate: 1_000, isEmpty: false, future: [], topics: [] };
  const of = (over: Partial<RowFacts>, hasPosition = true, start: object = {}) =>
    outboxRowFindings([{ known: true, value: { ...facts, ...over } }], hasPosition, settings(start));

  test('counts are good, and estimates say so', () => {
    expect(of({}).map(({ severity, fact }) => `${severity} ${fact}`)).toEqual([
      'good app.outbox has ~1,000 rows, 3 of them pending',
      'good no pending row of app.outbox is due in the future',
    ]);
    expect(of({ pending: 100_000 })[0].fact).toBe('app.outbox has ~1,000 rows, more than 100,000 of them pending');
  });

  test('a first start that nobody has decided on', () => {
    expect(told(of({}, false))).toEqual([
      'error start: it would be the first start, app.outbox has rows already (3 pending), and start is not set',
    ]);
    expect(told(of({}, false, { start: 'head' }))).toEqual([
      'warning start: it would be the first start, with start: head, and app.outbox has 3 pending rows',
    ]);
    expect(told(of({ pending: 0 }, false, { start: 'head' }))).toEqual([]);
    expect(told(of({}, true, { start: 'head' }))).toEqual([]);
    expect(told(of({}, false, { start: 'pending' }))).toEqual([]);
    expect(told(of({ isEmpty: true }, false))).toEqual([]);
  });

  const due = (aheadSeconds: number, delaySeconds: number | null, createdAheadSeconds: number | null): FutureRow => {
    return { aheadSeconds, delaySeconds, createdAheadSeconds };
  };

  test.each<[string, FutureRow, boolean]>([
    ['NOW() at +05:00', due(17_990, 18_000, -10), true],
    ['NOW() at +05:45, created_at too', due(20_690, 0, 20_690), true],
    ['a delay of forty minutes', due(2_390, 2_400, -10), false],
    ['a table without created_at', due(18_000, null, null), false],
    ['a day', due(86_390, 86_400, -10), false],
  ])('S34 %s', (_, row, isWarned) => {
    const found = of({ future: [row] });
    expect(told(found).length).toBe(isWarned ? 1 : 0);
    if (isWarned)
      expect(told(found)[0]).toMatch(
        /^warning future-rows: 1 of 1 pending row .* look like local time: due in 4 h 59 m$|due in 5 h 44 m$/,
      );
  });

  test('S34 far in the future', () => {
    expect(told(of({ future: [due(86_400 * 365, 86_400 * 365 + 7_777, -7_777)] }))).toEqual([
      'warning future-rows: 1 pending row of app.outbox (of the farthest 1,000) are due later, the last in 365 d',
    ]);
  });

  test('what could not be looked at', () => {
    expect(told(outboxRowFindings([DENIED], true, settings()))).toEqual([
      'unknown waiting-rows: rows of app.outbox could not be looked at: ER_SPECIFIC_ACCESS_DENIED_ERROR (MYSQL_ACCESS_DENIED)',
    ]);
  });
});
