import { zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { LogReader } from '../../../src/binlog/log-reader.ts';
import { AT_ONCE_BYTES, inflateInSteps, type Payload } from '../../../src/binlog/payload.ts';
import { RelayError } from '../../../src/model/fault.ts';
import { LogWriter } from './log-writer.ts';
import { addCompressed, eventsInside, NONE, payloadOf, ZSTD } from './packed-events.ts';
import { idsOf, ORDERS, OUTBOX, outboxRow, readChunk, readerOf, rowsOf } from './outbox-fixture.ts';

function rows(ids: readonly number[], value?: string): (log: LogWriter) => void {
  return (log) => {
    log.begin();
    log.tableMap(80, ORDERS);
    log.tableMap(90, OUTBOX);
    log.insert(80, ORDERS, [outboxRow(1).slice(0, 2)]);
    for (const id of ids) log.insert(90, OUTBOX, [outboxRow(id, value === undefined ? {} : { value })]);
    log.xid();
  };
}

async function readAll(reader: LogReader, log: LogWriter): Promise<void> {
  for (const event of log.events) {
    const payload = reader.event(event, 0, event.length);
    if (payload === null) continue;
    try {
      for await (const piece of inflateInSteps(payload)) reader.inside(piece);
      reader.insideEnds();
    } catch (error) {
      reader.insideFails(error);
    }
  }
}

describe('C1 a compressed transaction', () => {
  it.each([ZSTD, NONE])('is read, and its event moves the position (compression %i)', (compression) => {
    const log = new LogWriter();
    log.gtid(1);
    log.add(40, payloadOf(eventsInside(rows([1, 2])), { compression }));
    const { offset } = log;
    log.gtid(2);
    log.add(40, payloadOf(eventsInside(rows([3]))));
    const reader = readerOf();
    for (const event of log.events) expect(reader.event(event, 0, event.length)).toBeNull();
    const group = reader.seal()!;
    expect(group.transactions.map(idsOf)).toEqual([[1, 2], [3]]);
    expect(group.transactions[0].end.offset).toBe(offset);
    expect(group.reached.offset).toBe(log.offset);
  });

  it('is read in steps when it is large, events cut anywhere', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => n + 1);
    const value = 'x'.repeat(70_000);
    const log = new LogWriter();
    log.gtid(1);
    log.add(40, payloadOf(eventsInside(rows(ids, value))));
    log.gtid(2);
    log.add(40, payloadOf(eventsInside(rows([99]))));
    const reader = readerOf({ maxTransactionBytes: 16 * 1024 * 1024 });
    await readAll(reader, log);
    const { transactions, reached } = reader.seal()!;
    expect(transactions.map(idsOf)).toEqual([ids, [99]]);
    expect(rowsOf(transactions[0])[7].value).toBe(value);
    expect(reached.offset).toBe(log.offset);
  });

  it('A10 is too large to be kept like any other', async () => {
    const log = new LogWriter();
    log.gtid(1);
    const begin = log.position;
    log.add(40, payloadOf(eventsInside(rows([1, 2, 3, 4], 'x'.repeat(500_000)))));
    const reader = readerOf({ maxTransactionBytes: 1_000_000 });
    await readAll(reader, log);
    expect(reader.large).toMatchObject({ begin: { offset: 4 }, end: { offset: log.offset }, gno: 1 });
    expect(begin.offset).toBeGreaterThan(4);
    expect(reader.seal()).toBeNull();
  });

  it('S24 large and broken, met again: is handed on without rows, and what is behind it is read', async () => {
    const log = new LogWriter();
    log.gtid(1);
    const packed = payloadOf(eventsInside(rows([1], 'x'.repeat(8 * AT_ONCE_BYTES))));
    packed.fill(7, packed.length - 9);
    log.add(40, packed);
    log.gtid(2);
    log.add(40, payloadOf(eventsInside(rows([2]))));
    await expect(readAll(readerOf(), log)).rejects.toThrow(/BINLOG_DECODE/);
    const reader = readerOf({ tolerant: true });
    await readAll(reader, log);
    const { transactions } = reader.seal()!;
    expect(transactions.map(idsOf)).toEqual([[], [2]]);
    expect(transactions.map(({ undecodable }) => undecodable?.code)).toEqual(['BINLOG_DECODE', undefined]);
  });

  it('A7 with a statement about an outbox among its events is handed on without rows', () => {
    const log = new LogWriter();
    log.gtid(1);
    const inside = eventsInside((each) => {
      each.begin();
      each.tableMap(90, OUTBOX);
      each.insert(90, OUTBOX, [outboxRow(1)]);
      each.query('REPLACE INTO outbox VALUES (2)');
      each.xid();
    });
    log.add(40, payloadOf(inside));
    const [{ undecodable, end }] = readChunk(readerOf(), log.events)!.transactions;
    expect(undecodable?.detail).toMatch(/as text/);
    expect(end).toEqual(log.position);
  });

  it('large and broken: fails, and gives no more than it says', async () => {
    const events = eventsInside(rows([1], 'x'.repeat(8 * AT_ONCE_BYTES)));
    const bytes = zstdCompressSync(events);
    const drain = async (payload: Payload): Promise<number> => {
      let bytesOut = 0;
      for await (const piece of inflateInSteps(payload)) bytesOut += piece.length;
      return bytesOut;
    };
    const said = { bytes, isCompressed: true, inflatedBytes: events.length };
    expect(await drain(said)).toBe(events.length);
    await expect(drain({ ...said, inflatedBytes: 2 * AT_ONCE_BYTES })).rejects.toThrow(/more in it/);
    await expect(drain({ ...said, inflatedBytes: events.length + 1 })).rejects.toThrow(/less in it/);
    await expect(drain({ ...said, bytes: bytes.subarray(0, -9) })).rejects.toThrow();
    await expect(drain({ ...said, bytes: Buffer.alloc(100, 7) })).rejects.toThrow();
  });
});

