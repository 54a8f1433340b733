import { describe, expect, it } from 'vitest';
import { checksumBytesOf, checksumHolds } from '../../../src/binlog/checksum.ts';
import { readHeartbeat, readHeartbeatV2, readRotate } from '../../../src/binlog/control-events.ts';
import { GroupStart } from '../../../src/binlog/gtid-event.ts';
import { readStatement } from '../../../src/binlog/query-event.ts';
import { readTableMap } from '../../../src/binlog/table-map.ts';
import {
  BEGIN,
  FORMAT_DESCRIPTION,
  GTID,
  HEARTBEAT,
  ROTATE,
  TABLE_MAP,
  TAGGED_GTID,
  WRITE_ROWS,
  XID,
} from './captured.ts';
import { LogWriter, u64 } from './log-writer.ts';

const body = (event: Buffer) => event.length - 4;

describe('events of a MySQL 9.7', () => {
  it('carry checksums that hold, and do not when a bit is wrong', () => {
    for (const event of [ROTATE, FORMAT_DESCRIPTION, GTID, TAGGED_GTID, BEGIN, TABLE_MAP, WRITE_ROWS, XID, HEARTBEAT]) {
      expect(checksumHolds(event, 0, event.length)).toBe(true);
      const broken = Buffer.from(event);
      broken[20] ^= 4;
      expect(checksumHolds(broken, 0, broken.length)).toBe(false);
    }
    expect(checksumBytesOf(FORMAT_DESCRIPTION, FORMAT_DESCRIPTION.length)).toBe(4);
  });

  it('ROTATE', () => {
    expect(readRotate(ROTATE, 0, ROTATE.length).file).toMatch(/^binlog\.\d{6}$/);
    const bare = new LogWriter(undefined, false).artificial(
      4,
      Buffer.concat([u64(2 ** 33), Buffer.from('mysql-bin.1000000')]),
    );
    expect(readRotate(bare, 0, bare.length)).toEqual({ file: 'mysql-bin.1000000', offset: 2 ** 33 });
  });

  it('HEARTBEAT, and with a position of 64 bits', () => {
    const position = readHeartbeat(HEARTBEAT, 0, body(HEARTBEAT));
    expect(position.file).toMatch(/^binlog\.\d{6}$/);
    expect(position.offset).toBe(HEARTBEAT.readUInt32LE(13));
    const wide = new LogWriter().artificial(27, Buffer.concat([u64(2 ** 40), Buffer.from('mariadb.000001')]));
    expect(readHeartbeat(wide, 0, body(wide))).toEqual({ file: 'mariadb.000001', offset: 2 ** 40 });
    const v2 = Buffer.concat([
      Buffer.of(1, 3),
      Buffer.from('f.1'),
      Buffer.of(2, 9, 254),
      u64(2 ** 40),
      Buffer.of(0, 9),
    ]);
    const event = new LogWriter().artificial(41, v2);
    expect(readHeartbeatV2(event, 0, body(event))).toEqual({ file: 'f.1', offset: 2 ** 40 });
  });

  it('GTID', () => {
    const start = new GroupStart();
    start.readGtid(GTID, 0, body(GTID), 1);
    expect(start.sid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(start.sid).toBe(GTID.toString('hex', 20, 36).replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5'));
    expect(start.gno).toBe(151_028);
    expect(Math.floor(start.commitMicros / 1_000_000)).toBe(GTID.readUInt32LE(0));
  });

  it('tagged GTID', () => {
    const plain = new GroupStart();
    plain.readGtid(GTID, 0, body(GTID), 1);
    const start = new GroupStart();
    start.readTagged(TAGGED_GTID, 0, body(TAGGED_GTID), 1);
    expect(start.sid).toBe(`${plain.sid}:orders_tag`);
    expect(start.gno).toBe(2);
    expect(Math.floor(start.commitMicros / 1_000_000)).toBe(TAGGED_GTID.readUInt32LE(0));
  });

  it('GTIDs of several sources in turn', () => {
    const start = new GroupStart();
    const log = new LogWriter();
    const sids = ['00'.repeat(16), 'ff'.repeat(16), `${'00'.repeat(15)}01`, '00'.repeat(16)];
    const read = sids.map((sid, n) => {
      const event = log.gtid(2 ** 40 + n, sid, 0);
      start.readGtid(event, 0, body(event), 77);
      return [start.sid?.replaceAll('-', ''), start.gno, start.commitMicros];
    });
    expect(read).toEqual(sids.map((sid, n) => [sid, 2 ** 40 + n, 77_000_000]));
  });

  it("MariaDB's GTID", () => {
    const start = new GroupStart();
    const event = new LogWriter().add(162, Buffer.concat([u64(23), Buffer.of(5, 0, 0, 0, 1), Buffer.alloc(6)]));
    start.readMariadb(event, 0, body(event), 9);
    expect(start).toMatchObject({ sid: '5-1', gno: 23, standalone: true, commitMicros: 9_000_000 });
  });

  it('TABLE_MAP with full metadata', () => {
    const map = readTableMap(TABLE_MAP, 0, body(TABLE_MAP), false);
    expect(map).toMatchObject({ schema: 'cap', table: 'fx', primaryKey: [0] });
    expect(map.columns.map(({ name, type, extent }) => [name, type, extent?.prefix, extent?.width])).toEqual([
      ['id', 8, 0, 8],
      ['s', 2, 0, 2],
      ['t', 15, 2, 300],
      ['e', 247, 0, 1],
      ['b', 254, 1, 16],
      ['d', 18, 0, 8],
      ['v', 242, 4, 2 ** 32 - 1],
      ['j', 245, 4, 2 ** 32 - 1],
      ['x', 246, 0, 5],
      ['y', 248, 0, 1],
    ]);
    expect(map.columns.map(({ unsigned }) => unsigned)).toEqual([
      ...[true, false, null, null, null],
      ...[null, null, null, true, null],
    ]);
    expect(map.columns.map(({ collation }) => collation)).toEqual([null, null, 8, 11, 63, null, 63, null, null, 255]);
    expect(map.columns.map(({ labels }) => labels?.map(String))).toEqual([
      ...[undefined, undefined, undefined, ['pending', "it's"], undefined],
      ...[undefined, undefined, undefined, undefined, ['a', 'b']],
    ]);
  });
});

describe('a statement', () => {
  const read = (text: string) => {
    const event = new LogWriter().query(text, 'app');
    return readStatement(event, 0, body(event));
  };

  it.each([
    ['BEGIN', { kind: 'begin' }],
    ['COMMIT', { kind: 'commit' }],
    ['commit', { kind: 'commit' }],
    ['ROLLBACK', { kind: 'rollback' }],
    ["XA START X'78',X'',1", { kind: 'xa start' }],
    ["XA END X'78',X'',1", { kind: 'xa end' }],
    ['SAVEPOINT `A b``c`', { kind: 'savepoint', name: 'a b``c' }],
    ['ROLLBACK TO `a`', { kind: 'rollback to', name: 'a' }],
    ['ROLLBACK TO SAVEPOINT a', { kind: 'rollback to', name: 'a' }],
    ["XA COMMIT X'78',X'',1", { kind: 'xa commit', xid: '78,,1' }],
    ["XA ROLLBACK X'78FF',X'0a',4294967295", { kind: 'xa rollback', xid: '78ff,0a,4294967295' }],
    ["xa commit 'x'", { kind: 'xa commit', xid: null }],
    ['XA RECOVER', { kind: 'other', schema: 'app', text: 'XA RECOVER' }],
    ['COMMITTED', { kind: 'other', schema: 'app', text: 'COMMITTED' }],
    ['BEGUN', { kind: 'other', schema: 'app', text: 'BEGUN' }],
  ])('%s', (text, expected) => expect(read(text)).toEqual(expected));

  it('as the server wrote it', () => {
    expect(readStatement(BEGIN, 0, body(BEGIN))).toEqual({ kind: 'begin' });
  });
});
