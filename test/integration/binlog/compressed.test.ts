import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isMariadb } from '../../stack/flavour.ts';
import { startMysql } from '../../stack/stack.ts';
import { BinlogBed, insertOf, keysOf } from './binlog-bed.ts';

const COMPRESS = 'SET SESSION binlog_transaction_compression = ON';
const MIB = 1_048_576;

let bed: BinlogBed;
const FROM_MANY = `INSERT INTO outbox (topic, aggregate_id, payload)
  SELECT 'orders', n, JSON_OBJECT('f', filler) FROM many ORDER BY n`;
const allOfMany = Array.from({ length: 5000 }, (_, n) => String(n + 1));

async function payloads(from: { file: string; offset: number }): Promise<number> {
  const events = await bed.sql(`SHOW BINLOG EVENTS IN '${from.file}' FROM ${from.offset}`);
  return events.filter((event) => event['Event_type'] === 'Transaction_payload').length;
}

/** MariaDB compresses events instead. */
describe.skipIf(isMariadb())('C1 compressed transactions', () => {
  beforeAll(async () => {
    bed = await BinlogBed.open(await startMysql({ flags: ['--max-allowed-packet=64M'] }));
    await bed.sql(`
    CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, st VARCHAR(200));
    CREATE TABLE many (n INT PRIMARY KEY, filler VARCHAR(3000));
    CREATE TABLE cdc_relay_offsets (name VARCHAR(64) PRIMARY KEY, n INT)`);
    await bed.sql('INSERT INTO many VALUES ?', [allOfMany.map((n) => [Number(n), 'x'.repeat(3_000)])]);
  });
  afterAll(() => bed[Symbol.asyncDispose]());

  it('of one session among others, in every shape', async () => {
    const from = await bed.head();
    await bed.session(
      insertOf('plain'),
      COMPRESS,
      insertOf('a', 'b'),
      'BEGIN',
      "INSERT INTO orders (st) VALUES (REPEAT('o', 200)), (REPEAT('o', 200))",
      insertOf('u1'),
      'SAVEPOINT s',
      insertOf('gone'),
      'ROLLBACK TO s',
      insertOf('u2'),
      "UPDATE outbox SET aggregate_id = 'u2 new' WHERE aggregate_id = 'u2'",
      "DELETE FROM outbox WHERE aggregate_id = 'u1'",
      'COMMIT',
      'BEGIN',
      insertOf('rolled back'),
      'ROLLBACK',
      'BEGIN',
      "REPLACE INTO cdc_relay_offsets VALUES ('orders', 1)",
      insertOf('own'),
      'COMMIT',
      "XA START 'one'",
      insertOf('xa'),
      "XA END 'one'",
      "XA COMMIT 'one' ONE PHASE",
      "SET gtid_next = 'AUTOMATIC:orders_tag'",
      insertOf('tagged'),
      "SET gtid_next = 'AUTOMATIC'",
      'SET SESSION binlog_rows_query_log_events = ON',
      insertOf('annotated'),
    );
    expect(await payloads(from)).toBeGreaterThan(5);
    const log = await bed.readFrom(from);
    expect(keysOf(log)).toEqual([['plain'], ['a', 'b'], ['u2 new'], ['xa'], ['tagged'], ['annotated']]);
    expect(log.reached).toEqual(await bed.head());
    const rows = await bed.sql(
      `SELECT id, aggregate_id, LOWER(HEX(idempotency_key)) AS k FROM outbox
       WHERE aggregate_id NOT IN ('own') ORDER BY id`,
    );
    const read = log.transactions.flatMap((transaction) => transaction.rows);
    expect(
      read.map(({ id, key, idempotencyKey }) => ({ id: Number(id), aggregate_id: key, k: idempotencyKey })),
    ).toEqual(rows.map((row) => ({ ...row, id: Number(row['id']) })));
  });

  it('a stream may begin at the end of each', async () => {
    const log = await bed.read(() => bed.session(COMPRESS, insertOf('1'), insertOf('2'), insertOf('3')));
    expect(keysOf(await bed.readFrom(log.transactions[1].end))).toEqual([['3']]);
  });

  it('ids and keys of BINARY stay what they are', async () => {
    await bed.sql(`CREATE TABLE bin (id BINARY(16) PRIMARY KEY, topic VARCHAR(50), aggregate_id VARCHAR(50),
                   payload BLOB, idempotency_key BINARY(16))`);
    const columns = { eventType: null, headers: null, status: null, availableAt: null, createdAt: null };
    const ids = ['ff00fe80c0af9fbfeda080efbfbd0000', '80818283c3a4e282ac00000000000000', '0'.repeat(32)];
    const values = ids.map((id) => `(UNHEX('${id}'), 't', 'k', UNHEX('${id}ff'), UNHEX('${id}'))`).join(', ');
    const write = () => bed.session(COMPRESS, `INSERT INTO bin VALUES ${values}`);
    const log = await bed.read(write, { outboxes: [bed.outbox('bin', columns)] });
    const rows = log.transactions[0].rows;
    expect(rows.map(({ idempotencyKey }) => idempotencyKey)).toEqual(ids);
    expect(rows.map(({ id }) => id)).toEqual(ids.map((id) => Buffer.from(id, 'hex').toString('utf8')));
  });

  it('of many megabytes, read in steps', async () => {
    const log = await bed.read(async () => {
      await bed.session(COMPRESS, FROM_MANY, insertOf('after'));
      await bed.sql(insertOf('plain'));
    });
    expect(keysOf(log)).toEqual([allOfMany, ['after'], ['plain']]);
  });

  it('C6 with a row of 20 MB', async () => {
    const size = 20 * MIB;
    const big = `INSERT INTO outbox (topic, aggregate_id, payload) VALUES ('t', 'big', JSON_QUOTE(REPEAT('x', ${size})))`;
    const log = await bed.read(() => bed.session(COMPRESS, big, insertOf('after')));
    expect(keysOf(log)).toEqual([['big'], ['after']]);
    expect(log.transactions[0].rows[0].value).toHaveLength('json:'.length + 2 * (1 + 4 + size));
  });

  it('A10 over the bound: read a second time, in pieces', async () => {
    const log = await bed.read(
      async () => {
        await bed.sql(insertOf('before'));
        await bed.session(COMPRESS, FROM_MANY, insertOf('after'), FROM_MANY);
        await bed.sql(insertOf('last'));
      },
      { maxTransactionBytes: MIB },
    );
    expect(keysOf(log)).toEqual([['before'], allOfMany, ['after'], allOfMany, ['last']]);
    expect(log.reached).toEqual(await bed.head());
  });

  it('of other tables alone need no memory', async () => {
    const copy = 'CREATE TABLE many2 LIKE many; INSERT INTO many2 SELECT * FROM many';
    const log = await bed.read(
      () =>
        bed.session(
          ...copy.split(';'),
          COMPRESS,
          'BEGIN',
          'UPDATE many2 SET filler = REVERSE(filler), n = -n',
          insertOf('one'),
          'COMMIT',
        ),
      { maxTransactionBytes: 65_536 },
    );
    expect(keysOf(log)).toEqual([['one']]);
  });
});
