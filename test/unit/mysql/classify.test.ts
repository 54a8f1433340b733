import { describe, expect, it } from 'vitest';
import { fault } from '../../../src/model/fault.ts';
import { classifyMysql } from '../../../src/mysql/classify.ts';

const error = (fields: object, message = 'near secret') => Object.assign(new Error(message), fields);

describe('what mysql2 throws', () => {
  it.each([
    [{ errno: 1045, code: 'ER_ACCESS_DENIED_ERROR', sqlState: '28000' }, 'MYSQL_ACCESS_DENIED', 'halt'],
    [{ errno: 3118, code: 'ER_ACCOUNT_HAS_BEEN_LOCKED', sqlState: 'HY000' }, 'MYSQL_ACCESS_DENIED', 'halt'],
    [{ errno: 1862, code: 'ER_MUST_CHANGE_PASSWORD_LOGIN', sqlState: 'HY000' }, 'MYSQL_ACCESS_DENIED', 'halt'],
    [{ errno: 1226, code: 'ER_USER_LIMIT_REACHED', sqlState: '42000' }, 'MYSQL_UNREACHABLE', 'retry'],
    [{ errno: 1047, code: 'ER_UNKNOWN_COM_ERROR', sqlState: '08S01' }, 'MYSQL_UNREACHABLE', 'retry'],
    [{ errno: 1213, code: 'ER_LOCK_DEADLOCK', sqlState: '40001' }, 'MYSQL_DEADLOCK', 'retry'],
    [{ errno: 1205, code: 'ER_LOCK_WAIT_TIMEOUT', sqlState: 'HY000' }, 'MYSQL_LOCK_WAIT', 'retry'],
    [{ errno: 1064, code: 'ER_PARSE_ERROR', sqlState: '42000' }, 'MYSQL_QUERY_FAILED', 'halt'],
    [{ code: 'PROTOCOL_SEQUENCE_TIMEOUT', fatal: true }, 'MYSQL_QUERY_TIMEOUT', 'retry'],
    [{ code: 'ECONNREFUSED', errno: -111, syscall: 'connect', fatal: true }, 'MYSQL_UNREACHABLE', 'retry'],
    [{ fatal: true }, 'MYSQL_UNREACHABLE', 'retry'],
    [{}, 'MYSQL_UNREACHABLE', 'retry'],
    [{ code: 'HANDSHAKE_SSL_ERROR', fatal: true }, 'MYSQL_ACCESS_DENIED', 'halt'],
    [{ code: 'HANDSHAKE_SSL_ERROR', fatal: true, errno: -104, syscall: 'read' }, 'MYSQL_UNREACHABLE', 'retry'],
    [{ code: 'HANDSHAKE_SSL_ERROR', fatal: true, localAddress: undefined }, 'MYSQL_UNREACHABLE', 'retry'],
  ])('%j is %s, %s', (fields, code, disposition) => {
    expect(classifyMysql(error(fields), 'working').fault).toMatchObject({ code, disposition });
  });

  it('shows no message of the server', () => {
    expect(classifyMysql(error({ errno: 1064, sqlState: '42000' }), 'working').message).not.toContain('secret');
  });

  it('leaves our own faults as they are', () => {
    const own = fault('STOPPED', 'halt', 'x');
    expect(classifyMysql(own, 'working')).toBe(own);
  });
});

it.each([
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'MYSQL_ACCESS_DENIED'],
  ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', 'MYSQL_ACCESS_DENIED'],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'MYSQL_ACCESS_DENIED'],
  ['ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', 'MYSQL_UNREACHABLE'],
])('%s, of a server that looks at our certificate: %s', (code, expected) => {
  expect(classifyMysql(Object.assign(new Error('x'), { code }), 'connecting').fault.code).toBe(expected);
});
