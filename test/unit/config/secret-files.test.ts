import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ROTATION_MS, Secrets } from '../../../src/config/secret-files.ts';
import type { LoadedConfig } from '../../../src/config/load.ts';
import type { FileValue } from '../../../src/config/value-file.ts';
import type { Log } from '../../../src/model/log.ts';
import { valueOf } from '../../../src/model/secret.ts';
import { ConfigDir, settings, VALID } from './config-dir.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

function watched() {
  const told: string[] = [];
  const tell = (event: string): void => void told.push(event);
  const log: Log = { debug: tell, info: tell, warn: tell, error: tell, child: () => log };
  const secrets = new Secrets(['fixed']);
  secrets.tellTo(log);
  const holds: { now: FileValue } = { now: { ok: true, value: 'a' } };
  return { told, secrets, holds, file: secrets.file('mysql.passwordFile', 'a', () => holds.now) };
}

test('a file is read each time; while it cannot be, the last value holds, and that is told once', () => {
  const { told, secrets, holds, file } = watched();
  expect(file.read()).toBe('a');
  expect(secrets.revision).toBe(0);
  holds.now = { ok: false, problem: 'it does not exist' };
  expect([file.read(), file.read()]).toEqual(['a', 'a']);
  holds.now = { ok: true, value: 'b' };
  expect([file.read(), file.read()]).toEqual(['b', 'b']);
  expect(told).toEqual(['secret-unreadable', 'secret-read-anew']);
  expect(secrets.revision).toBe(1);
  expect(secrets.values().toSorted()).toEqual(['a', 'b', 'fixed']);
  holds.now = { ok: false, problem: 'permission denied' };
  expect(file.read()).toBe('b');
  expect(told.at(-1)).toBe('secret-unreadable');
});

test('tokens of months are not all kept', () => {
  const { secrets, holds, file } = watched();
  for (let n = 0; n < 1000; n++) {
    holds.now = { ok: true, value: `token ${n}` };
    file.read();
  }
  expect(secrets.values().length).toBeLessThan(20);
  expect(secrets.values()).toContain('token 999');
});

test('a refusal may pass when the value was taken before, for ten minutes from the first one on', () => {
  const { file } = watched();
  expect(file.refused()).toBe(false);
  file.accepted();
  expect(file.refused()).toBe(true);
  vi.advanceTimersByTime(ROTATION_MS - 1);
  expect(file.refused()).toBe(true);
  vi.advanceTimersByTime(1);
  expect(file.refused()).toBe(false);
  file.accepted();
  expect(file.refused()).toBe(true);
});

test('each key with a file of its own is read again, and no other', () => {
  using dir = new ConfigDir();
  dir.write('password', 'one\n');
  const { mysql } = settings(dir.load(VALID.replace('password: hunter2hunter2', 'passwordFile: password')));
  if (typeof mysql.password === 'string') throw new Error('not a file');
  expect(mysql.password.read()).toBe('one');
  dir.write('password', 'two\n');
  expect(mysql.password.read()).toBe('two');
  expect(settings(dir.load(VALID)).mysql.password).toBe('hunter2hunter2');
});

const URL_CONFIG = VALID.replace(/ {2}host: db1\n.*\n.*\n.*\n/, '  urlFile: url\n');

function loadedSecrets(loaded: LoadedConfig) {
  if (!loaded.ok) throw new Error(loaded.report);
  const told: object[] = [];
  const tell = (event: string, fields: object = {}): void => void told.push({ event, ...fields });
  const log: Log = { debug: tell, info: tell, warn: tell, error: tell, child: () => log };
  loaded.secrets.tellTo(log);
  return { told, values: () => loaded.secrets.values() };
}

test('user and password of a URL in a file change with it; another server than at the start is not taken', () => {
  using dir = new ConfigDir();
  dir.write('url', 'mysql://one:first%2Fpassword@db1/app\n');
  const loaded = dir.load(URL_CONFIG);
  const { mysql } = settings(loaded);
  const secrets = loadedSecrets(loaded);
  const login = () => [valueOf(mysql.user), valueOf(mysql.password)];
  expect(login()).toEqual(['one', 'first/password']);
  dir.write('url', 'mysql://two:second%2Fpassword@db1:3306/app\n');
  expect(login()).toEqual(['two', 'second/password']);
  for (const other of ['db2/app', 'db1:3307/app', 'db1/other']) {
    dir.write('url', `mysql://three:third%2Fpassword@${other}`);
    expect(login()).toEqual(['two', 'second/password']);
  }
  dir.write('url', 'mysql://db1/app');
  expect(login()).toEqual(['two', 'second/password']);
  dir.write('url', 'not a url: third/password');
  expect(login()).toEqual(['two', 'second/password']);
  dir.write('url', 'mysql://three@db1/app');
  expect(login()).toEqual(['three', '']);
  const key = 'mysql.urlFile';
  expect(secrets.told).toMatchObject([
    { event: 'secret-read-anew', key },
    { event: 'secret-unreadable', key, problem: expect.stringContaining('another host, port or database') as string },
    { event: 'secret-unreadable', key, problem: 'found a URL without a user' },
    { event: 'secret-unreadable', key, problem: expect.stringContaining('no URL') as string },
    { event: 'secret-read-anew', key },
  ]);
  expect(JSON.stringify(secrets.told)).not.toMatch(/third|db2/);
  expect(secrets.values().filter((value) => value !== '')).toEqual(['first/password', 'second/password']);
});

test('what a higher source says of the login is not read from the URL again', () => {
  using dir = new ConfigDir();
  dir.write('url', 'mysql://one:first@db1/app');
  const password = dir.write('password', 'of its own');
  const fixed = settings(dir.load(URL_CONFIG, { CDC_RELAY_MYSQL_USER: 'mine' })).mysql;
  const filed = settings(dir.load(URL_CONFIG, { CDC_RELAY_MYSQL_PASSWORD_FILE: password })).mysql;
  dir.write('url', 'mysql://two:second@db1/app');
  expect([fixed, filed].map(({ user, password }) => [valueOf(user), valueOf(password)])).toEqual([
    ['mine', 'second'],
    ['two', 'of its own'],
  ]);
});

test('a value that would be refused at the start is not taken later', () => {
  using dir = new ConfigDir();
  dir.write('token', 'the first of the tokens');
  const loaded = dir.load(`${VALID}http: {tokenFile: token}\n`);
  const { http } = settings(loaded);
  const secrets = loadedSecrets(loaded);
  dir.write('token', 'too short');
  expect(valueOf(http.token!)).toBe('the first of the tokens');
  dir.write('token', 'the second of the tokens');
  expect(valueOf(http.token!)).toBe('the second of the tokens');
  expect(secrets.told).toMatchObject([
    { event: 'secret-unreadable', key: 'http.tokenFile', problem: expect.stringContaining('16 characters') as string },
    { event: 'secret-read-anew', key: 'http.tokenFile' },
  ]);
  expect(secrets.values()).toEqual(expect.arrayContaining(['the first of the tokens', 'the second of the tokens']));
});
