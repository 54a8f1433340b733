import { expect, test } from 'vitest';
import { emptyRow, type Field, Form, type OutboxRow } from '../../../src/model/row.ts';
import type { FoundRows } from '../../../src/model/store.ts';
import type { OutboxSettings, TopicRule } from '../../../src/model/settings.ts';
import { OutboxSelect } from '../../../src/store/outbox-select.ts';
import { Session } from '../../../src/store/session.ts';
import { silent, StoreBed } from './store-bed.ts';

const NEVER = 253_402_300_799_000;

/** A value, and whether its bytes are what is shown (not text). */
const KEYS: readonly (readonly [type: string, value: string, bytes?: true])[] = [
  ['BIGINT', '-9223372036854775808'],
  ['BIGINT UNSIGNED', '18446744073709551615'],
  ['DECIMAL(65,30)', '-12345678901234567890.123456789'],
  ['YEAR', '2026'],
  ['DATE', "'0001-02-03'"],
  ['TIME(3)', "'-838:59:58.125'"],
  ['DATETIME(6)', "'2026-11-30 01:02:03.000001'"],
  ['TIMESTAMP(2)', "'2026-11-30 01:02:03.45'"],
  ['BIT(20)', "b'10000001010000100001'", true],
  ['CHAR(20)', "'ü  '"],
  ['VARCHAR(20) CHARACTER SET latin1', "X'636166E980818D'"],
  ['VARCHAR(20) CHARACTER SET utf16', "'é😀'"],
  ['TEXT CHARACTER SET sjis', "'ソ表'"],
  ['BINARY(16)', "X'01000000'", true],
  ['VARBINARY(20)', "X'FF00FE00'", true],
  ['BLOB', "X'00FF'", true],
  ["ENUM('a,b','it''s') CHARACTER SET latin1", "'it''s'"],
  ["SET('a','ü')", "'a,ü'"],
];

test.for(KEYS)('D2 a key of type %s: %s by SELECT as by CAST', async ([type, value, bytes]) => {
  await using bed = await StoreBed.open();
  await bed.sql(`ALTER TABLE outbox MODIFY aggregate_id ${type} NULL`);
  await bed.sql(
    `SET time_zone = '+00:00'; INSERT INTO outbox (topic, aggregate_id) VALUES ('t', ${value}), ('t', NULL)`,
  );
  const shown = bytes === true ? 'CONCAT(aggregate_id)' : 'CAST(aggregate_id AS CHAR)';
  const [row] = await bed
    .sql(`SET time_zone = '+00:00'; SELECT HEX(${shown}) AS k FROM outbox WHERE id = 1`)
    .then((results) => results[1] as unknown as { k: string }[]);
  const [first, second] = await read(bed, [1n, 2n]);
  expect(hexOf(first.key)).toBe(row.k.toLowerCase());
  expect(second.key.form).toBe(Form.Null);
});

test('a row as the tail gives it: id, topic, JSON as text, the key as a UUID, and when it was created', async () => {
  await using bed = await StoreBed.open();
  await bed.sql(`INSERT INTO outbox (id, topic, aggregate_id, event_type, payload, headers, idempotency_key, created_at)
    VALUES (18446744073709551614, 'topic-1', 'k', NULL, '{"a": [1.0, "ü"]}', '{"h": 1}', X'${'0b'.repeat(15)}00',
            '2026-11-30 01:02:03.456789'),
           (1, 't', 'k', 'created', 'null', NULL, X'${'00'.repeat(16)}', '1969-12-31 23:59:59'),
           (2, 't', 'k', '', NULL, NULL, X'${'01'.repeat(16)}', '2026-11-30 01:02:03')`);
  const [big, one, two] = await read(bed, [18446744073709551614n, 1n, 2n]);
  expect([big.idHigh, big.idLow, big.idBytes.form]).toEqual([0xffff_ffff, 0xffff_fffe, Form.Null]);
  expect([big.topic, big.value, big.headers].map(textOf)).toEqual(['topic-1', '{"a": [1.0, "ü"]}', '{"h": 1}']);
  expect(big.eventType.form).toBe(Form.Null);
  expect(big.idempotencyKey.form).toBe(Form.Uuid);
  expect(hexOf(big.idempotencyKey)).toBe(`${'0b'.repeat(15)}00`);
  expect(big.createdAtMs).toBe(Date.UTC(2026, 10, 30, 1, 2, 3, 456));
  expect(textOf(one.value)).toBe('null');
  expect(two.value.form).toBe(Form.Null);
  expect([one.createdAtMs, two.createdAtMs]).toEqual([-1, Date.UTC(2026, 10, 30, 1, 2, 3)]);
  expect([one, two].map(({ eventType }) => textOf(eventType))).toEqual(['created', '']);
  expect([big, one, two].every(({ isComplete, outbox }) => isComplete && outbox === 3)).toBe(true);
});

