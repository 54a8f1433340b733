import { describe, expect, test } from 'vitest';
import type { RowId } from '../../../src/model/row-ids.ts';
import type { Candidate, Store, SweepCursor } from '../../../src/model/store.ts';
import { StoreBed } from './store-bed.ts';

describe('rows that are pending and due', () => {
  test('are found with topic, key, attempts and about their size; others are not', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    await bed.sql(`INSERT INTO outbox (id, topic, aggregate_id, payload, headers, attempts, status, available_at) VALUES
      (1, 't-1', 'kéy', '{"a": 1}', NULL, 3, 'pending', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR),
      (2, 't-2', '', NULL, NULL, 0, 'pending', UTC_TIMESTAMP(6) - INTERVAL 2 HOUR),
      (3, 't', 'k', NULL, NULL, 0, 'pending', UTC_TIMESTAMP(6) + INTERVAL 1 HOUR),
      (4, 't', 'k', NULL, NULL, 0, 'published', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR),
      (5, 't', 'k', NULL, NULL, 0, 'failed', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR),
      (6, 't', 'k', NULL, NULL, 0, 'processing', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR),
      (18446744073709551614, 't-3', 'K', CONCAT('"', REPEAT('x', 100000), '"'), '{"h": "1"}', 0, 'pending',
       UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE)`);
    const found = (id: bigint, topic: string, key: string, attempts: number) => ({
      ...{ outbox: 0, id, topic, attempts, key: Buffer.from(key) },
      bytes: expect.any(Number) as number,
    });
    const [one, two, big] = [found(1n, 't-1', 'kéy', 3), found(2n, 't-2', '', 0), found(2n ** 64n - 2n, 't-3', 'K', 0)];
    const page = await store.dueRows(0, null, 10);
    expect(page).toEqual({ rows: [two, one, big], next: null });
    expect(page.rows.map(({ bytes }) => bytes < 200)).toEqual([true, true, false]);
    expect(page.rows[2].bytes).toBeGreaterThan(100_000);
    expect(page.rows[2].bytes).toBeLessThan(101_000);
    expect(await store.dueIds(0, null, 10, null)).toEqual({ ids: [1n, 2n, big.id], next: null });
    expect(await store.candidates(0, [big.id, 3n, 2n, 4n, 99n, 1n])).toEqual([big, two, one]);
    expect(await store.candidates(0, [])).toEqual([]);
  });

  test.for<[string, object, (string | null)[]]>([
    ['a fixed one', { topic: { fixed: 'all' } }, ['all', 'all']],
    ['a template', { topic: { template: 'x.{event_type}.{id}' } }, ['x.größer.1', null]],
    ['a column that is NULL', { topic: { column: 'event_type' } }, ['größer', null]],
  ])('have the topic that the tail gives them: %s', async ([, outbox, topics]) => {
    await using bed = await StoreBed.open();
    const store = bed.store({ outbox });
    await bed.sql("INSERT INTO outbox (topic, aggregate_id, event_type) VALUES ('t', 'a', 'größer'), ('t', 'b', NULL)");
    expect((await store.dueRows(0, null, 10)).rows.map(({ topic }) => topic)).toEqual(topics);
  });

  test('without an aggregate id have a key of their own: 0xFF and the idempotency key as header id has it', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    await bed.sql('ALTER TABLE outbox MODIFY aggregate_id VARCHAR(128) NULL');
    await bed.sql(`INSERT INTO outbox (topic, aggregate_id, idempotency_key) VALUES
      ('t', NULL, X'0102030405060708090a0b0c0d0e0f00'), ('t', 'a', X'0202030405060708090a0b0c0d0e0f00')`);
    const [without, other] = (await store.dueRows(0, null, 10)).rows;
    const key = Buffer.from('\xff01020304-0506-0708-090a-0b0c0d0e0f00', 'latin1');
    expect(without.key).toEqual(key);
    expect((await store.dueIds(0, null, 10, key)).ids).toEqual([1n]);
    expect((await store.dueIds(0, null, 10, other.key)).ids).toEqual([2n]);
    await bed.sql('ALTER TABLE outbox MODIFY idempotency_key VARCHAR(40) COLLATE utf8mb4_bin NOT NULL');
    await bed.sql("UPDATE outbox SET idempotency_key = 'öwn' WHERE id = 1");
    const fresh = bed.store();
    expect((await fresh.dueRows(0, null, 10)).rows[0].key).toEqual(
      Buffer.concat([Buffer.of(0xff), Buffer.from('öwn')]),
    );
  });

  test('tell when the next becomes due, by the server’s clock', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    expect(await store.nextDueMs(0)).toBeNull();
    await bed.sql(`INSERT INTO outbox (topic, aggregate_id, status, available_at) VALUES
      ('t', 'a', 'pending', UTC_TIMESTAMP(6) + INTERVAL 1 HOUR), ('t', 'b', 'pending', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR),
      ('t', 'c', 'failed', UTC_TIMESTAMP(6) + INTERVAL 1 SECOND), ('t', 'd', 'pending', '9999-12-31 23:59:59')`);
    const ms = await store.nextDueMs(0);
    expect(ms).toBeLessThanOrEqual(3_600_000);
    expect(ms).toBeGreaterThan(3_600_000 - 30_000);
    await bed.sql("DELETE FROM outbox WHERE aggregate_id = 'a'");
    expect(await store.nextDueMs(0)).toBeGreaterThan(1e13);
  });
});

