import { describe, expect, it } from 'vitest';
import { LogPosition } from '../../../src/binlog/log-position.ts';
import { RelayError } from '../../../src/model/fault.ts';
import { LogWriter, u64 } from './log-writer.ts';
import { idsOf, OUTBOX, outboxRow, readChunk, readerOf } from './outbox-fixture.ts';

function insert(log: LogWriter, gno: number): void {
  log.gtid(gno);
  log.begin();
  log.tableMap(90, OUTBOX);
  log.insert(90, OUTBOX, [outboxRow(gno)]);
  log.xid();
}

describe('the position', () => {
  it('B7 goes on past 4 GiB, where headers begin again', () => {
    const from = { file: 'binlog.000001', offset: 4_294_962_881 };
    const log = new LogWriter(from);
    while (log.offset < 4_294_962_881 + 20_000) insert(log, 1);
    const { transactions, reached } = readChunk(readerOf({ from }), log.events)!;
    expect(reached).toEqual(log.position);
    expect(reached.offset).toBeGreaterThan(2 ** 32);
    const ends = transactions.map(({ end }) => end.offset);
    expect(ends).toEqual([...ends].sort((a, b) => a - b));
    expect(new Set(ends).size).toBe(ends.length);
  });

  it('B7 takes an event that ends exactly at 4 GiB for one of the file', () => {
    const position = new LogPosition({ file: 'f', offset: 2 ** 32 - 100 });
    expect(position.advance(100, 0)).toBe(true);
    expect(position.offset).toBe(2 ** 32);
  });

  it('stays where events are made up or do not say where they end', () => {
    const position = new LogPosition({ file: 'f', offset: 1000 });
    expect(position.advance(50, 0)).toBe(true);
    expect(position.offset).toBe(1000);
    expect(position.advance(30, 1080)).toBe(true);
    expect(position.offset).toBe(1080);
  });

  it.each([
    ['behind', 900],
    ['closer than the event is long', 1010],
    ['two gigabytes ahead', 1000 + 2 ** 31],
  ])('refuses an event that ends %s', (_, end) => {
    expect(new LogPosition({ file: 'f', offset: 1000 }).advance(30, end)).toBe(false);
  });

  it('reports an event out of its place as a decode fault', () => {
    const log = new LogWriter({ file: 'binlog.000001', offset: 5000 });
    const reader = readerOf({ from: { file: 'binlog.000001', offset: 6000 } });
    expect(() => readChunk(reader, [log.gtid(1)])).toThrow(RelayError);
  });

  it('S36 reaches the last event of a new file, a Previous_gtids', () => {
    const log = new LogWriter();
    insert(log, 1);
    log.rotate('binlog.000002');
    log.artificial(4, Buffer.concat([u64(4), Buffer.from('binlog.000002')]));
    log.formatDescription();
    log.add(35, Buffer.alloc(8));
    const group = readChunk(readerOf(), log.events)!;
    expect(group.reached).toEqual(log.position);
    expect(group.reached).toMatchObject({ file: 'binlog.000002' });
  });

  it('begins where the artificial rotation and a format description without a place say', () => {
    const log = new LogWriter({ file: 'binlog.000007', offset: 12_345 });
    const start = log.artificial(4, Buffer.concat([u64(12_345), Buffer.from('binlog.000007')]));
    const format = new LogWriter().formatDescription();
    format.writeUInt32LE(0, 13);
    insert(log, 1);
    const reader = readerOf({ from: { file: 'binlog.000007', offset: 12_345 } });
    const group = readChunk(reader, [start, format, ...log.events.slice(1)])!;
    expect(group.reached).toEqual(log.position);
    expect(group.worthSaving).toBe(false);
  });

  it.each([true, false])('reads files with checksums: %s', (checksum) => {
    const log = new LogWriter(undefined, checksum);
    const start = log.artificial(4, Buffer.concat([u64(4), Buffer.from('binlog.000001')]));
    log.formatDescription();
    insert(log, 1);
    const group = readChunk(readerOf(), [start, ...log.events.slice(1)])!;
    expect(group.reached).toEqual(log.position);
    expect(group.transactions.map(idsOf)).toEqual([[1]]);
  });

  it('follows heartbeats that are ahead of the events, between transactions only', () => {
    const log = new LogWriter();
    insert(log, 1);
    const reader = readerOf();
    readChunk(reader, log.events);
    const { offset } = log;
    const beat = (to: number, file = 'binlog.000001') => log.artificial(27, Buffer.from(file), 0, to);
    expect(readChunk(reader, [beat(offset)])).toBeNull();
    expect(readChunk(reader, [beat(offset - 10)])).toBeNull();
    expect(readChunk(reader, [beat(offset + 500, 'binlog.000009')])).toBeNull();
    expect(readChunk(reader, [beat(offset + 500)])?.reached.offset).toBe(offset + 500);
    const v2 = Buffer.concat([Buffer.of(1, 13), Buffer.from('binlog.000001'), Buffer.of(2, 9, 254), u64(offset + 900)]);
    expect(readChunk(reader, [log.artificial(41, Buffer.concat([v2, Buffer.of(0)]), 0, 0)])?.reached.offset).toBe(
      offset + 900,
    );
    log.offset = offset + 900;
    readChunk(reader, [log.gtid(2)]);
    expect(readChunk(reader, [beat(offset + 5000)])).toBeNull();
  });

  it('is the end of the transaction before while one is open', () => {
    const log = new LogWriter();
    insert(log, 1);
    const boundary = log.position;
    log.gtid(2);
    log.begin();
    log.tableMap(90, OUTBOX);
    expect(readChunk(readerOf(), log.events)!.reached).toEqual(boundary);
  });
});
