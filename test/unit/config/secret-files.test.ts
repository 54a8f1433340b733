import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ROTATION_MS, Secrets } from '../../../src/config/secret-files.ts';
import type { FileValue } from '../../../src/config/value-file.ts';
import type { Log } from '../../../src/model/log.ts';
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
