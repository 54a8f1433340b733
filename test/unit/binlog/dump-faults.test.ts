import { describe, expect, it } from 'vitest';
import { dumpFault } from '../../../src/binlog/dump-faults.ts';
import { fault } from '../../../src/model/fault.ts';

const FROM = { file: 'binlog.000007', offset: 4711 };

/** As mysql2 makes it of the server's error packet. */
function serverError(errno: number, message: string): Error {
  return Object.assign(new Error(message), { errno, code: 'ER_ANY', sqlState: 'HY000' });
}

describe('what ends a dump', () => {
  it.each([
    [1236, 'Could not find first log file name in binary log index file', 'BINLOG_POSITION_UNUSABLE', 'halt', /purged/],
    [
      1236,
      'Client requested source to start replication from position > file size',
      'BINLOG_POSITION_UNUSABLE',
      'halt',
      /reset/,
    ],
    [
      1236,
      'log event entry exceeded max_allowed_packet; Increase max_allowed_packet',
      'BINLOG_POSITION_UNUSABLE',
      'halt',
      /not an event boundary.*max_allowed_packet/,
    ],
    [
      1236,
      'bogus data in log event; the first event',
      'BINLOG_POSITION_UNUSABLE',
      'halt',
      /not an event boundary.*max_allowed_packet/,
    ],
    [
      1236,
      'A replica with the same server_uuid/server_id as this replica has connected',
      'BINLOG_SERVER_ID_CLASH',
      'halt',
      /serverId/,
    ],
    [
      1236,
      'A slave with the same server_uuid/server_id as this slave has connected',
      'BINLOG_SERVER_ID_CLASH',
      'halt',
      /serverId/,
    ],
    [1236, 'Binary log is not open', 'BINLOG_DISABLED', 'halt', /log_bin/],
    [
      1227,
      'Access denied; you need the REPLICATION SLAVE privilege',
      'BINLOG_NOT_PERMITTED',
      'halt',
      /GRANT REPLICATION SLAVE/,
    ],
    [1045, "Access denied for user 'x'", 'MYSQL_ACCESS_DENIED', 'halt', /./],
    [1053, 'Server shutdown in progress', 'BINLOG_CONNECTION_LOST', 'retry', /./],
    [1317, 'Query execution was interrupted', 'BINLOG_CONNECTION_LOST', 'retry', /./],
    [3169, 'The session was killed', 'BINLOG_CONNECTION_LOST', 'retry', /./],
  ] as const)('%d %s', (errno, message, code, disposition, detail) => {
    const { fault: found } = dumpFault(serverError(errno, message), FROM);
    expect(found).toMatchObject({ code, disposition });
    expect(found.detail).toMatch(detail);
    if (code === 'BINLOG_POSITION_UNUSABLE') expect(found.detail).toContain('binlog.000007:4711');
  });

  it.each([
    [Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', fatal: true })],
    [Object.assign(new Error('lost'), { code: 'PROTOCOL_CONNECTION_LOST', fatal: true })],
    [new Error('no code at all')],
    ['not even an error'],
  ])('%s is a lost connection', (error) => {
    expect(dumpFault(error, FROM).fault).toMatchObject({ code: 'BINLOG_CONNECTION_LOST', disposition: 'retry' });
  });

  it('leaves our own faults as they are', () => {
    const own = fault('BINLOG_DISABLED', 'halt', 'x');
    expect(dumpFault(own, FROM)).toBe(own);
  });
});
