import { describe, expect, test } from 'vitest';
import { bytesBetween, expiryOf, logHeadroom, type LogPlaces } from '../../../src/store/log-headroom.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2026, 0, 2);
const at = (file: number, offset: number) => ({ file: `binlog.00000${file}`, offset });
const files = [1, 2, 3, 4].map((n) => ({ name: `binlog.00000${n}`, bytes: n * 1_000, end: n * 1_000 }));
const DAY = { expireMs: 24 * HOUR_MS, isByAge: true };
const PLACES: LogPlaces = {
  checkpoint: at(2, 500),
  lastCommitMs: NOW_MS - HOUR_MS,
  head: at(4, 250),
  files,
  nowMs: NOW_MS,
};

describe('until the binlog of the checkpoint may be purged', () => {
  test('the expiry after the last commit before it; the files before it go first', () => {
    expect(logHeadroom(PLACES, DAY)).toEqual({
      inMs: 23 * HOUR_MS,
      expireMs: 24 * HOUR_MS,
      keptBytes: 1_000,
      behindBytes: 1_500 + 3_000 + 250,
    });
  });

  test('the file that is being written will be written again', () => {
    const places = { ...PLACES, checkpoint: at(4, 200), lastCommitMs: NOW_MS - 900 * HOUR_MS };
    expect(logHeadroom(places, DAY)).toMatchObject({ inMs: 24 * HOUR_MS, keptBytes: 6_000, behindBytes: 50 });
  });

  test('past: at the next rotation; never below nothing', () => {
    expect(logHeadroom({ ...PLACES, lastCommitMs: NOW_MS - 25 * HOUR_MS }, DAY).inMs).toBe(0);
  });

  test('a commit time that lies ahead says no more than now', () => {
    expect(logHeadroom({ ...PLACES, lastCommitMs: NOW_MS + HOUR_MS }, DAY).inMs).toBe(24 * HOUR_MS);
  });

  test('the file is gone', () => {
    const gone = { ...PLACES, files: files.slice(2) };
    expect(logHeadroom(gone, DAY)).toMatchObject({ inMs: 0, keptBytes: null, behindBytes: null });
  });

  test('nobody knows: no expiry, purged by size, no transaction seen, files that may not be listed', () => {
    expect(logHeadroom(PLACES, { expireMs: null, isByAge: true })).toMatchObject({ inMs: null, expireMs: null });
    expect(logHeadroom(PLACES, { ...DAY, isByAge: false }).inMs).toBeNull();
    expect(logHeadroom({ ...PLACES, lastCommitMs: null }, DAY).inMs).toBeNull();
    expect(logHeadroom({ ...PLACES, files: null }, DAY)).toMatchObject({ keptBytes: null, behindBytes: null });
  });
});

test('bytes between two places: none backwards, none where a file between them is not listed', () => {
  expect(bytesBetween(files, at(2, 500), at(2, 700))).toBe(200);
  expect(bytesBetween(null, at(2, 500), at(2, 700))).toBe(200);
  expect(bytesBetween(files, at(3, 4), at(2, 700))).toBeNull();
  expect(bytesBetween([files[1], files[3]], at(2, 500), at(4, 4))).toBeNull();
});

describe('how long a binlog is kept', () => {
  const mysql = { basedir: '/usr/', binlog_expire_logs_seconds: 86_400, binlog_expire_logs_auto_purge: 1 };

  test.each([
    ['MySQL', mysql, DAY],
    ['MySQL before 8.0.29', { ...mysql, binlog_expire_logs_auto_purge: undefined }, DAY],
    ['days, where no seconds are set', { ...mysql, binlog_expire_logs_seconds: 0, expire_logs_days: '1.000000' }, DAY],
    ['for ever', { ...mysql, binlog_expire_logs_seconds: 0, expire_logs_days: 0 }, { expireMs: null, isByAge: true }],
    ['no purge by the server', { ...mysql, binlog_expire_logs_auto_purge: 0 }, { expireMs: null, isByAge: true }],
    ['a rule of its own', { ...mysql, basedir: '/rdsdbbin/mysql/' }, { expireMs: null, isByAge: true }],
    ['by size too', { ...mysql, max_binlog_total_size: '1073741824' }, { ...DAY, isByAge: false }],
  ])('%s', (_, row, expiry) => {
    expect(expiryOf(row)).toEqual(expiry);
  });
});
