import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { inflateInSteps } from '../../../src/binlog/payload.ts';
import { RelayError, type FaultCode } from '../../../src/model/fault.ts';
import { BEGIN, GTID, TABLE_MAP, TAGGED_GTID, WRITE_ROWS, XID } from './captured.ts';
import { LogWriter } from './log-writer.ts';
import { addCompressed, eventsInside, payloadOf } from './packed-events.ts';
import { DEFINITION, OUTBOX, outboxRow, readerOf, rowsOf } from './outbox-fixture.ts';

const RUNS = 10_000;
const PACKED_RUNS = 1_000;
const TOLERANT_RUNS = 2_000;

/** What a broken event may end the stream with. */
const EXPECTED: readonly FaultCode[] = [
  'BINLOG_DECODE',
  'BINLOG_UNSUPPORTED',
  'BINLOG_INCIDENT',
  'BINLOG_TRANSACTION_TOO_LARGE',
  'MYSQL_SCHEMA',
];

/** Numbers that are the same in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function sample(): Buffer[] {
  const log = new LogWriter();
  log.formatDescription();
  log.gtid(1);
  log.begin();
  log.tableMap(90, OUTBOX);
  log.insert(90, OUTBOX, [outboxRow(1), outboxRow(2)]);
  log.query('SAVEPOINT `a`');
  log.insert(90, OUTBOX, [outboxRow(3, { value: 'x'.repeat(300) })]);
  log.update(90, OUTBOX, [[outboxRow(1), outboxRow(1, { value: 'new' })]]);
  log.delete(90, OUTBOX, [outboxRow(2)]);
  log.query('ROLLBACK TO `a`');
  log.xid();
  log.artificial(27, Buffer.from('binlog.000001'), 0, log.offset);
  log.rotate('binlog.000002');
  return [...log.events, GTID, BEGIN, TABLE_MAP, WRITE_ROWS, XID, TAGGED_GTID];
}

function packedSample(): Buffer[] {
  const log = new LogWriter();
  log.gtid(1);
  const inside = eventsInside((each) => {
    each.begin();
    each.tableMap(90, OUTBOX);
    each.insert(90, OUTBOX, [outboxRow(1), outboxRow(2)]);
    each.xid();
  });
  log.add(40, payloadOf(inside));
  log.gtid(2);
  log.begin();
  log.tableMap(90, OUTBOX);
  addCompressed(log, 169, 12, (each) => each.insert(90, OUTBOX, [outboxRow(3), outboxRow(4)]));
  addCompressed(log, 170, 13, (each) => each.update(90, OUTBOX, [[outboxRow(3), outboxRow(3, { value: 'new' })]]));
  addCompressed(log, 165, 13 + 3 + 4, (each) => each.query('UPDATE elsewhere SET x = 1'));
  log.xid();
  return log.events;
}

/** The event with some bits flipped, cut short or lengthened; size and checksum are made to fit half of the time. */
function broken(event: Buffer, random: (below: number) => number): Buffer {
  let bytes = Buffer.from(event);
  const kind = random(4);
  if (kind === 0) bytes = bytes.subarray(0, random(bytes.length));
  if (kind === 1) bytes = Buffer.concat([bytes, Buffer.alloc(random(40), random(256))]);
  for (let flips = kind === 0 ? 0 : 1 + random(6); flips > 0; flips--) {
    if (bytes.length > 4) bytes[4 + random(bytes.length - 4)] ^= 1 << random(8);
  }
  if (random(2) === 0 && bytes.length >= 23) {
    bytes.writeUInt32LE(bytes.length, 9);
    bytes.writeUInt32LE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
  }
  return bytes;
}