describe('S21 page by page', () => {
  test('every row is looked at once, though rows in front are never taken and many have one time', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const ids = await bed.insertMany(3_500);
    await bed.sql('UPDATE outbox SET available_at = available_at - INTERVAL 1 HOUR WHERE id % 5 = 0');
    const pages = await allPages(store, 1_000);
    expect(pages.map(({ length }) => length)).toEqual([1_000, 1_000, 1_000, 500]);
    const seen = pages.flat().map(({ id }) => id);
    const front = ids.filter((id) => id % 5n === 0n);
    expect(seen).toEqual([...front, ...ids.filter((id) => id % 5n !== 0n)]);
  });

  test('what becomes due or pending behind the cursor is seen in this turn, what does before it in the next', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const ids = await bed.insert(4);
    await bed.sql('UPDATE outbox SET available_at = UTC_TIMESTAMP(6) - INTERVAL 10 - id MINUTE');
    const first = await store.dueRows(0, null, 2);
    expect(first.rows.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    await bed.sql("UPDATE outbox SET status = 'published' WHERE id IN (?)", [ids.slice(1, 3)]);
    const [late] = await bed.insert(1);
    const second = await store.dueRows(0, first.next, 2);
    expect(second.rows.map(({ id }) => id)).toEqual([ids[3], late]);
    expect((await store.dueRows(0, second.next, 2)).rows).toEqual([]);
  });

  test('ids ascend whatever the times; behind a cursor come larger ones only', async () => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const ids = await bed.insertMany(500);
    await bed.sql('UPDATE outbox SET available_at = available_at - INTERVAL (id * 7919 % 501) MINUTE');
    expect(await allIds(store, 60)).toEqual(ids);
    const key = Buffer.from('7');
    const own = await bed.sql("SELECT id FROM outbox WHERE aggregate_id = '7' ORDER BY id");
    expect(await allIds(store, 3, key)).toEqual(own.map((row) => BigInt(String(row['id']))));
  });
});

describe('D1 primary keys that are no integers', () => {
  const TYPES = [
    ['BINARY(16)', "CONCAT(UNHEX(LPAD(HEX(n * 7919 % 257), 8, '0')), UNHEX(REPEAT('00', 12)))"],
    ['CHAR(36) CHARACTER SET ascii', 'LEFT(SHA2(n, 256), 36)'],
    ['VARCHAR(60) COLLATE utf8mb4_general_ci', "CONCAT('Äb-😀', n)"],
    ['VARCHAR(60) CHARACTER SET latin1', "CONCAT('é-', n)"],
  ] as const;

  test.for(TYPES)('%s: pages, ids, candidates, claims', async ([type, id]) => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    const leader = await bed.lead(store);
    await bed.sql(`ALTER TABLE outbox MODIFY id ${type} NOT NULL`);
    await bed.sql(`INSERT INTO outbox (id, topic, aggregate_id, available_at)
      WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 250)
      SELECT ${id}, 't', n, '2026-01-01' + INTERVAL (n DIV 100) HOUR FROM s`);
    const shown = type.startsWith('BINARY') ? 'HEX(id)' : 'HEX(CONVERT(id USING utf8mb4))';
    const rows = await bed.sql(`SELECT LOWER(${shown}) AS id FROM outbox ORDER BY available_at, id`);
    const expected = rows.map((row) => String(row['id']));
    const pages = await allPages(store, 40);
    expect(pages.flat().map((row) => row.id)).toEqual(expected);
    expect(await allIds(store, 40)).toEqual(expected);
    const some = [expected[200], expected[3], '6e6f6e65', expected[77]];
    expect((await store.candidates(0, some)).map((row) => row.id)).toEqual(some.filter((each) => each !== '6e6f6e65'));
    expect(await store.claim(leader, 0, some)).toEqual({ claimed: [some[0], some[1], some[3]], locked: [] });
    const cursor = await store.claimedRows(leader, 0, some);
    const read: string[] = [];
    while (cursor.next()) {
      const { buffer, start, end } = cursor.row.idBytes;
      read.push(buffer.toString('hex', start, end));
    }
    expect(read).toEqual([some[0], some[1], some[3]]);
    const failures = [{ outbox: 0, id: some[1], as: 'failed' as const, error: 'e' }];
    const nothing = { published: [], failures: [], back: [] };
    expect(await store.writeBack(leader, 0, { published: [some[0]], failures, back: [some[3]] })).toEqual(nothing);
    expect(await store.isFailed(0, some[1])).toBe(true);
    expect(await store.isFailed(0, some[0])).toBe(false);
    expect(await allIds(store, 1_000)).toEqual(expected.filter((each) => each !== some[0] && each !== some[1]));
  });
});

