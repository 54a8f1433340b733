import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isMariadb, startDatabase } from '../../stack/flavour.ts';
import { BinlogBed, checkpointAt, insertOf, keysOf } from './binlog-bed.ts';

const BOUND = { maxTransactionBytes: 1_048_576 };
const FROM_MANY = `INSERT INTO outbox (topic, aggregate_id, payload)
  SELECT 'orders', n, JSON_OBJECT('f', filler) FROM many ORDER BY n`;
const ALL = Array.from({ length: 2000 }, (_, n) => String(n + 1));

const NO_GTIDS = ['--gtid-mode=OFF', '--enforce-gtid-consistency=OFF'];

/** Without GTIDs on MySQL, so that tables of engines that cannot roll back may take part. */
let bed: BinlogBed;
beforeAll(async () => {
  bed = await BinlogBed.open(await startDatabase({ flags: isMariadb() ? [] : NO_GTIDS }));
  await bed.sql(`
    CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, st VARCHAR(20));
    CREATE TABLE plain (id INT) ENGINE = MyISAM;
    CREATE TABLE many (n INT PRIMARY KEY, filler VARCHAR(3000))`);
  await bed.sql('INSERT INTO many VALUES ?', [ALL.map((n) => [Number(n), 'x'.repeat(3_000)])]);
});
afterAll(() => bed[Symbol.asyncDispose]());

/** A table of an engine that cannot roll back keeps what was rolled back in the log. */
const KEPT = 'INSERT INTO plain VALUES (1)';

describe('A10 transactions over the bound', () => {
  it('come in pieces, between those before and behind them, and end where the log says', async () => {
    const from = await bed.head();
    await bed.session(insertOf('before'), FROM_MANY, insertOf('between'), FROM_MANY, FROM_MANY, insertOf('after'));
    const log = await bed.readFrom(from, BOUND);
    expect(keysOf(log)).toEqual([['before'], ALL, ['between'], ALL, ALL, ['after']]);
    const events = await bed.sql(`SHOW BINLOG EVENTS IN '${from.file}' FROM ${from.offset}`);
    const commits = events
      .filter((event) => event['Event_type'] === 'Xid')
      .map((event) => Number(event['End_log_pos']));
    expect(log.transactions.map(({ end }) => end.offset)).toEqual(commits);
    expect(keysOf(await bed.readFrom(log.transactions[3].end, BOUND))).toEqual([ALL, ['after']]);
  });

  it('that were rolled back never appear, though the log has them', async () => {
    const log = await bed.read(async () => {
      await bed.session('BEGIN', FROM_MANY, KEPT, 'ROLLBACK');
      await bed.session('BEGIN', KEPT, FROM_MANY, 'ROLLBACK', insertOf('after'));
    }, BOUND);
    expect(keysOf(log)).toEqual([['after']]);
  });

  it('A5 lack what was rolled back to a savepoint', async () => {
    const log = await bed.read(
      () =>
        bed.session(
          'BEGIN',
          insertOf('first'),
          'SAVEPOINT a',
          FROM_MANY,
          KEPT,
          'ROLLBACK TO a',
          FROM_MANY,
          'SAVEPOINT b',
          insertOf('gone'),
          KEPT,
          'ROLLBACK TO b',
          insertOf('last'),
          'COMMIT',
        ),
      BOUND,
    );
    expect(keysOf(log)).toEqual([['first', ...ALL, 'last']]);
  });

  it('may delete rows from before them', async () => {
    await bed.sql(insertOf('old'));
    const clean = "DELETE FROM outbox WHERE aggregate_id = 'old'";
    const log = await bed.read(() => bed.session('BEGIN', FROM_MANY, clean, 'COMMIT'), BOUND);
    expect(keysOf(log)).toEqual([ALL]);
  });

  it('A10 are handed on without rows when they change their own', async () => {
    const log = await bed.read(
      () =>
        bed.session(
          insertOf('good'),
          'BEGIN',
          FROM_MANY,
          'UPDATE outbox SET attempts = 1 ORDER BY id DESC LIMIT 1',
          'COMMIT',
          insertOf('behind'),
        ),
      BOUND,
    );
    expect(keysOf(log)).toEqual([['good'], [], ['behind']]);
    const { undecodable } = log.transactions[1];
    expect(undecodable).toMatchObject({ code: 'BINLOG_TRANSACTION_TOO_LARGE', disposition: 'halt' });
    expect(undecodable?.detail).toMatch(/at [\w.]+:\d+ holds more than/);
  });

  it('of other tables are no matter, whatever their size', async () => {
    await bed.sql('CREATE TABLE copy LIKE many');
    const log = await bed.read(
      () => bed.session('BEGIN', 'INSERT INTO copy SELECT * FROM many', insertOf('one'), 'COMMIT'),
      { maxTransactionBytes: 65_536 },
    );
    expect(keysOf(log)).toEqual([['one']]);
  });

  it('stop with the signal of their pieces, not with that of the stream', async () => {
    const from = await bed.head();
    await bed.session(FROM_MANY, insertOf('behind'));
    const rowsWhile = async (whole: AbortController, pieces: AbortController): Promise<number> => {
      let rows = 0;
      for await (const { transactions } of bed.source(BOUND).stream(checkpointAt(from), whole.signal)) {
        for (const transaction of transactions) {
          for await (const cursor of transaction.pieces?.(pieces.signal) ?? []) {
            while (cursor.next()) rows += 1;
            whole.abort();
          }
        }
      }
      return rows;
    };
    expect(await rowsWhile(new AbortController(), new AbortController())).toBe(ALL.length);
    const given = new AbortController();
    await expect(rowsWhile(given, given)).rejects.toMatchObject({ fault: { code: 'STOPPED' } });
  });
});