describe('a broken payload', () => {
  const good = eventsInside(rows([1]));
  it.each<[string, Buffer]>([
    ['is empty', Buffer.alloc(0)],
    ['has no end of its fields', payloadOf(good).subarray(0, 20)],
    ['is cut short', payloadOf(good).subarray(0, -5)],
    ['has another size', payloadOf(good, { size: 7 })],
    ['is packed in an unknown way', payloadOf(good, { compression: 3 })],
    ['says nothing of its content', payloadOf(good, { says: 0 })],
    ['holds more than it says', payloadOf(good, { says: good.length - 1 })],
    ['holds less than it says', payloadOf(good, { says: good.length + 1 })],
    ['would fill the memory', payloadOf(Buffer.alloc(64 * 1024 * 1024), { says: 1000 })],
    ['is no zstd', Buffer.concat([payloadOf(good, { size: 50 }).subarray(0, 34), Buffer.alloc(50, 9)])],
    ['ends inside an event', payloadOf(good.subarray(0, -3))],
    ['ends inside a header', payloadOf(good.subarray(0, 10))],
    ['holds an event of no size', payloadOf(Buffer.alloc(40))],
    ['holds an event of 4 GiB', payloadOf(Buffer.alloc(40, 0xff))],
    ['holds a payload', payloadOf(eventsInside((log) => log.add(40, payloadOf(good))))],
    ['holds a rotation', payloadOf(eventsInside((log) => log.rotate('binlog.000009')))],
    ['holds a format description', payloadOf(eventsInside((log) => log.formatDescription()))],
  ])('%s', (_, body) => {
    const log = new LogWriter();
    log.gtid(1);
    log.add(40, body);
    const reader = readerOf();
    reader.event(log.events[0], 0, log.events[0].length);
    const before = process.memoryUsage.rss();
    let caught: unknown;
    try {
      reader.event(log.events[1], 0, log.events[1].length);
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(RelayError);
    expect((caught as RelayError).fault).toMatchObject({ code: 'BINLOG_DECODE', disposition: 'retry' });
    expect((caught as RelayError).message).toMatch(/binlog\.000001:\d+ \(type 40\)/);
    expect(process.memoryUsage.rss() - before).toBeLessThan(32 * 1024 * 1024);
  });

  it('with a wrong checksum is not opened', () => {
    const log = new LogWriter();
    const event = log.add(40, payloadOf(good));
    event[60] ^= 1;
    expect(() => readerOf().event(event, 0, event.length)).toThrow(/type 40/);
  });
});

/** As MariaDB's `log_bin_compress` writes them. */
describe("MariaDB's compressed events", () => {
  function written(spoil: (event: Buffer) => void = () => undefined): LogWriter {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    log.tableMap(90, OUTBOX);
    const event = addCompressed(log, 169, 12, (each) => each.insert(90, OUTBOX, [outboxRow(1), outboxRow(2)]));
    spoil(event);
    const pair = [outboxRow(2), outboxRow(2, { value: 'changed' })] as const;
    addCompressed(log, 170, 13, (each) => each.update(90, OUTBOX, [pair]));
    addCompressed(log, 171, 12, (each) => each.delete(90, OUTBOX, [outboxRow(1)]));
    log.xid();
    return log;
  }

  it('are read as what they were', () => {
    const log = written();
    const reader = readerOf();
    for (const event of log.events) reader.event(event, 0, event.length);
    const [transaction] = reader.seal()!.transactions;
    expect(rowsOf(transaction)).toMatchObject([{ id: 2n, value: 'changed' }]);
  });

  it('of a statement', () => {
    const log = new LogWriter();
    log.gtid(1);
    log.begin();
    addCompressed(log, 165, 13 + 3 + 4, (each) => each.query('INSERT INTO outbox VALUES (1)'));
    log.xid();
    expect(readChunk(readerOf(), log.events)!.transactions[0].undecodable?.detail).toMatch(/as text/);
  });

  it('broken ones are told by their checksum', () => {
    const log = written((event) => (event[40] ^= 1));
    const reader = readerOf();
    expect(() => log.events.forEach((event) => reader.event(event, 0, event.length))).toThrow(/type 169/);
  });

  it('broken ones without a checksum fail too', () => {
    for (let at = 31; at < 40; at++) {
      const log = new LogWriter({ file: 'binlog.000001', offset: 4 }, false);
      log.formatDescription();
      log.tableMap(90, OUTBOX);
      const event = addCompressed(log, 169, 12, (each) => each.insert(90, OUTBOX, [outboxRow(1)]));
      event[at] ^= 0x55;
      const reader = readerOf();
      expect(() => log.events.forEach((each) => reader.event(each, 0, each.length)), `byte ${at}`).toThrow(RelayError);
    }
  });
});
