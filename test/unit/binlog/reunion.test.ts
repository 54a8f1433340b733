import { describe, expect, it } from 'vitest';
import type { LogReader } from '../../../src/binlog/log-reader.ts';
import { Reunion } from '../../../src/binlog/reunion.ts';
import { RelayError } from '../../../src/model/fault.ts';
import { type Checkpoint, formatGtid, type Position } from '../../../src/model/position.ts';
import { beginOf, type TransactionGroup } from '../../../src/model/source.ts';
import { LogWriter, u64 } from './log-writer.ts';
import { idsOf, OUTBOX, outboxRow, readChunk, readerOf } from './outbox-fixture.ts';

/** As a server writes it: one row a transaction. */
function insert(log: LogWriter, gno: number): void {
  log.gtid(gno);
  log.begin();
  log.tableMap(90, OUTBOX);
  log.insert(90, OUTBOX, [outboxRow(gno)]);
  log.xid();
}

function foreign(log: LogWriter, gno: number): void {
  log.gtid(gno);
  log.query(`CREATE TABLE t${gno} (i INT)`);
}

/** What a relay knows that has read all of it. */
function checkpointOf({ reached, last }: TransactionGroup): Checkpoint {
  return {
    position: reached,
    gtidSet: null,
    lastBegin: beginOf(last!),
    lastGtid: last!.gtid === null ? null : formatGtid(last!.gtid),
    lastCommitMicros: last!.commitMicros,
  };
}

/** Events of a log from a place in it on, as a dump gives them: with what the server makes up before them. */
function dumpOf(log: LogWriter, from: Position, events: readonly Buffer[] = log.events): Buffer[] {
  const start = new LogWriter().artificial(4, Buffer.concat([u64(from.offset), Buffer.from(from.file)]));
  const format = new LogWriter().formatDescription();
  format.writeUInt32LE(0, 13);
  const behind = events.filter((event) => event.readUInt32LE(13) - event.length >= from.offset);
  return [start, format, ...behind];
}

function readerAt(checkpoint: Checkpoint): LogReader {
  return readerOf({ from: checkpoint.position, reunion: Reunion.at(checkpoint)! });
}