describe('shapes of statements', () => {
  it('A10 a transaction of several engines, committed and rolled back', async () => {
    const log = await bed.read(() =>
      bed.session(
        'BEGIN',
        insertOf('a'),
        KEPT,
        'COMMIT',
        'BEGIN',
        insertOf('b'),
        KEPT,
        'ROLLBACK',
        'BEGIN',
        KEPT,
        insertOf('c'),
        'COMMIT',
      ),
    );
    expect(keysOf(log)).toEqual([['a'], ['c']]);
  });

  it('INSERT … ON DUPLICATE KEY UPDATE, and statements on two tables', async () => {
    await bed.sql('INSERT INTO orders (id, st) VALUES (1, "x"), (2, "y")');
    const key = (text: string) => `UNHEX(RPAD(HEX('${text}'), 32, '0'))`;
    const upsert = (text: string, aggregate: string) =>
      `INSERT INTO outbox (topic, aggregate_id, idempotency_key) VALUES ('t', '${aggregate}', ${key(text)})
       ON DUPLICATE KEY UPDATE aggregate_id = '${aggregate}'`;
    const log = await bed.read(() =>
      bed.session(
        upsert('k', 'new'),
        'BEGIN',
        upsert('m', 'second'),
        upsert('m', 'second changed'),
        upsert('k', 'old changed'),
        'COMMIT',
        'BEGIN',
        insertOf('both'),
        "UPDATE orders JOIN outbox ON outbox.aggregate_id = 'both' SET orders.st = 'z', outbox.attempts = 3",
        'COMMIT',
        'BEGIN',
        insertOf('deleted'),
        "DELETE orders, outbox FROM orders JOIN outbox ON outbox.aggregate_id = 'deleted'",
        'COMMIT',
      ),
    );
    expect(keysOf(log)).toEqual([['new'], ['second changed'], ['both']]);
  });

  it('LOAD DATA in row format', async () => {
    await bed.sql('SET GLOBAL local_infile = ON');
    const connection = await bed.connect();
    const lines = Array.from({ length: 500 }, (_, n) => `orders\tloaded-${n}\t{"n": ${n}}\n`).join('');
    const log = await bed.read(async () => {
      await connection.query({
        sql: `LOAD DATA LOCAL INFILE 'rows' INTO TABLE ${bed.bed.database}.outbox (topic, aggregate_id, payload)`,
        infileStreamFactory: () => Readable.from([Buffer.from(lines)]),
      });
    });
    connection.destroy();
    expect(keysOf(log)).toEqual([Array.from({ length: 500 }, (_, n) => `loaded-${n}`)]);
  });
});

/** MariaDB compresses events, not transactions. */
const COMPRESS = isMariadb() ? [] : ['SET SESSION binlog_transaction_compression = ON'];

describe('a log without checksums', () => {
  it('is read, and so is one where they come and go', async () => {
    const log = await bed.read(async () => {
      await bed.session(insertOf('with'));
      await bed.sql('SET GLOBAL binlog_checksum = NONE');
      await bed.session(insertOf('without'), FROM_MANY, ...COMPRESS, insertOf('packed'), FROM_MANY);
      await bed.sql('SET GLOBAL binlog_checksum = CRC32');
      await bed.session(insertOf('again'));
    }, BOUND);
    expect(keysOf(log)).toEqual([['with'], ['without'], ALL, ['packed'], ALL, ['again']]);
  });
});
