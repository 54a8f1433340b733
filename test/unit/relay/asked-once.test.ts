import { expect, test } from 'vitest';
import { systemClock } from '../../../src/model/clock.ts';
import { fault } from '../../../src/model/fault.ts';
import type { Candidate } from '../../../src/model/store.ts';
import { Replay, type ReplayDeps } from '../../../src/relay/replay.ts';
import { SweepRound, type SweepRoundDeps } from '../../../src/relay/sweep-round.ts';

test('a topic that no broker can have is asked for once for all rows of a round', async () => {
  const asked: string[] = [];
  const candidates = [1n, 2n, 3n].map((id) => ({ outbox: 0, id, topic: 'not/one', key: Buffer.of(1) }));
  const round = new SweepRound({
    heldClaims: { isBehind: () => false },
    topics: {
      known: () => undefined,
      open: (name: string) => {
        asked.push(name);
        return Promise.resolve(fault('KAFKA_INVALID_TOPIC_EXCEPTION', 'park', name).fault);
      },
    },
    store: { logEnd: () => Promise.reject(fault('MYSQL_UNREACHABLE', 'retry', 'as far as this test goes')) },
  } as unknown as SweepRoundDeps);
  const signal = new AbortController().signal;
  await expect(round.run(candidates as unknown as Candidate[], null, signal)).rejects.toThrow('as far as');
  expect(asked).toEqual(['not/one']);
});

test('how far a job is, is not written again for a leader that leads no longer', async () => {
  let saves = 0;
  const replay = new Replay(
    {
      tables: ['app.outbox'],
      clock: systemClock,
      leader: { epoch: 1, lost: AbortSignal.abort() },
      jobs: {
        lastId: () => Promise.resolve(1n),
        save: () => {
          saves++;
          return Promise.reject(fault('MYSQL_UNREACHABLE', 'retry', 'no answer'));
        },
      },
    } as unknown as ReplayDeps,
    { id: 1n, progress: null } as never,
    { kind: 'republish' } as never,
  );
  await expect(replay.run(new AbortController().signal)).rejects.toThrow('no answer');
  expect(saves).toBe(1);
});
