import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/model/clock.ts';
import { fault } from '../../../src/model/fault.ts';
import type { Progress, ProgressReader, WaitingJob } from '../../../src/model/progress.ts';
import { newRelayStats } from '../../../src/model/stats.ts';
import { DatabaseWatch } from '../../../src/observability/database-watch.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A database that is only asked. */
class Asked {
  readonly wanted: { readonly outboxes: boolean; readonly surroundings: boolean }[] = [];
  readonly took = { outboxesTookMs: 0, surroundingsTookMs: 0 };
  standbys: number | null = 1;
  jobs: WaitingJob[] = [];
  looks = 0;
  /** Answers come when this settles. */
  answer: Promise<unknown> = Promise.resolve();
  readonly watch: DatabaseWatch;
  readonly #end = new AbortController();
  readonly #running: Promise<void>;

  constructor() {
    const reader: ProgressReader = {
      read: async (wanted) => {
        this.wanted.push(wanted);
        await this.answer;
        return this.#progress(wanted);
      },
      close: () => undefined,
    };
    const onLook = (): void => {
      this.looks++;
    };
    this.watch = new DatabaseWatch({ reader, stats: newRelayStats(), clock: systemClock, onLook });
    this.#running = this.watch.run(this.#end.signal);
  }

  async end(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  #progress({ outboxes, surroundings }: (typeof this.wanted)[number]): Progress {
    return {
      ...{ serverMs: Date.now(), head: null, leader: null, paused: null, purge: null, ...this.took },
      outboxes: outboxes ? [null] : null,
      surroundings: surroundings ? { standbys: this.standbys, jobs: this.jobs, oldestParkedMs: null } : null,
    };
  }
}

const times = (asked: Asked, what: 'outboxes' | 'surroundings'): number =>
  asked.wanted.filter((wanted) => wanted[what]).length;

test('looks every second: at the tables each time, at what is around it every five', async () => {
  const asked = new Asked();
  await vi.advanceTimersByTimeAsync(20_500);
  expect(asked.wanted.length).toBe(21);
  expect(times(asked, 'outboxes')).toBe(21);
  expect(times(asked, 'surroundings')).toBe(5);
  expect(asked.looks).toBe(21);
  await asked.end();
});

test('while there is a job it is looked at every second', async () => {
  const asked = new Asked();
  asked.jobs = [{ id: '1', kind: 'republish', state: 'running', done: null, total: null, startedMsAgo: 5 }];
  await vi.advanceTimersByTimeAsync(10_500);
  expect(times(asked, 'surroundings')).toBe(11);
  await asked.end();
});

test('what costs is looked at for a small share of the time, and once a minute at least', async () => {
  const asked = new Asked();
  Object.assign(asked.took, { outboxesTookMs: 80, surroundingsTookMs: 5_000 });
  await vi.advanceTimersByTimeAsync(120_500);
  expect(asked.wanted.length).toBe(121);
  expect(times(asked, 'outboxes')).toBe(16);
  expect(times(asked, 'surroundings')).toBe(3);
  await asked.end();
});

test('while an answer is long in coming the relay is looked at all the same, and nothing more is asked', async () => {
  const asked = new Asked();
  await vi.advanceTimersByTimeAsync(500);
  const { promise, reject } = Promise.withResolvers();
  asked.answer = promise;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked.wanted.length).toBe(2);
  expect(asked.looks).toBe(10);
  reject(fault('MYSQL_QUERY_TIMEOUT', 'retry', 'no answer'));
  asked.answer = Promise.resolve();
  await vi.advanceTimersByTimeAsync(1);
  expect(asked.watch.fault).toBe('MYSQL_QUERY_TIMEOUT');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked.watch.fault).toBeNull();
  expect(asked.wanted.length).toBe(3);
  await asked.end();
});

test('a standby that is between two waits for the lock at one look still counts', async () => {
  const asked = new Asked();
  const seen = async (standbys: number | null): Promise<number | null> => {
    asked.standbys = standbys;
    await vi.advanceTimersByTimeAsync(5_000);
    return asked.watch.surroundings!.standbys;
  };
  await vi.advanceTimersByTimeAsync(100);
  expect(await seen(0)).toBe(1);
  expect(await seen(0)).toBe(0);
  expect(await seen(2)).toBe(2);
  expect(await seen(null)).toBeNull();
  await asked.end();
});
