import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BinlogBed, keysOf, type ReadLog } from './binlog-bed.ts';
import type { SourceCounters } from '../../../src/binlog/source-counters.ts';

let bed: BinlogBed;
beforeAll(async () => {
  bed = await BinlogBed.open();
  await bed.sql('CREATE TABLE placed (id INT AUTO_INCREMENT PRIMARY KEY, st VARCHAR(20))');
  await bed.sql(`CREATE TRIGGER placing AFTER INSERT ON placed FOR EACH ROW BEGIN
    DO SLEEP(1.1);
    INSERT INTO outbox (topic, aggregate_id) VALUES ('t', NEW.st);
  END`);
  await bed.sql(`CREATE PROCEDURE place() BEGIN
    INSERT INTO outbox (topic, aggregate_id) VALUES ('t', 'p1');
    DO SLEEP(1.1);
    INSERT INTO outbox (topic, aggregate_id) VALUES ('t', 'p2');
  END`);
});
afterAll(() => bed[Symbol.asyncDispose]());

async function read(...statements: string[]): Promise<{ log: ReadLog; counters: Readonly<SourceCounters> }> {
  const source = bed.source();
  const from = await bed.head();
  await bed.session(...statements);
  return { log: await bed.readFrom(from, {}, source), counters: source.counters };
}

const insert = (key: string, columns = '', values = '') =>
  `INSERT INTO outbox (topic, aggregate_id${columns}) VALUES ('t', '${key}'${values})`;

describe('S34 a row whose available_at is the default is never taken for delayed', () => {
  it.each<[string, string[], string[][]]>([
    ['a slow trigger', ["INSERT INTO placed (st) VALUES ('a'), ('b')"], [['a', 'b']]],
    ['a slow procedure', ['CALL place()'], [['p1'], ['p2']]],
    ['a slow procedure in a transaction', ['BEGIN', 'CALL place()', 'COMMIT'], [['p1', 'p2']]],
    [
      'a slow transaction',
      ['BEGIN', insert('a'), 'DO SLEEP(1.1)', insert('b'), 'DO SLEEP(1.1)', 'COMMIT'],
      [['a', 'b']],
    ],
    ['a slow statement', [`INSERT INTO outbox (topic, aggregate_id) SELECT 't', CONCAT('s', SLEEP(1.1))`], [['s0']]],
    ['SET TIMESTAMP in the past', ['SET TIMESTAMP = 1000000000', insert('a')], [['a']]],
    ['SET TIMESTAMP in the future', ['SET TIMESTAMP = 2000000000.75', insert('a')], [['a']]],
    ['a session far to the east', ["SET time_zone = '+13:00'", insert('a')], [['a']]],
    ['a session far to the west', ["SET time_zone = '-11:00'", insert('a')], [['a']]],
  ])('%s', async (_, statements, keys) => {
    const { log, counters } = await read(...statements);
    expect(keysOf(log)).toEqual(keys);
    expect(counters).toMatchObject({ delayed: 0, notPending: 0 });
  });
});

describe('a row that waits, or has been, is not sent by the tail', () => {
  it.each<[string, string, string, { delayed: number; notPending: number }]>([
    ['due in a minute', ', available_at', ', UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE', { delayed: 1, notPending: 0 }],
    [
      'S34 due by a local clock to the east',
      ', available_at',
      ', UTC_TIMESTAMP(6) + INTERVAL 5 HOUR',
      { delayed: 1, notPending: 0 },
    ],
    ['inserted as published', ', status', ", 'published'", { delayed: 0, notPending: 1 }],
    ['inserted as failed', ', status', ", 'failed'", { delayed: 0, notPending: 1 }],
    ['inserted as processing', ', status', ", 'processing'", { delayed: 0, notPending: 1 }],
  ])('%s', async (_, columns, values, counted) => {
    const { log, counters } = await read(insert('waits', columns, values), insert('goes'));
    expect(keysOf(log).flat()).toEqual(['goes']);
    expect(counters).toMatchObject(counted);
  });

  it.each([
    ['due by a local clock to the west', ', UTC_TIMESTAMP(6) - INTERVAL 5 HOUR'],
    ['due within the second', ', UTC_TIMESTAMP()'],
  ])('%s: it is sent', async (_, values) => {
    const { log, counters } = await read(insert('goes', ', available_at', values));
    expect(keysOf(log)).toEqual([['goes']]);
    expect(counters.delayed).toBe(0);
  });
});