describe('broken events', () => {
  it(`end in a fault or are passed over, ${RUNS} times`, { timeout: 60_000 }, () => {
    const random = numbers(20_261_130);
    const events = sample();
    const codes = new Set<string>();
    const began = performance.now();
    for (let run = 0; run < RUNS; run++) {
      const at = random(events.length);
      const stream = events.map((event, n) => (n === at ? broken(event, random) : event));
      const reader = readerOf({ from: { file: 'binlog.000001', offset: 4 }, maxTransactionBytes: 10_000 });
      try {
        let rows = 0;
        for (const event of stream) reader.event(event, 0, event.length);
        for (const transaction of reader.seal()?.transactions ?? []) rows += rowsOf(transaction).length;
        expect(rows).toBeLessThan(1_000);
      } catch (error) {
        if (!(error instanceof RelayError)) throw error;
        codes.add(error.fault.code);
      }
    }
    expect([...codes].filter((code) => !EXPECTED.includes(code as FaultCode))).toEqual([]);
    expect(codes).toContain('BINLOG_DECODE');
    expect(performance.now() - began).toBeLessThan(30_000);
  });

  it(`S24 met again: what is behind them is handed on, ${TOLERANT_RUNS} times`, { timeout: 60_000 }, () => {
    const random = numbers(20_261_130);
    for (let run = 0; run < TOLERANT_RUNS; run++) {
      const log = new LogWriter();
      log.gtid(1);
      log.begin();
      log.tableMap(90, OUTBOX);
      log.insert(90, OUTBOX, [outboxRow(1), outboxRow(2)]);
      log.update(90, OUTBOX, [[outboxRow(1), outboxRow(1, { value: 'new' })]]);
      log.xid();
      // All that the log says of where events begin and end, and of what kind they are, is left as it is.
      const event = log.events[random(log.events.length)];
      for (let flips = 1 + random(6); flips > 0; flips--) {
        if (event.length > 23) event[19 + random(event.length - 23)] ^= 1 << random(8);
      }
      event.writeUInt32LE(crc32(event.subarray(0, -4)), event.length - 4);
      const end = log.offset;
      log.gtid(2);
      log.begin();
      log.tableMap(90, OUTBOX);
      log.insert(90, OUTBOX, [outboxRow(9)]);
      log.xid();
      const reader = readerOf({ tolerant: true, definition: DEFINITION });
      for (const each of log.events) reader.event(each, 0, each.length);
      const transactions = [...reader.seal()!.transactions];
      expect(transactions.map(rowsOf).pop()).toMatchObject([{ id: 9n }]);
      expect(transactions.slice(0, -1).every((each) => each.end.offset <= end)).toBe(true);
    }
  });

  it(`in what was packed: the same, and no more comes out than was packed, ${PACKED_RUNS} times`, async () => {
    const random = numbers(20_261_201);
    const events = packedSample();
    const codes = new Set<string>();
    const before = process.memoryUsage.rss();
    for (let run = 0; run < PACKED_RUNS; run++) {
      const packed = events.flatMap((event, n) => (event[4] === 40 || event[4] > 164 ? [n] : []));
      const at = packed[random(packed.length)];
      const event = Buffer.from(events[at]);
      for (let flips = 1 + random(4); flips > 0; flips--) event[19 + random(event.length - 23)] ^= 1 << random(8);
      event.writeUInt32LE(crc32(event.subarray(0, -4)), event.length - 4);
      const reader = readerOf({ maxTransactionBytes: 10_000 });
      try {
        for (const each of events.map((whole, n) => (n === at ? event : whole))) {
          const payload = reader.event(each, 0, each.length);
          if (payload === null) continue;
          try {
            for await (const piece of inflateInSteps(payload)) reader.inside(piece);
            reader.insideEnds();
          } catch (error) {
            reader.insideFails(error);
          }
        }
        for (const transaction of reader.seal()?.transactions ?? []) rowsOf(transaction);
      } catch (error) {
        if (!(error instanceof RelayError)) throw error;
        codes.add(error.fault.code);
      }
    }
    expect([...codes].filter((code) => !EXPECTED.includes(code as FaultCode))).toEqual([]);
    expect(codes).toContain('BINLOG_DECODE');
    expect(process.memoryUsage.rss() - before).toBeLessThan(256 * 1024 * 1024);
  });
});
