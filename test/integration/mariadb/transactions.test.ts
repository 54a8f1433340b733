import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDatabase } from '../../stack/flavour.ts';
import { BinlogBed, insertOf, keysOf } from '../binlog/binlog-bed.ts';
import { expectNextDumpBegins } from '../binlog/hanging-dump.ts';

let bed: BinlogBed;
beforeAll(async () => {
  bed = await BinlogBed.open(await startDatabase());
  await bed.sql('CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, st VARCHAR(20))');
  await bed.sql('CREATE TABLE plain (id INT) ENGINE = MyISAM');
});
afterAll(() => bed[Symbol.asyncDispose]());

/** MariaDB's GTID event is its BEGIN, and events inside a transaction do not say where they end. */
describe('transactions as a MariaDB writes them', () => {
  it('are read, whatever is between them', async () => {
    const log = await bed.read(async () => {
      await bed.session(
        insertOf('a'),
        'BEGIN',
        insertOf('b'),
        'SAVEPOINT s',
        insertOf('gone'),
        'ROLLBACK TO s',
        insertOf('c'),
        'COMMIT',
        'INSERT INTO plain VALUES (1)',
        'ALTER TABLE orders ADD COLUMN x INT',
        'BEGIN',
        insertOf('u1'),
        "DELETE FROM outbox WHERE aggregate_id = 'u1'",
        insertOf('u2'),
        "UPDATE outbox SET aggregate_id = 'u2 new' WHERE aggregate_id = 'u2'",
        'COMMIT',
        "SET SESSION binlog_format = 'STATEMENT'",
        "INSERT INTO orders (st) VALUES ('x')",
        "SET SESSION binlog_format = 'ROW'",
        "XA START 'x'",
        "INSERT INTO orders (st) VALUES ('y')",
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA ROLLBACK 'x'",
      );
      await bed.sql('FLUSH BINARY LOGS');
      await bed.sql(insertOf('d'));
    });
    expect(keysOf(log)).toEqual([['a'], ['b', 'c'], ['u2 new'], ['d']]);
    expect(log.worthSaving).toBe(true);
    const numbers = log.transactions.map(({ gtid }) => gtid?.gno ?? 0);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    for (const { gtid, commitMicros, rows } of log.transactions) {
      expect(gtid?.sid).toBe('0-1');
      expect(Math.abs(commitMicros / 1000 - Date.now())).toBeLessThan(60_000);
      expect(Math.abs(rows[0].createdAtMs - Date.now())).toBeLessThan(60_000);
      // JSON is text here.
      expect(rows[0].value).toMatch(/^\{"key": "/);
    }
  });

  it('end where SHOW BINLOG EVENTS says; a stream may begin there', async () => {
    const from = await bed.head();
    for (const key of ['1', '2', '3']) await bed.sql(insertOf(key));
    const log = await bed.readFrom(from);
    const events = await bed.sql(`SHOW BINLOG EVENTS IN '${from.file}' FROM ${from.offset}`);
    const commits = events
      .filter((event) => event['Event_type'] === 'Xid')
      .map((event) => Number(event['End_log_pos']));
    expect(log.transactions.map(({ end }) => end.offset)).toEqual(commits);
    expect(keysOf(await bed.readFrom(log.transactions[1].end))).toEqual([['3']]);
  });

  it('the decision over an XA transaction is a boundary by itself', async () => {
    const log = await bed.read(() =>
      bed.session(
        "XA START 'z'",
        "INSERT INTO orders (st) VALUES ('y')",
        "XA END 'z'",
        "XA PREPARE 'z'",
        "XA COMMIT 'z'",
      ),
    );
    expect(log.reached).toEqual(await bed.head());
  });
});

it('S15 I3 a stream begins where the server hangs in a write to the one before, and ends that one', async () => {
  await expectNextDumpBegins(bed);
});
