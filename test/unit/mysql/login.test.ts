import { expect, test } from 'vitest';
import type { SecretFile } from '../../../src/model/secret.ts';
import type { MysqlSettings } from '../../../src/model/settings.ts';
import { classifyMysql } from '../../../src/mysql/classify.ts';
import { loggedIn, loginFault } from '../../../src/mysql/login.ts';

function fileOf(value: string): SecretFile {
  let wasAccepted = false;
  return { read: () => value, accepted: () => void (wasAccepted = true), refused: () => wasAccepted };
}

function settings(over: Partial<MysqlSettings>): MysqlSettings {
  return { host: 'db1', port: 3306, user: 'relay', password: 'x', tls: null, ...over } as MysqlSettings;
}

const PASSWORD = { errno: 1045, code: 'ER_ACCESS_DENIED_ERROR', sqlState: '28000' };
const LOCKED = { errno: 3118, code: 'ER_ACCOUNT_HAS_BEEN_LOCKED', sqlState: 'HY000' };
const CERTIFICATE = { code: 'DEPTH_ZERO_SELF_SIGNED_CERT', fatal: true };
const TABLE = { errno: 1142, code: 'ER_TABLEACCESS_DENIED_ERROR', sqlState: '42000' };

function judged(mysql: MysqlSettings, shape: object): string {
  const thrown = Object.assign(new Error('x'), shape);
  return loginFault(mysql, classifyMysql(thrown, 'connecting'), thrown).fault.disposition;
}

test('a refusal may pass when its secret stands in a file and was taken before', () => {
  const mysql = settings({ password: fileOf('p') });
  expect(judged(mysql, PASSWORD)).toBe('halt');
  loggedIn(mysql);
  expect(judged(mysql, PASSWORD)).toBe('retry');
  expect(judged(mysql, LOCKED)).toBe('retry');
  const byFile = settings({ tls: { verify: true, ca: fileOf('ca') } });
  loggedIn(byFile);
  expect(judged(byFile, CERTIFICATE)).toBe('retry');
});

test('without a file it halts, and so does a right that is missing', () => {
  const fixed = settings({});
  loggedIn(fixed);
  expect(judged(fixed, PASSWORD)).toBe('halt');
  const mysql = settings({ password: fileOf('p') });
  loggedIn(mysql);
  expect(judged(mysql, TABLE)).toBe('halt');
});
