import { expect, test } from 'vitest';
import { fault, type FaultCode } from '../../../src/model/fault.ts';
import type { Leader } from '../../../src/model/store.ts';
import type { OffsetsRow } from '../../../src/store/offsets-row.ts';
import { relayTransaction } from '../../../src/store/relay-transaction.ts';
import type { Session } from '../../../src/store/session.ts';

const LEADER = {} as Leader;
const error = (code: FaultCode) => fault(code, 'retry', 'test');
const deadlock = error('MYSQL_DEADLOCK');
const lockWait = error('MYSQL_LOCK_WAIT');

/**
 * A server that fails as told, statement by statement: a real one cannot be made to choose us as a deadlock's victim so
 * many times in a row.
 */
class Script {
  readonly said: string[] = [];
  readonly #failures: (Error | null)[];

  constructor(...failures: (Error | null)[]) {
    this.#failures = failures;
  }

  run(work: () => Promise<string | null> = () => Promise.resolve('done')): Promise<string | null> {
    const say = (text: string): Promise<void> => {
      this.said.push(text);
      const failure = text === 'ROLLBACK' ? null : this.#failures.shift();
      return failure == null ? Promise.resolve() : Promise.reject(failure);
    };
    const session = { isUsable: true, change: (_: string, sql: string) => say(sql) } as unknown as Session;
    const offsets = { compareAndSet: () => say('CAS') } as unknown as OffsetsRow;
    return relayTransaction(session, offsets, LEADER, 'testing', async () => {
      await say('WORK');
      return work();
    });
  }
}

const WHOLE = ['START TRANSACTION', 'CAS', 'WORK', 'COMMIT'];

test('the compare-and-set comes first; what leaves nothing to be kept is rolled back', async () => {
  const kept = new Script();
  expect(await kept.run()).toBe('done');
  expect(kept.said).toEqual(WHOLE);
  const empty = new Script();
  expect(await empty.run(() => Promise.resolve(null))).toBeNull();
  expect(empty.said.at(-1)).toBe('ROLLBACK');
});

test('after a deadlock it is made again from the start, a few times', async () => {
  const twice = new Script(null, null, deadlock, null, null, null, deadlock);
  expect(await twice.run()).toBe('done');
  expect(twice.said).toEqual([...WHOLE.slice(0, 3), 'ROLLBACK', ...WHOLE, 'ROLLBACK', ...WHOLE]);
  const always = new Script(...Array.from({ length: 40 }, (_, n) => (n % 3 === 2 ? deadlock : null)));
  await expect(always.run()).rejects.toBe(deadlock);
  expect(always.said.filter((text) => text === 'WORK')).toHaveLength(5);
});

test('the offsets row, which a flush may hold, is waited for again; a row of the application is not', async () => {
  const flush = new Script(null, lockWait, null, lockWait);
  expect(await flush.run()).toBe('done');
  expect(flush.said.filter((text) => text === 'CAS')).toHaveLength(3);
  const always = new Script(...Array.from({ length: 40 }, (_, n) => (n % 2 === 1 ? lockWait : null)));
  await expect(always.run()).rejects.toBe(lockWait);
  expect(always.said.filter((text) => text === 'CAS')).toHaveLength(5);
  const row = new Script(null, null, lockWait);
  await expect(row.run()).rejects.toBe(lockWait);
  expect(row.said).toEqual([...WHOLE.slice(0, 3), 'ROLLBACK']);
});

test('lost leadership is not tried again', async () => {
  const lost = error('LEADERSHIP_LOST');
  const script = new Script(null, lost);
  await expect(script.run()).rejects.toBe(lost);
  expect(script.said).toEqual(['START TRANSACTION', 'CAS', 'ROLLBACK']);
});