function thrownBy(work: () => unknown): RelayError['fault'] {
  try {
    work();
  } catch (error) {
    if (error instanceof RelayError) return error.fault;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('a stream that begins at the transaction before the checkpoint', () => {
  it.each<[string, (log: LogWriter, gno: number) => void]>([
    ['with rows', insert],
    ['without', foreign],
    [
      'without a GTID',
      (log) => {
        log.anonymous();
        log.query('FLUSH PRIVILEGES');
      },
    ],
    ['without an event that opens it', (log) => log.query('FLUSH PRIVILEGES')],
  ])('%s: passes over it, and hands on what follows', (_, last) => {
    const log = new LogWriter({ file: 'binlog.000001', offset: 1_000 });
    const reader = readerOf({ from: log.position });
    insert(log, 1);
    last(log, 2);
    const checkpoint = checkpointOf(readChunk(reader, log.events)!);
    expect(checkpoint.lastBegin!.offset).toBeGreaterThan(1_000);
    insert(log, 3);
    const again = readerAt(checkpoint);
    const events = dumpOf(log, checkpoint.lastBegin!);
    // Whatever the socket cuts it into.
    const groups = events.map((event) => readChunk(again, [event])).filter((group) => group !== null);
    expect(groups.flatMap(({ transactions }) => transactions.map(idsOf))).toEqual([[3]]);
    expect(groups.flatMap(({ skipped }) => skipped)).toEqual([]);
    expect(groups.every(({ worthSaving }) => !worthSaving)).toBe(true);
    expect(groups.at(-1)!.reached).toEqual(log.position);
    expect(groups.at(-1)!.last).toMatchObject({ end: log.position, gtid: { gno: 3 } });
  });

  it('goes on through the end of its file', () => {
    const log = new LogWriter({ file: 'binlog.000001', offset: 1_000 });
    const reader = readerOf({ from: log.position });
    insert(log, 1);
    log.rotate('binlog.000002');
    const next = log.artificial(4, Buffer.concat([u64(4), Buffer.from('binlog.000002')]));
    log.formatDescription();
    log.add(35, Buffer.alloc(8));
    const checkpoint = checkpointOf(readChunk(reader, log.events)!);
    expect(checkpoint).toMatchObject({ position: log.position, lastBegin: { file: 'binlog.000001', offset: 1_000 } });
    const all = [...log.events];
    insert(log, 2);
    const again = readerAt(checkpoint);
    expect(readChunk(again, all)).toBeNull();
    expect(next.length).toBeGreaterThan(0);
    const group = readChunk(again, log.events.slice(all.length))!;
    expect(group).toMatchObject({ reached: log.position, worthSaving: false });
    expect(group.transactions.map(idsOf)).toEqual([[2]]);
  });

  it('B7 comes to a place past 4 GiB, where no dump could begin', () => {
    const log = new LogWriter({ file: 'binlog.000001', offset: 2 ** 32 - 50 });
    const reader = readerOf({ from: log.position });
    insert(log, 1);
    const checkpoint = checkpointOf(readChunk(reader, log.events)!);
    expect(checkpoint.position.offset).toBeGreaterThan(2 ** 32);
    const first = log.events.length;
    insert(log, 2);
    const again = readerAt(checkpoint);
    expect(readChunk(again, log.events.slice(0, first))).toBeNull();
    expect(readChunk(again, log.events.slice(first))!.transactions.map(idsOf)).toEqual([[2]]);
  });

  const known = (): { log: LogWriter; checkpoint: Checkpoint } => {
    const log = new LogWriter({ file: 'binlog.000001', offset: 1_000 });
    const reader = readerOf({ from: log.position });
    insert(log, 1);
    insert(log, 2);
    return { log, checkpoint: checkpointOf(readChunk(reader, log.events)!) };
  };

  it('S2 finds the same GTID at the same place with another commit time', () => {
    const { checkpoint } = known();
    const other = new LogWriter({ file: 'binlog.000001', offset: 1_000 });
    other.seconds += 3_600;
    insert(other, 1);
    insert(other, 2);
    expect(other.position).toEqual(checkpoint.position);
    const { code, detail } = thrownBy(() => readChunk(readerAt(checkpoint), dumpOf(other, checkpoint.lastBegin!)));
    expect(code).toBe('BINLOG_POSITION_UNUSABLE');
    expect(detail).toContain('read up to binlog.000001:');
    expect(detail).toMatch(/:2 of 2026-\S+ begins|:2 of \S+; now transaction \S+:2 of \S+ begins there/);
  });

  it('finds another transaction', () => {
    const { checkpoint } = known();
    const other = new LogWriter(checkpoint.lastBegin!);
    insert(other, 7);
    const found = thrownBy(() => readChunk(readerAt(checkpoint), other.events));
    expect(found).toMatchObject({ code: 'BINLOG_POSITION_UNUSABLE', disposition: 'halt' });
    expect(found.detail).toMatch(/restored/);
  });

  it('finds that no event ends at the checkpoint', () => {
    const { log, checkpoint } = known();
    const off = { ...checkpoint, position: { ...checkpoint.position, offset: checkpoint.position.offset - 1 } };
    const { code, detail } = thrownBy(() => readChunk(readerAt(off), dumpOf(log, checkpoint.lastBegin!)));
    expect(code).toBe('BINLOG_POSITION_UNUSABLE');
    expect(detail).toContain('no event ends there');
  });

  it('finds that the log ends before it', () => {
    const { log, checkpoint } = known();
    const dump = dumpOf(log, checkpoint.lastBegin!).slice(0, -1);
    const end = checkpoint.position.offset - log.events.at(-1)!.length;
    const beat = log.artificial(27, Buffer.from('binlog.000001'), 0, end);
    const { code, detail } = thrownBy(() => readChunk(readerAt(checkpoint), [...dump, beat]));
    expect(code).toBe('BINLOG_POSITION_UNUSABLE');
    expect(detail).toContain('cut short');
  });

  it('tries again when the transaction came damaged', () => {
    const { log, checkpoint } = known();
    const dump = dumpOf(log, checkpoint.lastBegin!).map((event) => Buffer.from(event));
    dump[2][30] ^= 1;
    expect(thrownBy(() => readChunk(readerAt(checkpoint), dump))).toMatchObject({
      code: 'BINLOG_DECODE',
      disposition: 'retry',
    });
  });
});
