import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { RelayError, type FaultCode } from '../../../src/model/fault.ts';
import { BEGIN, GTID, TABLE_MAP, TAGGED_GTID, WRITE_ROWS, XID } from './captured.ts';
import { LogWriter } from './log-writer.ts';
import { OUTBOX, outboxRow, readerOf, rowsOf } from './outbox-fixture.ts';

const RUNS = 10_000;

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
});
