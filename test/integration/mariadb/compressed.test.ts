import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startMariadb } from '../../stack/stack.ts';
import { BinlogBed, insertOf, keysOf } from '../binlog/binlog-bed.ts';

/** What `log_bin_compress` is for begins at this length of a statement or of an event's rows. */
const FLAGS = ['--log-bin-compress=ON', '--log-bin-compress-min-len=10'];
const FILLER = 'f'.repeat(500);

let bed: BinlogBed;
beforeAll(async () => {
  bed = await BinlogBed.open(await startMariadb({ flags: FLAGS }));
  await bed.sql('CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, st VARCHAR(600))');
});
afterAll(() => bed[Symbol.asyncDispose]());

async function types(from: { file: string; offset: number }): Promise<Set<string>> {
  const events = await bed.sql(`SHOW BINLOG EVENTS IN '${from.file}' FROM ${from.offset}`);
  return new Set(events.map((event) => String(event['Event_type'])));
}

describe('C1 events that a MariaDB has compressed', () => {
  it('are read as what they were: rows, changes of them, statements', async () => {
    const from = await bed.head();
    await bed.session(
      insertOf('a', 'b', 'c'),
      'BEGIN',
      `INSERT INTO orders (st) VALUES ('${FILLER}'), ('${FILLER}')`,
      insertOf('u1'),
      'SAVEPOINT s',
      insertOf('gone'),
      'ROLLBACK TO s',
      insertOf('u2'),
      "UPDATE outbox SET aggregate_id = 'u2 new' WHERE aggregate_id = 'u2'",
      "DELETE FROM outbox WHERE aggregate_id = 'u1'",
      'COMMIT',
      `ALTER TABLE orders COMMENT '${FILLER}'`,
      "SET SESSION binlog_format = 'STATEMENT'",
      `INSERT INTO orders (st) VALUES ('${FILLER}')`,
      "SET SESSION binlog_format = 'ROW'",
      `INSERT INTO outbox (topic, aggregate_id, payload) VALUES ('orders', 'long', '"${FILLER}"')`,
    );
    const seen = await types(from);
    for (const type of ['Write_rows_compressed_v1', 'Update_rows_compressed_v1', 'Delete_rows_compressed_v1']) {
      expect(seen).toContain(type);
    }
    expect(seen).toContain('Query_compressed');
    const log = await bed.readFrom(from);
    expect(keysOf(log)).toEqual([['a', 'b', 'c'], ['u2 new'], ['long']]);
    expect(log.transactions[2].rows[0].value).toBe(`"${FILLER}"`);
    expect(log.reached).toEqual(await bed.head());
    const rows = await bed.sql('SELECT LOWER(HEX(idempotency_key)) AS k FROM outbox ORDER BY id');
    const keys = log.transactions.flatMap((transaction) =>
      transaction.rows.map(({ idempotencyKey }) => idempotencyKey),
    );
    expect(keys).toEqual(rows.map((row) => String(row['k'])));
  });

  it('A7 a compressed statement about an outbox is handed on without rows', async () => {
    const from = await bed.head();
    await bed.session("SET SESSION binlog_format = 'STATEMENT'", insertOf('bad'));
    expect(await types(from)).toContain('Query_compressed');
    const { transactions } = await bed.readFrom(from);
    expect(transactions.map(({ rows }) => rows)).toEqual([[]]);
    expect(transactions[0].undecodable?.detail).toMatch(/as text/);
  });

  it('A10 of a transaction over the bound, read a second time', async () => {
    const count = 2_000;
    const from = await bed.head();
    await bed.session(
      insertOf('before'),
      `INSERT INTO outbox (topic, aggregate_id, payload) SELECT 'orders', seq, CONCAT('"', REPEAT('x', 1500), '"')
       FROM seq_1_to_${count}`,
      insertOf('after'),
    );
    const all = Array.from({ length: count }, (_, n) => String(n + 1));
    const log = await bed.readFrom(from, { maxTransactionBytes: 1_048_576 });
    expect(keysOf(log)).toEqual([['before'], all, ['after']]);
    expect(log.reached).toEqual(await bed.head());
  });
});