describe('rows of one aggregate', () => {
  test.for<[type: string, values: string[], key: Buffer, ids: bigint[]]>([
    ['VARCHAR(50) COLLATE utf8mb4_general_ci', ["'order-a'", "'Order-A'", "'ordér-a'"], Buffer.from('Order-A'), [2n]],
    ['VARCHAR(50) CHARACTER SET latin1', ["'é'", "'e'", "'x'"], Buffer.from('é'), [1n]],
    ['VARCHAR(50) CHARACTER SET latin1', ["'é'", "'e'", "'x'"], Buffer.from('😀'), []],
    ['VARCHAR(50)', ["'a'", "''", "'x'"], Buffer.of(0xc3, 0x28), []],
    ['BIGINT', ['9007199254740993', '9007199254740992', '-1'], Buffer.from('9007199254740993'), [1n]],
    ['BINARY(4)', ["X'FF00'", "X'FF01'", "X'00'"], Buffer.of(0xff, 0, 0, 0), [1n]],
    ['DATETIME(3)', ["'2026-01-01'", "'2026-01-02'", "'2026-01-03'"], Buffer.from('2026-01-02 00:00:00.000'), [2n]],
    ["ENUM('a','b')", ["'a'", "'b'", "'b'"], Buffer.from('b'), [2n, 3n]],
    ['BIT(9)', ["b'1'", "b'100000001'", "b'0'"], Buffer.of(1, 1), [2n]],
  ])('whose column is %s: by the bytes that SELECT shows', async ([type, values, key, ids]) => {
    await using bed = await StoreBed.open();
    const store = bed.store();
    await bed.sql(`ALTER TABLE outbox MODIFY aggregate_id ${type} NULL`);
    await bed.sql(`INSERT INTO outbox (topic, aggregate_id) VALUES ${values.map((value) => `('t', ${value})`).join()}`);
    const { rows } = await store.dueRows(0, null, 10);
    expect(rows.filter((row) => row.key.equals(key)).map(({ id }) => id)).toEqual(ids);
    expect((await store.dueIds(0, null, 10, key)).ids).toEqual(ids);
  });
});

describe('the index', () => {
  test('is found by its columns, whatever its name', async () => {
    await using bed = await StoreBed.open();
    await bed.sql(`DROP INDEX waiting ON outbox; CREATE INDEX a ON outbox (status, available_at, created_at);
      CREATE INDEX b ON outbox (available_at, status, id); CREATE INDEX \`c\`\`d\` ON outbox (status, available_at)`);
    const ids = await bed.insert(3);
    expect((await bed.store().dueRows(0, null, 10)).rows.map(({ id }) => id)).toEqual(ids);
  });

  test('that is missing, or that the server does not use, is said with the statement that creates it', async () => {
    await using bed = await StoreBed.open();
    await bed.insert(3);
    const missing = {
      fault: {
        code: 'MYSQL_SCHEMA',
        disposition: 'halt',
        detail: expect.stringContaining(
          `CREATE INDEX waiting ON \`${bed.database}\`.\`outbox\` (\`status\`, \`available_at\`, \`id\`)`,
        ) as string,
      },
    };
    await bed.sql('ALTER TABLE outbox ALTER INDEX waiting INVISIBLE');
    await expect(bed.store().dueRows(0, null, 10)).rejects.toMatchObject(missing);
    await bed.sql('DROP INDEX waiting ON outbox');
    const store = bed.store();
    await expect(store.dueIds(0, null, 10, null)).rejects.toMatchObject(missing);
    await bed.sql('CREATE INDEX waiting ON outbox (status, available_at, id)');
    expect((await store.dueIds(0, null, 10, null)).ids).toHaveLength(3);
  });
});

test('an outbox that is only kept has nothing that waits', async () => {
  await using bed = await StoreBed.open();
  const store = bed.store({ retire: 'keep', outbox: { columns: { status: null, availableAt: null } } });
  const leader = await bed.lead(store);
  await bed.insert(3);
  expect(await store.dueRows(0, null, 10)).toEqual({ rows: [], next: null });
  expect(await store.dueIds(0, null, 10, null)).toEqual({ ids: [], next: null });
  expect(await store.nextDueMs(0)).toBeNull();
  expect(await store.releaseClaims(leader, null)).toEqual({ released: 0, held: [] });
  expect(await store.leaveHistory(leader, 0)).toBe(0);
  expect(await bed.ids('pending')).toHaveLength(3);
});

async function allPages(store: Store, limit: number): Promise<(readonly Candidate[])[]> {
  const pages: (readonly Candidate[])[] = [];
  for (let after: SweepCursor | null = null; ;) {
    const { rows, next } = await store.dueRows(0, after, limit);
    if (rows.length > 0) pages.push(rows);
    if (next === null) return pages;
    after = next;
  }
}

async function allIds(store: Store, limit: number, key: Buffer | null = null): Promise<RowId[]> {
  const all: RowId[] = [];
  for (let after: SweepCursor | null = null; ;) {
    const { ids, next } = await store.dueIds(0, after, limit, key);
    all.push(...ids);
    if (next === null) return all;
    after = next;
  }
}