test('rows come in the order asked for; what is gone is named; what is settled or not due is left out', async () => {
  await using bed = await StoreBed.open();
  await bed.sql(`INSERT INTO outbox (id, topic, aggregate_id, status, available_at) VALUES
    (1, 't', 'a', 'pending', '2026-01-01'), (2, 't', 'b', 'published', '2026-01-01'),
    (3, 't', 'c', 'pending', '2026-01-01 00:00:01'), (4, 't', 'd', 'pending', '2026-01-01 00:00:00.999999')`);
  const found = await find(bed, [4n, 3n, 9n, 2n, 1n], Date.UTC(2026, 0, 1, 0, 0, 1));
  expect(rowsOf(found).map(({ key }) => textOf(key))).toEqual(['d', 'a']);
  expect(found.gone).toEqual([9n]);
});

test.for<[string, TopicRule, (string | null)[]]>([
  ['a fixed one', { kind: 'fixed', topic: 'all' }, ['all', 'all']],
  ['a template', { kind: 'template', template: 'x.{event_type}.{id}' }, ['x.größer.1', null]],
])('the topic of %s', async ([, topic, expected]) => {
  await using bed = await StoreBed.open();
  await bed.sql("INSERT INTO outbox (topic, aggregate_id, event_type) VALUES ('t', 'a', 'größer'), ('t', 'b', NULL)");
  expect((await read(bed, [1n, 2n], { topic })).map((row) => textOf(row.topic))).toEqual(expected);
});

test('D1 by keys that are no integers', async () => {
  await using bed = await StoreBed.open();
  await bed.sql('ALTER TABLE outbox MODIFY id BINARY(16) NOT NULL');
  await bed.sql("INSERT INTO outbox (id, topic, aggregate_id) VALUES (X'0100', 't', 'a'), (X'02', 't', 'b')");
  const ids = ['02', '01'].map((id) => id.padEnd(32, '0'));
  const rows = await read(bed, ids);
  expect(rows.map(({ key, idBytes }) => [textOf(key), hexOf(idBytes)])).toEqual([
    ['b', ids[0]],
    ['a', ids[1]],
  ]);
});

test('S3 a row that is not committed yet is waited for, as long as for any lock', async () => {
  await using bed = await StoreBed.open();
  const application = await bed.connect();
  await application.beginTransaction();
  await bed.insert(1, application);
  await expect(find(bed, [1n])).rejects.toMatchObject({ fault: { code: 'MYSQL_LOCK_WAIT', disposition: 'retry' } });
  const reading = find(bed, [1n]);
  await bed.lockWait();
  await application.commit();
  expect(rowsOf(await reading)).toHaveLength(1);
});

async function find(
  bed: StoreBed,
  ids: readonly (bigint | string)[],
  dueBeforeMs = NEVER,
  change: Partial<OutboxSettings> = {},
): Promise<FoundRows> {
  const settings = bed.settings();
  const session = await Session.open(settings.mysql, silent);
  try {
    return await new OutboxSelect(3, { ...settings.outboxes[0], ...change }).read(session, ids, dueBeforeMs);
  } finally {
    session.destroy();
  }
}

async function read(
  bed: StoreBed,
  ids: readonly (bigint | string)[],
  change: Partial<OutboxSettings> = {},
): Promise<OutboxRow[]> {
  const found = await find(bed, ids, NEVER, change);
  expect(found.gone).toEqual([]);
  return rowsOf(found);
}

/** Copies: the cursor fills one row again and again. */
function rowsOf({ rows }: FoundRows): OutboxRow[] {
  const copies: OutboxRow[] = [];
  while (rows.next()) {
    const copy: OutboxRow = { ...rows.row };
    for (const name of Object.keys(emptyRow()) as (keyof OutboxRow)[]) {
      if (typeof rows.row[name] === 'object') Object.assign(copy, { [name]: { ...rows.row[name] } });
    }
    copies.push(copy);
  }
  return copies;
}

function textOf({ form, buffer, start, end }: Field): string | null {
  return form === Form.Null ? null : buffer.toString('utf8', start, end);
}

function hexOf({ buffer, start, end }: Field): string {
  return buffer.toString('hex', start, end);
}
