import { expect, test } from 'vitest';
import type { Retire } from '../../../src/model/settings.ts';
import { expectedRows } from '../../stack/expected-rows.ts';
import { isTenth } from '../../stack/full.ts';
import { RelayBed } from '../../stack/relay-bed.ts';

const ROWS = 300;
/** Of one INSERT. */
const TOGETHER = 50;

/** Ascending, as the rows are committed. */
const IDS: readonly (readonly [type: string, id: (n: number) => string])[] = [
  // D1: the log leaves trailing zeros out; one id is all zeros.
  ['BINARY(16)', (n) => `UNHEX(CONCAT(LPAD(HEX(${n}), 8, '0'), REPEAT('0', 24)))`],
  ['CHAR(36) CHARACTER SET ascii', (n) => `'1f0727b7-2cc9-6910-920c-b12f2d10${String(n).padStart(4, '0')}'`],
  ['VARCHAR(64) CHARACTER SET latin1', (n) => `'é€-${String(n).padStart(4, '0')}'`],
  ['VARBINARY(20)', (n) => `UNHEX(CONCAT('FF', LPAD(HEX(${n}), 4, '0'), '00'))`],
  ['BIGINT UNSIGNED', (n) => (n === 0 ? '9223372036854775817' : String(2n ** 64n - 1n - BigInt(ROWS - n)))],
];

interface Case {
  readonly type: string;
  readonly id: (n: number) => string;
  readonly retire: Retire;
}

const MARKED = IDS.filter((_, n) => !isTenth || n % 2 === 0).map(([type, id]): Case => ({ type, id, retire: 'mark' }));
const DELETED = IDS.slice(0, 1).map(([type, id]): Case => ({ type, id, retire: 'delete' }));

test.for([...MARKED, ...DELETED])(
  'D1 D3 $retire with ids of type $type: each row once, in order, and retired by its own id',
  async ({ type, id, retire }) => {
    await using bed = await RelayBed.open({ outboxes: [{ table: 'outbox', retire }], topics: { orders: 2 } });
    const { pool, topic } = bed.servers;
    await bed.sql(`ALTER TABLE outbox MODIFY id ${type} NOT NULL, MODIFY idempotency_key BINARY(16) NOT NULL`);
    expect((await (await bed.start()).kill('SIGTERM')).code).toBe(0);
    for (let n = 0; n < ROWS; n += TOGETHER) {
      const values = Array.from({ length: TOGETHER }, (_, i) => {
        const key = n + i === 0 ? `REPEAT('00', 16)` : `CONCAT(LPAD(HEX(${n + i}), 8, '0'), REPEAT('00', 12))`;
        return `(${id(n + i)}, '${topic('orders')}', 'a-${i % 5}', '{"TemplateId": 7088992364139642880, "u": 18446744073709551615}', UNHEX(${key}))`;
      });
      const image = n === 4 * TOGETHER ? 'MINIMAL' : 'FULL';
      await bed.sql(
        `SET SESSION binlog_row_image = '${image}'; INSERT INTO outbox (id, topic, aggregate_id, payload, idempotency_key) VALUES ${values.join(', ')}`,
      );
    }
    const rows = await expectedRows(pool, { table: 'outbox' });
    const relay = await bed.start();
    await bed.retired();
    expect(await bed.expectDelivered({ rows })).toMatchObject({ committed: ROWS, delivered: ROWS, duplicates: 0 });
    expect(await bed.count('outbox', "status = 'published'")).toBe(publishedRows(retire));
    expect((await relay.kill('SIGTERM')).code).toBe(0);
  },
);

function publishedRows(retire: Retire): number {
  return retire === 'mark' ? ROWS : 0;
}

test('D7 D9 keys, topics, types and headers of other character sets and types: the same record as by SELECT', async () => {
  await using bed = await RelayBed.open({ topics: { orders: 3 } });
  const { topic } = bed.servers;
  await bed.sql(`ALTER TABLE outbox
    MODIFY topic VARCHAR(249) CHARACTER SET utf16 NOT NULL,
    MODIFY aggregate_id VARCHAR(128) CHARACTER SET latin1 NOT NULL,
    MODIFY event_type ENUM('a,b','it''s','größer') CHARACTER SET latin2,
    MODIFY payload TEXT CHARACTER SET sjis, MODIFY headers TEXT CHARACTER SET cp1251,
    MODIFY idempotency_key DECIMAL(20,4) NOT NULL`);
  const relay = await bed.start();
  const aggregates = ["X'636166E980'", "'naïve'", "'x'", "X'818D'"];
  for (let n = 0; n < 40; n++) {
    await bed.sql(
      `INSERT INTO outbox (topic, aggregate_id, event_type, payload, headers, idempotency_key)
       VALUES ('${topic('orders')}', ${aggregates[n % 4]}, ${1 + (n % 3)}, 'ソース ${n}', '{"кто": "я"}', ${n} + 0.5)`,
    );
  }
  await bed.retired();
  expect(await bed.expectDelivered()).toMatchObject({ delivered: 40, duplicates: 0, altered: 0 });
  expect((await relay.kill('SIGTERM')).code).toBe(0);
});
